//! Jobs that are released and cannot start yet (spec E5; matrix: Secret created later, cancel while starting).

use anyhow::ensure;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{condition, exit_code, has_started, message, task},
    scene::object,
    shared::in_namespace,
};

#[tokio::test]
async fn a_job_whose_image_is_missing_says_so_and_can_be_cancelled() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&task("job", json!({"image": "localhost/no-such-image:1"}))).await?;
        let says = |job: &_| message(job, "Succeeded").contains("localhost/no-such-image:1");
        let waiting = scene.until("job", "it says which image", says).await?;
        ensure!(condition(&waiting, "Succeeded") == "Unknown/Scheduling" && !has_started(&waiting));
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        // What the kubelet says of a container that never was is no exit code.
        ensure!(!has_started(&over) && exit_code(&over).is_none(), "{:?}", over.status);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_whose_secret_is_missing_says_so_and_runs_once_it_is_there() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "late", "key": "key"}}}]);
        let command = json!(["sh", "-c", "exit $KEY"]);
        scene.create(&task("job", json!({"image": "localhost/busybox:1", "command": command, "env": env}))).await?;
        scene.until("job", "it says which Secret", |job| message(job, "Succeeded").contains("\"late\"")).await?;
        let secret: Secret = object(&json!({"metadata": {"name": "late"}, "stringData": {"key": "7"}}))?;
        Api::namespaced(scene.client.clone(), &scene.namespace).create(&PostParams::default(), &secret).await?;
        let over = scene.over("job").await?;
        ensure!(exit_code(&over) == Some(7), "{:?}", over.status);
        Ok(())
    })
    .await
}
