//! Whether an update changed a Job's spec by value (spec A3, B5).

use crate::{JobSpec, ResourceRequirements, resources::Figure};

/// Whether both specs mean the same: absent and empty are equal, quantities compare by value, the order of `env`
/// counts.
#[must_use]
pub fn same_spec(old: &JobSpec, new: &JobSpec) -> bool {
    let class = |spec: &JobSpec| spec.job_class_name.clone().unwrap_or_default();
    let directory = |spec: &JobSpec| spec.task.working_dir.clone().unwrap_or_default();
    old.task.image == new.task.image
        && old.task.image_pull_secrets == new.task.image_pull_secrets
        && old.task.command == new.task.command
        && old.task.args == new.task.args
        && old.task.env == new.task.env
        && directory(old) == directory(new)
        && class(old) == class(new)
        && same_resources(old.resources.as_ref(), new.resources.as_ref())
        && old.active_deadline_seconds == new.active_deadline_seconds
        && old.ttl_seconds_after_finished == new.ttl_seconds_after_finished
        && old.desired_state == new.desired_state
}

fn same_resources(old: Option<&ResourceRequirements>, new: Option<&ResourceRequirements>) -> bool {
    Figure::ALL.iter().all(|&figure| match (old.and_then(|old| old.get(figure)), new.and_then(|new| new.get(figure))) {
        (None, None) => true,
        (Some(old), Some(new)) => old.same_value(new),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(patch: Value) -> JobSpec {
        let mut spec = json!({"task": {"image": "app:1"}});
        spec.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn absent_empty_and_equal_by_value_are_no_change() {
        let one = json!({"resources": {"requests": {"cpu": 1}}, "jobClassName": ""});
        let two = json!({"resources": {"requests": {"cpu": "1000m"}, "limits": {}}});
        assert!(same_spec(&spec(one), &spec(two)));
        assert!(same_spec(&spec(json!({})), &spec(json!({"resources": {}, "desiredState": "Running"}))));
    }

    #[test]
    fn every_field_counts() {
        let base = spec(json!({}));
        for change in [
            json!({"jobClassName": "a"}),
            json!({"activeDeadlineSeconds": 1}),
            json!({"ttlSecondsAfterFinished": 0}),
            json!({"desiredState": "Cancelled"}),
            json!({"resources": {"limits": {"memory": "1"}}}),
            json!({"task": {"image": "app:2"}}),
            json!({"task": {"image": "app:1", "command": ["x"]}}),
            json!({"task": {"image": "app:1", "args": ["x"]}}),
            json!({"task": {"image": "app:1", "workingDir": "/x"}}),
            json!({"task": {"image": "app:1", "imagePullSecrets": [{"name": "s"}]}}),
            json!({"task": {"image": "app:1", "env": [{"name": "A", "value": ""}]}}),
        ] {
            assert!(!same_spec(&base, &spec(change.clone())), "{change}");
        }
    }

    #[test]
    fn the_order_of_env_counts() {
        let env = |names: [&str; 2]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": ""})).collect();
            spec(json!({"task": {"image": "app:1", "env": list}}))
        };
        assert!(!same_spec(&env(["A", "B"]), &env(["B", "A"])));
    }
}
