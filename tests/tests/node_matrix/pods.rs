//! What others do to the pod of a task (spec section 6: the kubelet's word on the container counts, whoever stopped it).

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::product::{
    jobs::{class, has_started, job, message, parameters, with},
    scene::{Scene, offer},
    shared::in_namespace,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use serde_json::json;

use crate::ends::ends_as;

/// A script that goes on until TERM, and then does that.
pub(crate) fn at_term(end: &str) -> String {
    format!("trap '{end}' TERM; echo ready; while :; do sleep 0.1; done")
}

/// The name of the pod of a task that runs, and at TERM does `end`.
async fn pod_of_running(scene: &Scene, end: &str) -> anyhow::Result<String> {
    let running = scene.start(&job("job", &at_term(end))).await?;
    name_of(&scene.pod_of(&running).await?)
}

fn name_of(pod: &Pod) -> anyhow::Result<String> {
    pod.metadata.name.clone().context("a name")
}

async fn deleted(end: &'static str, succeeded: &'static str, code: i32) -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let pod = pod_of_running(scene, end).await?;
        scene.pods.delete(&pod, &DeleteParams::default()).await?;
        ends_as(scene, succeeded, Some(code)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_task_whose_pod_is_deleted_and_that_exits_0_has_succeeded() -> anyhow::Result<()> {
    deleted("exit 0", "True/Completed", 0).await
}

pub(crate) async fn a_task_whose_pod_is_deleted_and_that_exits_9_has_failed_with_it() -> anyhow::Result<()> {
    deleted("exit 9", "False/ProcessFailed", 9).await
}

pub(crate) async fn a_task_whose_pod_is_deleted_by_force_has_failed_with_the_code_of_its_end() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // The native Job's own finalizer holds the pod until its end was counted, also against a deletion at once.
        let pod = pod_of_running(scene, "").await?;
        scene.kubectl().ok(&["delete", "pod", &pod, "--force", "--grace-period=0", "--wait=false"])?;
        ends_as(scene, "False/ProcessFailed", Some(137)).await.map(drop)
    })
    .await
}

async fn evicted(end: &'static str, succeeded: &'static str, code: i32, words: &'static str) -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let pod = pod_of_running(scene, end).await?;
        scene.pods.evict(&pod, &EvictParams::default()).await?;
        let over = ends_as(scene, succeeded, Some(code)).await?;
        ensure!(message(&over, "Succeeded").contains(words), "{}", message(&over, "Succeeded"));
        Ok(())
    })
    .await
}

pub(crate) async fn a_task_whose_pod_is_evicted_and_that_exits_0_has_succeeded() -> anyhow::Result<()> {
    evicted("exit 0", "True/Completed", 0, "exited with code 0").await
}

pub(crate) async fn a_task_whose_pod_is_evicted_and_that_exits_143_was_drained() -> anyhow::Result<()> {
    evicted("exit 143", "False/Drained", 143, "evicted through the API").await
}

pub(crate) async fn a_pod_that_is_deleted_before_a_node_took_it_was_rejected() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-nowhere", scene.namespace);
        let mut settings = parameters(&name);
        settings["spec"]["scheduling"] = json!({"nodeSelector": {"no-node": "has-this"}});
        offer(&scene.client, &class(&name), &settings).await?;
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        let says = |job: &Job| message(job, "Succeeded").contains("no node takes it");
        let waiting = scene.until("job", "it says that no node takes it", says).await?;
        scene.pods.delete(&name_of(&scene.pod_of(&waiting).await?)?, &DeleteParams::default()).await?;
        let over = ends_as(scene, "False/Rejected", None).await?;
        ensure!(!has_started(&over), "it has a start time");
        Ok(())
    })
    .await
}
