//! Cancelling (spec F1, D6; matrix: cancel while resolving, scheduling, running, after the end; our stop with 0 and 143).

use anyhow::{Context, ensure};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{condition, exit_code, has_started, job, message, with},
    scene::{QUIET, Scene, offer_class},
    shared::in_namespace,
};

use crate::pinned_class::accepted_and_waiting;

#[tokio::test]
async fn a_job_that_is_cancelled_before_it_is_accepted_never_runs() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let class = format!("{}-late", scene.namespace);
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(class))).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled" && !has_started(&over), "{:?}", over.status);
        // The class that it waited for changes nothing any more.
        offer_class(&scene.client, &class).await?;
        nothing_more_happens(scene, &over, 0).await?;
        ensure!(scene.native_job(&over).await?.is_none(), "a native Job was made");

        let undo = scene.patch("job", json!({"spec": {"desiredState": "Running"}})).await;
        ensure!(undo.is_err_and(|error| error.to_string().contains("may only go from Running to Cancelled")));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_cancelled_before_it_is_scheduled_never_runs() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        accepted_and_waiting(scene).await?;
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled" && !has_started(&over), "{:?}", over.status);
        ensure!(message(&over, "Succeeded").contains("nothing was started"), "{}", message(&over, "Succeeded"));
        nothing_more_happens(scene, &over, 0).await?;
        ensure!(scene.native_job(&over).await?.is_none(), "a native Job was made");
        Ok(())
    })
    .await
}

/// `end` is what the task does at TERM. It takes longer than a second: the kubelet tells whole seconds, and an exit 0
/// in the second of the stop counts as a success of its own (spec section 6, "our own stop").
async fn cancelled_while_running(end: &'static str, code: i32) -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let script = format!("trap '{end}' TERM; echo ready; while :; do sleep 0.1; done");
        let created = scene.create(&job("job", &script)).await?;
        scene.says(&created, "ready").await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        ensure!(condition(&over, "Stopping") == "True/Cancelled", "{}", condition(&over, "Stopping"));
        ensure!(exit_code(&over) == Some(code), "{:?}", exit_code(&over));
        ensure!(has_started(&over));
        nothing_more_happens(scene, &over, 1).await
    })
    .await
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_and_exits_0_is_cancelled() -> anyhow::Result<()> {
    cancelled_while_running("sleep 1.2; exit 0", 0).await
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_and_exits_143_is_cancelled() -> anyhow::Result<()> {
    cancelled_while_running("sleep 1.2; exit 143", 143).await
}

#[tokio::test]
async fn cancelling_a_finished_job_changes_nothing_and_says_so() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let over = scene.run(&job("job", "exit 3")).await?;
        let patch = ["patch", "ajob", "job", "--type=merge", "-p", r#"{"spec":{"desiredState":"Cancelled"}}"#];
        let said = scene.kubectl().ok(&patch)?;
        let warning = "Warning: the Job is over already: cancelling it changes nothing\n";
        ensure!(said.stderr == warning, "{}", said.stderr);
        let generation = over.metadata.generation.map(|generation| generation + 1);
        let later = scene
            .until("job", "the new generation is seen", |job| {
                job.status.as_ref().is_some_and(|status| status.observed_generation == generation)
            })
            .await?;
        let without_generation = |job: &ayatori_crds::Job| -> anyhow::Result<serde_json::Value> {
            let mut status = serde_json::to_value(job.status.as_ref().context("a status")?)?;
            status.as_object_mut().context("an object")?.remove("observedGeneration");
            Ok(status)
        };
        let (before, after) = (without_generation(&over)?, without_generation(&later)?);
        ensure!(before == after, "before {before}, after {after}");
        Ok(())
    })
    .await
}

/// I2, I7: the status stays, and there are no more pods than there were, none of them running.
async fn nothing_more_happens(scene: &Scene, over: &ayatori_crds::Job, pods: usize) -> anyhow::Result<()> {
    tokio::time::sleep(QUIET).await;
    let later = scene.jobs.get("job").await?;
    ensure!(later.status == over.status, "{:?}", later.status);
    let made = scene.pods_made_for(over)?;
    ensure!(made == pods, "{made} pods were made");
    for pod in scene.pods_of(over).await? {
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let runs = statuses.iter().any(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()));
        ensure!(!runs, "it runs: {statuses:?}");
    }
    Ok(())
}
