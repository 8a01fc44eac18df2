//! Nothing slips by: for random Jobs, classes, namespaces, settings and policies, what admission refuses is exactly what
//! a slow and plain checker finds on the object as it would be stored ([`checker`], which shares no code with the rules).

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::{Cluster, Held, verdict};
use crate::{Answer, JobDefaulting, JobValidation, ReferenceChecks};

mod checker;
mod worlds;

use worlds::World;

/// What admission says: the object as it would be stored, and the fields at fault.
async fn admitted(world: &World) -> (Value, BTreeSet<String>) {
    let World { policy, class, labels, default_class, settings, job } = world;
    let mut held = Held::default();
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let annotation = default_class.then(|| "execution.ayatori.ddupan.top/default-job-class=c".to_owned());
    let (labels, annotations): (Vec<&str>, Vec<&str>) =
        (labels.iter().map(String::as_str).collect(), annotation.iter().map(String::as_str).collect());
    held = held.namespace("team-a", &labels, &annotations);
    if let Some(class) = class {
        held.classes.push(serde_json::from_value(class.clone()).unwrap());
    }
    held = held.sandbox_parameters("p", settings);
    let cluster = Cluster::fresh(held);
    let policy: ayatori_crds::rules::Policy = serde_json::from_value(policy.clone()).unwrap();

    let mut stored = job.clone();
    let defaulting = JobDefaulting::new(Arc::<Cluster>::clone(&cluster), policy);
    match verdict(&defaulting, job, None).await {
        Answer::Allowed { patch, .. } => json_patch::patch(&mut stored, &patch.unwrap_or_default()).unwrap(),
        refused @ Answer::Refused(_) => panic!("defaulting refuses: {refused:?}"),
    }
    let validation = JobValidation::new(cluster, policy, ReferenceChecks::Off);
    let faults = match verdict(&validation, &stored, None).await {
        Answer::Allowed { .. } => BTreeSet::new(),
        Answer::Refused(status) if status.code == Some(403) => BTreeSet::from(["spec.jobClassName".to_owned()]),
        Answer::Refused(status) => {
            let causes = status.details.as_ref().and_then(|details| details.causes.clone());
            causes.unwrap_or_else(|| panic!("{status:?}")).into_iter().map(|cause| cause.field.unwrap()).collect()
        }
    };
    (stored, faults)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn what_is_refused_is_what_breaks_a_rule(world in worlds::any()) {
        let (stored, faults) = run(admitted(&world));
        prop_assert_eq!(&faults, &checker::faults(&stored, &world), "stored: {}", stored);
    }
}

/// The worlds above are worth trying: each rule is broken in some of them, and each is kept in many.
#[test]
fn the_random_worlds_break_and_keep_every_rule() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut allowed, mut seen) = (0, BTreeSet::new());
    for _ in 0..1_000 {
        let world = worlds::any().new_tree(&mut runner).unwrap().current();
        let (_, faults) = run(admitted(&world));
        allowed += usize::from(faults.is_empty());
        seen.extend(faults.into_iter().map(|field| field.replace(|c: char| c.is_ascii_digit(), "N")));
    }
    assert!(allowed > 50, "{allowed} of 1,000 worlds allow");
    let fields = [
        "spec.jobClassName",
        "spec.resources.limits.cpu",
        "spec.resources.limits.memory",
        "spec.resources.requests.cpu",
        "spec.resources.requests.memory",
        "spec.task.command",
        "spec.task.env[N].name",
        "spec.task.env[N].valueFrom.secretKeyRef",
        "spec.task.image",
        "spec.task.imagePullSecrets",
        "spec.ttlSecondsAfterFinished",
    ];
    assert_eq!(seen, fields.map(str::to_owned).into());
}

#[test]
fn the_checker_finds_what_is_written_here_by_hand() {
    let world = World {
        policy: json!({"ttl": {"maximum": 60}}),
        class: Some(json!({"spec": {
            "controllerName": "execution.ayatori.ddupan.top/kubernetes",
            "allowedNamespaces": {"matchLabels": {"tier": "prod"}},
            "resources": {"defaults": {"limits": {"cpu": "1"}}, "maximum": {"limits": {"memory": "1Ki"}}}
        }})),
        labels: vec![("tier", "ci")],
        default_class: false,
        settings: json!({}),
        job: Value::Null,
    };
    let stored = json!({"spec": {
        "jobClassName": "c", "ttlSecondsAfterFinished": 61,
        "task": {"image": worlds::BAD_IMAGE, "env": [{"name": "AYATORI_A", "value": ""}]},
        "resources": {"requests": {"cpu": "1001m"}}
    }});
    let expected = [
        "spec.jobClassName",
        "spec.resources.limits.memory",
        "spec.resources.requests.cpu",
        "spec.task.env[0].name",
        "spec.task.image",
        "spec.ttlSecondsAfterFinished",
    ];
    assert_eq!(checker::faults(&stored, &world), expected.map(str::to_owned).into());
}
