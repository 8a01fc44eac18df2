//! What a class's status says: pure.

use ayatori_crds::{
    ConditionStatus, JobClass, JobClassStatus,
    conditions::{self, ACCEPTED, DEFAULT_CONFLICT, READY, TERMINATING, Wanted, reason},
    rules::{
        class_policy::{Controller, parameters_reference_error},
        default_class::is_marked_default,
        field_error::joined,
        namespace::selector_errors,
        resources::policy_errors,
    },
};
use jiff::Timestamp;

use super::decide::View;
use crate::{
    backend::{Readiness, Settings},
    stores::job_index::Holders,
};

/// The status to write; None where nothing changes.
#[must_use]
pub fn wanted(view: &View<'_>, now: Timestamp) -> Option<JobClassStatus> {
    let controller = Controller::of(&view.class.spec.controller_name);
    let mut status = view.class.status.clone().unwrap_or_default();
    let generation = view.class.metadata.generation;
    status.observed_generation = generation;
    let (accepted, why, message) = acceptance(view, controller);
    let mut say = |type_, is: bool, reason, message| {
        let status_word = if is { ConditionStatus::True } else { ConditionStatus::False };
        conditions::set(
            &mut status.conditions,
            Wanted { type_, status: status_word, reason, message },
            generation,
            now,
        );
    };
    say(ACCEPTED, accepted, why, message);
    // Not a matter of the policy: an edit that makes the class unacceptable does not touch what it accepted (spec C2).
    match (&view.settings, &view.readiness) {
        (Settings::Missing, _) => {
            say(READY, false, reason::PARAMETERS_NOT_FOUND, "waiting for the parameters to be created".to_owned());
        }
        // Never flaps on one miss (spec H2).
        (_, None) => {}
        (_, Some(Readiness::Ready)) => say(READY, true, reason::BACKEND_REACHABLE, "Jobs can be started".to_owned()),
        (_, Some(Readiness::NotReady { reason, message })) => say(READY, false, reason, message.clone()),
    }
    if let Some((conflict, why, message)) = default_conflict(view) {
        say(DEFAULT_CONFLICT, conflict, why, message);
    }
    if view.class.metadata.deletion_timestamp.is_some() && view.holders.count > 0 {
        say(TERMINATING, true, reason::JOBS_REMAINING, waits_for(&view.holders));
    }
    (view.class.status.as_ref() != Some(&status)).then_some(status)
}

/// The condition `DefaultConflict`: at each of several defaults, and where it was there before (spec H4).
fn default_conflict(view: &View<'_>) -> Option<(bool, &'static str, String)> {
    if is_marked_default(view.class) && view.defaults.len() > 1 {
        let message =
            format!("Jobs without a class wait: several classes are the default: {}", view.defaults.join(", "));
        return Some((true, reason::AMBIGUOUS_DEFAULT_JOB_CLASS, message));
    }
    let told = conditions::find(view.class.conditions(), DEFAULT_CONFLICT).is_some();
    told.then(|| (false, reason::NO_CONFLICT, "it is not one of several defaults".to_owned()))
}

/// For which Jobs the deletion of a class waits (spec H3).
fn waits_for(holders: &Holders) -> String {
    let more = match holders.count - holders.first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let jobs = if holders.count == 1 { "Job that holds" } else { "Jobs that hold" };
    format!("deletion waits for {} {jobs} this class: {}{more}", holders.count, holders.first.join(", "))
}

/// The OpenSandbox adapter does not run here: its classes are left to a process that has it. A class that no adapter
/// known here serves is told so, unless somebody else has judged it.
#[must_use]
pub fn is_ours(class: &JobClass, controller: Controller) -> bool {
    match controller {
        Controller::Kubernetes => true,
        Controller::Unsupported => conditions::find(class.conditions(), ACCEPTED)
            .is_none_or(|condition| condition.reason == reason::UNSUPPORTED_CONTROLLER),
        Controller::OpenSandbox | Controller::Foreign => false,
    }
}

/// The condition `Accepted`: whether, why, in words.
fn acceptance(view: &View<'_>, controller: Controller) -> (bool, &'static str, String) {
    let spec = &view.class.spec;
    if controller == Controller::Unsupported {
        let message = format!("no adapter here serves {:?}", spec.controller_name);
        return (false, reason::UNSUPPORTED_CONTROLLER, message);
    }
    if let Some(error) = parameters_reference_error(spec) {
        return (false, reason::INVALID_PARAMETERS_REFERENCE, error.to_string());
    }
    let policy: Vec<_> = spec
        .allowed_namespaces
        .iter()
        .flat_map(selector_errors)
        .chain(spec.resources.iter().flat_map(policy_errors))
        .collect();
    if !policy.is_empty() {
        return (false, reason::INVALID_RESOURCE_POLICY, joined(&policy));
    }
    if view.settings == Settings::Missing {
        let reference = &spec.parameters_ref;
        let pinned = reference.uid.as_ref().map(|uid| format!(" with UID {uid}")).unwrap_or_default();
        let message = format!("waiting for {} {:?}{pinned} to be created", reference.kind, reference.name);
        return (false, reason::PARAMETERS_NOT_FOUND, message);
    }
    (true, reason::CLASS_ACCEPTED, "Jobs may use this class".to_owned())
}

#[cfg(test)]
mod tests {
    use ayatori_crds::{
        JobClassSpec,
        job_class::{ParametersReference, ResourcePolicy},
        names::{GROUP, IS_DEFAULT_JOB_CLASS_ANNOTATION, KUBERNETES_CONTROLLER, OPENSANDBOX_CONTROLLER},
    };

    use super::*;
    use crate::job_class::decide::{Step, decide};

    fn class(controller: &str, kind: &str) -> JobClass {
        let reference = ParametersReference { group: GROUP.into(), kind: kind.into(), name: "p".into(), uid: None };
        JobClass::new(
            "c",
            JobClassSpec { controller_name: controller.into(), parameters_ref: reference, ..JobClassSpec::default() },
        )
    }

    fn view(class: &JobClass, settings: Settings, readiness: Option<Readiness>) -> View<'_> {
        View { class, settings, readiness, defaults: vec![], holders: Holders::default(), holders_are_live: false }
    }

    fn told(class: &JobClass, settings: Settings) -> Vec<String> {
        told_with(class, settings, Some(Readiness::Ready))
    }

    fn told_with(class: &JobClass, settings: Settings, readiness: Option<Readiness>) -> Vec<String> {
        let status = wanted(&view(class, settings, readiness), Timestamp::UNIX_EPOCH);
        let conditions = status.map(|status| status.conditions).unwrap_or_default();
        conditions.iter().map(|c| format!("{}={}/{}", c.type_, c.status.as_str(), c.reason)).collect()
    }

    const NO_SETTINGS: &str = "False/ParametersNotFound";
    const KIND: &str = "KubernetesExecutionParameters";

    fn present() -> Settings {
        Settings::Present { uid: "u".into() }
    }

    #[test]
    fn a_class_whose_parameters_exist_is_accepted_and_ready() {
        let class = class(KUBERNETES_CONTROLLER, KIND);
        assert_eq!(told(&class, present()), ["Accepted=True/Accepted", "Ready=True/BackendReachable"]);
        let expected = ["Accepted=True/Accepted", "Ready=False/RuntimeClassNotFound"];
        let readiness = Readiness::NotReady { reason: reason::RUNTIME_CLASS_NOT_FOUND, message: String::new() };
        assert_eq!(told_with(&class, present(), Some(readiness)), expected);
        assert_eq!(told_with(&class, present(), None), ["Accepted=True/Accepted"], "not known is not said");
    }

    #[test]
    fn each_reason_of_refusal() {
        let mut contradictory = class(KUBERNETES_CONTROLLER, KIND);
        let limits = |cpu: &str| serde_json::from_value(serde_json::json!({"limits": {"cpu": cpu}})).unwrap();
        contradictory.spec.resources =
            Some(ResourcePolicy { defaults: None, minimum: Some(limits("2")), maximum: Some(limits("1")) });
        for (class, settings, reason, ready) in [
            (
                class("execution.ayatori.ddupan.top/later", KIND),
                Settings::Missing,
                "UnsupportedController",
                NO_SETTINGS,
            ),
            (class(KUBERNETES_CONTROLLER, "ConfigMap"), Settings::Missing, "InvalidParametersReference", NO_SETTINGS),
            (class(KUBERNETES_CONTROLLER, KIND), Settings::Missing, "ParametersNotFound", NO_SETTINGS),
            // What it accepted before goes on (spec C2).
            (contradictory, present(), "InvalidResourcePolicy", "True/BackendReachable"),
        ] {
            assert_eq!(told(&class, settings), [format!("Accepted=False/{reason}"), format!("Ready={ready}")]);
        }
    }

    #[test]
    fn classes_of_others_are_never_touched() {
        for controller in ["other.example/x", OPENSANDBOX_CONTROLLER] {
            let class = class(controller, "ConfigMap");
            let step = decide(&view(&class, Settings::Missing, None), Timestamp::UNIX_EPOCH);
            assert_eq!(step, Step::Wait);
        }
    }

    #[test]
    fn a_class_that_somebody_else_has_judged_is_theirs() {
        let mut class = class("execution.ayatori.ddupan.top/later", KIND);
        assert!(is_ours(&class, Controller::Unsupported));
        class.status = wanted(&view(&class, Settings::Missing, Some(Readiness::Ready)), Timestamp::UNIX_EPOCH);
        assert!(is_ours(&class, Controller::Unsupported), "we have");
        class.status.as_mut().unwrap().conditions[0].reason = "Accepted".into();
        assert!(!is_ours(&class, Controller::Unsupported));
    }

    #[test]
    fn saying_the_same_again_writes_nothing() {
        let mut class = class(KUBERNETES_CONTROLLER, KIND);
        class.status = wanted(&view(&class, present(), Some(Readiness::Ready)), Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(99).unwrap();
        assert_eq!(wanted(&view(&class, present(), Some(Readiness::Ready)), later), None);
    }

    #[test]
    fn each_of_several_defaults_says_so_until_it_is_the_only_one() {
        let mut class = class(KUBERNETES_CONTROLLER, KIND);
        let conflict = |class: &JobClass, defaults: &[&str]| {
            let defaults = defaults.iter().map(|name| (*name).to_owned()).collect();
            let status = wanted(&View { defaults, ..view(class, present(), None) }, Timestamp::UNIX_EPOCH);
            let status = status.or_else(|| class.status.clone()).unwrap_or_default();
            conditions::find(&status.conditions, DEFAULT_CONFLICT).cloned()
        };
        assert_eq!(conflict(&class, &["a", "b"]), None, "it is no default itself");
        class.metadata.annotations = Some([(IS_DEFAULT_JOB_CLASS_ANNOTATION.to_owned(), "true".to_owned())].into());
        assert_eq!(conflict(&class, &["c"]), None, "the only default has nothing to say");
        let told = conflict(&class, &["a", "c"]).unwrap();
        assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::True, "AmbiguousDefaultJobClass"));
        assert!(told.message.ends_with(": a, c"), "{}", told.message);
        class.status = Some(JobClassStatus { conditions: vec![told], ..JobClassStatus::default() });
        assert_eq!(conflict(&class, &["c"]).unwrap().status, ConditionStatus::False);
    }
}
