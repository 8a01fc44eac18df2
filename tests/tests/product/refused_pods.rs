//! Native Jobs that get no pod (spec E5).

use anyhow::ensure;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Api, api::PostParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{condition, job, message},
    scene::object,
    shared::in_namespace,
};

#[tokio::test]
async fn a_namespace_whose_quota_is_full_says_so_and_the_job_can_be_cancelled() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let quota: ResourceQuota = object(&json!({"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}}))?;
        Api::namespaced(scene.client.clone(), &scene.namespace).create(&PostParams::default(), &quota).await?;
        scene.create(&job("job", "exit 0")).await?;
        let says = |job: &_| message(job, "Succeeded").contains("exceeded quota: full");
        let waiting = scene.until("job", "it says which quota", says).await?;
        ensure!(condition(&waiting, "Succeeded") == "Unknown/Scheduling", "{}", condition(&waiting, "Succeeded"));
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        Ok(())
    })
    .await
}
