//! What the cluster's own policies put into the pod of a task, such as a service mesh does.

use anyhow::ensure;
use ayatori_crds::Job;
use ayatori_tests::{
    eventually,
    product::{
        jobs::{has_started, job, message},
        scene::{BOUND, Scene},
        shared::in_namespace,
    },
};
use serde_json::json;

use crate::ends::ends_as;

/// From now on this is added to each new pod of the namespace: paths, and values in CEL.
pub(crate) async fn inject(scene: &Scene, additions: &[(&str, &str)]) -> anyhow::Result<()> {
    let add = |(path, value): &(&str, &str)| format!(r#"JSONPatch{{op: "add", path: "{path}", value: {value}}}"#);
    let patch = additions.iter().map(add).collect::<Vec<_>>().join(", ");
    let (name, api_version) = (format!("inject-{}", scene.namespace), "admissionregistration.k8s.io/v1");
    let policy = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": api_version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
                ],
            },
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": format!("[{patch}]")},
            }],
        }},
        {"apiVersion": api_version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name}},
    ]});
    scene.kubectl().ok_with(&["create", "-f", "-"], &policy.to_string())?;
    let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
                       "spec": {"containers": [{"name": "task", "image": "localhost/busybox:1"}]}});
    // The API server learns of its policies by a watch of its own.
    eventually("the policy holds", BOUND, async || {
        let create = ["create", "-f", "-", "--dry-run=server", "--output=jsonpath={.spec}"];
        let plain = scene.kubectl().ok_with(&create, &probe.to_string())?.stdout;
        ensure!(plain.contains("injected"), "{plain}");
        Ok(())
    })
    .await
}

/// A container before the task runs this script.
async fn inject_before(scene: &Scene, script: &str) -> anyhow::Result<()> {
    let container = format!(
        r#"Object.spec.initContainers{{name: "injected", image: "localhost/busybox:1", command: ["sh", "-c", "{script}"]}}"#
    );
    inject(scene, &[("/spec/initContainers", "[]"), ("/spec/initContainers/-", &container)]).await
}

pub(crate) async fn a_container_before_the_task_that_fails_is_a_start_that_failed() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        inject_before(scene, "exit 7").await?;
        scene.create(&job("job", "exit 0")).await?;
        let over = ends_as(scene, "False/StartFailed", None).await?;
        let words = message(&over, "Succeeded");
        ensure!(words.contains("init container \"injected\"") && words.contains("exited with code 7"), "{words}");
        ensure!(!has_started(&over), "it has a start time");
        Ok(())
    })
    .await
}

pub(crate) async fn a_container_before_the_task_that_takes_its_time_is_waited_for_and_said() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        inject_before(scene, "sleep 3").await?;
        scene.create(&job("job", "exit 0")).await?;
        let says = |job: &Job| message(job, "Succeeded").contains("waiting for init container \"injected\" to end");
        let waiting = scene.until("job", "it says what it waits for", says).await?;
        ensure!(!has_started(&waiting), "it has a start time");
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}
