//! How a task ends by itself or by a signal that nobody of Kubernetes sent (spec section 6).

use anyhow::ensure;
use ayatori_crds::Job;
use ayatori_tests::product::{
    jobs::{condition, exit_code, has_started, job, message},
    scene::Scene,
    shared::in_namespace,
    task_process::TaskProcess,
};

/// The verdict in short: `Status/Reason` and the exit code.
pub(crate) fn verdict(job: &Job) -> (String, Option<i32>) {
    (condition(job, "Succeeded"), exit_code(job))
}

/// Waits for the end and compares the verdict; there was one pod.
pub(crate) async fn ends_as(scene: &Scene, succeeded: &str, code: Option<i32>) -> anyhow::Result<Job> {
    let over = scene.over("job").await?;
    ensure!(verdict(&over) == (succeeded.to_owned(), code), "{:?}: {}", verdict(&over), message(&over, "Succeeded"));
    one_pod(scene, &over)?;
    Ok(over)
}

/// There was one pod, ever (I1).
pub(crate) fn one_pod(scene: &Scene, job: &Job) -> anyhow::Result<()> {
    let made = scene.pods_made_for(job)?;
    ensure!(made == 1, "{made} pods were made");
    Ok(())
}

pub(crate) async fn a_task_that_exits_143_by_itself_has_failed_with_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // The code of a process that TERM ended; but nobody sent one.
        scene.create(&job("job", "exit 143")).await?;
        let over = ends_as(scene, "False/ProcessFailed", Some(143)).await?;
        ensure!(has_started(&over) && condition(&over, "Stopping").is_empty(), "{:?}", over.status);
        Ok(())
    })
    .await
}

pub(crate) async fn a_task_that_is_killed_on_the_node_has_failed_and_was_not_out_of_memory() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let running = scene.start(&job("job", "echo ready; sleep 600")).await?;
        TaskProcess::of(scene.cluster, &scene.pod_of(&running).await?)?.signal("KILL")?;
        ends_as(scene, "False/ProcessFailed", Some(137)).await.map(drop)
    })
    .await
}
