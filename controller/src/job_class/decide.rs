//! What a class's status shall say: pure.

use ayatori_crds::{
    ConditionStatus, JobClass, JobClassStatus,
    conditions::{self, ACCEPTED, READY, Wanted, reason},
    rules::{
        class_policy::{Controller, parameters_reference_error},
        field_error::joined,
        namespace::selector_errors,
        resources::policy_errors,
    },
};
use jiff::Timestamp;

use crate::backend::{Readiness, Settings};

/// What is seen around a class.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The class.
    pub class: &'a JobClass,
    /// The settings object that it names.
    pub settings: Settings,
    /// Whether the backend takes new starts with them; None where that could not be asked now.
    pub readiness: Option<Readiness>,
}

/// The status to write; None where nothing changes or the class is not ours (spec H1).
#[must_use]
pub fn decide(view: &View<'_>, now: Timestamp) -> Option<JobClassStatus> {
    let controller = Controller::of(&view.class.spec.controller_name);
    if !is_ours(view.class, controller) {
        return None;
    }
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
    (view.class.status.as_ref() != Some(&status)).then_some(status)
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
        names::{GROUP, KUBERNETES_CONTROLLER, OPENSANDBOX_CONTROLLER},
    };

    use super::*;

    fn class(controller: &str, kind: &str) -> JobClass {
        let reference = ParametersReference { group: GROUP.into(), kind: kind.into(), name: "p".into(), uid: None };
        JobClass::new(
            "c",
            JobClassSpec { controller_name: controller.into(), parameters_ref: reference, ..JobClassSpec::default() },
        )
    }

    fn told(class: &JobClass, settings: Settings) -> Vec<String> {
        told_with(class, settings, Some(Readiness::Ready))
    }

    fn told_with(class: &JobClass, settings: Settings, readiness: Option<Readiness>) -> Vec<String> {
        let status = decide(&View { class, settings, readiness }, Timestamp::UNIX_EPOCH);
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
            assert_eq!(told(&class(controller, "ConfigMap"), Settings::Missing), Vec::<String>::new());
        }
    }

    #[test]
    fn a_class_that_somebody_else_has_judged_is_theirs() {
        let mut class = class("execution.ayatori.ddupan.top/later", KIND);
        let view = View { class: &class, settings: Settings::Missing, readiness: Some(Readiness::Ready) };
        class.status = decide(&view, Timestamp::UNIX_EPOCH);
        class.status.as_mut().unwrap().conditions[0].reason = "Accepted".into();
        assert_eq!(told(&class, Settings::Missing), Vec::<String>::new());
    }

    #[test]
    fn saying_the_same_again_writes_nothing() {
        let mut class = class(KUBERNETES_CONTROLLER, KIND);
        let view = View { class: &class, settings: present(), readiness: Some(Readiness::Ready) };
        class.status = decide(&view, Timestamp::UNIX_EPOCH);
        let later = Timestamp::from_second(99).unwrap();
        assert_eq!(
            decide(&View { class: &class, settings: present(), readiness: Some(Readiness::Ready) }, later),
            None
        );
    }
}
