//! Whether two specs say the same by value (spec A3, B5): quantities by their amount, absent as empty.

use crate::{JobClassSpec, JobSpec, Quantity, ResourceRequirements, job_class::ResourcePolicy, resources::Figure};

/// Whether two Jobs ask for the same. The order of variables counts.
#[must_use]
pub fn of_jobs(one: &JobSpec, two: &JobSpec) -> bool {
    let JobSpec { job_class_name, task, resources, active_deadline_seconds, ttl_seconds_after_finished, desired_state } =
        one;
    given(job_class_name.as_deref()) == given(two.job_class_name.as_deref())
        && given(task.working_dir.as_deref()) == given(two.task.working_dir.as_deref())
        && (&task.image, &task.image_pull_secrets, &task.command, &task.args, &task.env)
            == (&two.task.image, &two.task.image_pull_secrets, &two.task.command, &two.task.args, &two.task.env)
        && same_resources(resources.as_ref(), two.resources.as_ref())
        && *active_deadline_seconds == two.active_deadline_seconds
        && *ttl_seconds_after_finished == two.ttl_seconds_after_finished
        && *desired_state == two.desired_state
}

/// Whether two classes offer the same.
#[must_use]
pub fn of_classes(one: &JobClassSpec, two: &JobClassSpec) -> bool {
    let JobClassSpec { controller_name, parameters_ref, allowed_namespaces, resources } = one;
    let part = |of: &Option<ResourcePolicy>, which: fn(&ResourcePolicy) -> Option<&ResourceRequirements>| {
        of.as_ref().and_then(which).cloned()
    };
    let parts: [fn(&ResourcePolicy) -> Option<&ResourceRequirements>; 3] =
        [|policy| policy.defaults.as_ref(), |policy| policy.minimum.as_ref(), |policy| policy.maximum.as_ref()];
    (controller_name, parameters_ref, allowed_namespaces)
        == (&two.controller_name, &two.parameters_ref, &two.allowed_namespaces)
        && parts
            .into_iter()
            .all(|which| same_resources(part(resources, which).as_ref(), part(&two.resources, which).as_ref()))
}

/// An empty text is none.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn same_resources(one: Option<&ResourceRequirements>, two: Option<&ResourceRequirements>) -> bool {
    let figure = |of: Option<&ResourceRequirements>, figure| of.and_then(|of| of.get(figure)).cloned();
    Figure::ALL.into_iter().all(|at| match (figure(one, at), figure(two, at)) {
        (Some(one), Some(two)) => Quantity::same_value(&one, &two),
        (one, two) => one.is_none() && two.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(overlay: &Value) -> JobSpec {
        let mut job = json!({
            "task": {"image": "app:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            "resources": {"requests": {"cpu": "1", "memory": "512Mi"}},
        });
        for (key, value) in overlay.as_object().unwrap() {
            job[key] = value.clone();
        }
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn the_same_written_otherwise_is_the_same() {
        let base = job(&json!({}));
        for other in [
            json!({}),
            json!({"resources": {"requests": {"cpu": "1000m", "memory": "0.5Gi"}}}),
            json!({"resources": {"requests": {"cpu": 1, "memory": "512Mi"}, "limits": {}}}),
            json!({"jobClassName": "", "desiredState": "Running"}),
            json!({"task": {"image": "app:1", "command": [], "workingDir": "", "imagePullSecrets": [],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}}),
        ] {
            assert!(of_jobs(&base, &job(&other)) && of_jobs(&job(&other), &base), "{other}");
        }
    }

    #[test]
    fn every_field_counts() {
        let base = job(&json!({}));
        let env = |env: Value| json!({"task": {"image": "app:1", "env": env}});
        for other in [
            json!({"resources": {"requests": {"cpu": "1001m", "memory": "512Mi"}}}),
            json!({"resources": {"requests": {"cpu": "1"}}}),
            json!({"resources": {"limits": {"cpu": "1", "memory": "512Mi"}}}),
            json!({"jobClassName": "a"}),
            json!({"desiredState": "Cancelled"}),
            json!({"ttlSecondsAfterFinished": 0}),
            json!({"activeDeadlineSeconds": 1}),
            env(json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}])),
            env(json!([{"name": "A", "value": "1"}])),
            json!({"task": {"image": "app:2", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}}),
        ] {
            assert!(!of_jobs(&base, &job(&other)) && !of_jobs(&job(&other), &base), "{other}");
        }
    }

    #[test]
    fn classes_compare_their_figures_by_value_too() {
        let class = |resources: Value, selector: Value| -> JobClassSpec {
            serde_json::from_value(json!({
                "controllerName": "a/b", "parametersRef": {"group": "g", "kind": "K", "name": "p"},
                "resources": resources, "allowedNamespaces": selector,
            }))
            .unwrap()
        };
        let one = class(json!({"minimum": {"limits": {"cpu": "1"}}}), Value::Null);
        assert!(of_classes(&one, &class(json!({"minimum": {"limits": {"cpu": "1000m"}}, "maximum": {}}), Value::Null)));
        assert!(!of_classes(&one, &class(json!({"maximum": {"limits": {"cpu": "1"}}}), Value::Null)));
        assert!(!of_classes(
            &one,
            &class(json!({"minimum": {"limits": {"cpu": "1"}}}), json!({"matchLabels": {"a": "b"}}))
        ));
    }
}
