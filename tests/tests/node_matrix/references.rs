//! A key of a ConfigMap that goes between acceptance and start (spec E1; what is missing before is spec C3).

use anyhow::ensure;
use ayatori_tests::product::{
    jobs::{condition, has_started, message, task},
    scene::Scene,
    shared::in_namespace,
};
use serde_json::{Value, json};

use crate::{ends::ends_as, namespaces::forbid};

/// A Job that exits with the value of the key `code` of the ConfigMap `settings`.
fn job_of_key() -> Value {
    let env = json!([{"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "code"}}}]);
    task("job", json!({"image": "localhost/busybox:1", "command": ["sh", "-c", "exit $CODE"], "env": env}))
}

fn patch_settings(scene: &Scene, data: &Value) -> anyhow::Result<()> {
    let patch = json!({"data": data}).to_string();
    scene.kubectl().ok(&["patch", "configmap", "settings", "--type=merge", "-p", &patch]).map(drop)
}

pub(crate) async fn a_key_that_goes_after_the_acceptance_is_awaited_and_the_job_runs_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // Accepted, and kept from its start for a while.
        forbid(scene, "pods").await?;
        scene.kubectl().ok(&["create", "configmap", "settings", "--from-literal=code=5"])?;
        scene.create(&job_of_key()).await?;
        scene.until_condition("job", "Scheduled", "True/BackendCreated").await?;
        patch_settings(scene, &json!({"code": null}))?;
        scene.kubectl().ok(&["delete", "quota", "full"])?;

        let stalled = scene.until_condition("job", "Stalled", "True/ReferenceMissing").await?;
        let words = message(&stalled, "Succeeded");
        ensure!(words.contains("couldn't find key code in ConfigMap") && !has_started(&stalled), "{words}");
        patch_settings(scene, &json!({"code": "5"}))?;
        let over = ends_as(scene, "False/ProcessFailed", Some(5)).await?;
        ensure!(condition(&over, "Stalled") == "False/Progressing", "{}", condition(&over, "Stalled"));
        Ok(())
    })
    .await
}
