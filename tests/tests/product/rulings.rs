//! What an administrator rules through `jobs/status` (spec E4, F3; matrix: unknown → administrator → BackendLost).

use anyhow::{Context, ensure};
use ayatori_crds::{Job, conditions::ConditionStatus};
use ayatori_tests::eventually;
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{UNTIL_KILLED, UNTIL_TERM, condition, is_over, job, message},
    scene::{BOUND, QUIET, Scene},
    shared::in_namespace,
};

const SAID: &str = "ann@example.test: the node burnt down";

/// Adds a condition as `kubectl patch --subresource=status --type=json` does.
async fn rule(scene: &Scene, type_: &str) -> anyhow::Result<Job> {
    let condition = json!({"type": type_, "status": "True", "reason": "Ruling", "message": SAID,
        "lastTransitionTime": Timestamp::from_second(Timestamp::now().as_second())?.to_string()});
    let add = json!([{"op": "add", "path": "/status/conditions/-", "value": condition}]);
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(add)?);
    Ok(scene.jobs.patch_status("job", &PatchParams::default(), &patch).await?)
}

/// A Job whose execution is taken away while it runs.
async fn in_doubt(scene: &Scene) -> anyhow::Result<Job> {
    let created = scene.start(&job("job", UNTIL_KILLED)).await?;
    scene.take_away(&created).await?;
    scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await
}

#[tokio::test]
async fn a_lost_backend_is_ruled_by_an_administrator_and_the_job_ends_with_his_words() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        in_doubt(scene).await?;
        rule(scene, "BackendLost").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/BackendLost", "{}", condition(&over, "Succeeded"));
        ensure!(message(&over, "Succeeded") == SAID, "{}", message(&over, "Succeeded"));
        scene.delete("job").await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn a_job_in_doubt_that_is_cancelled_and_deleted_waits_for_a_ruling() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let doubted = in_doubt(scene).await?;
        scene.cancel("job").await?;
        scene.delete("job").await?;
        tokio::time::sleep(QUIET).await;
        let waiting = scene.jobs.get("job").await?;
        ensure!(!is_over(&waiting), "nobody has shown that its task stopped: {:?}", waiting.status);
        ensure!(condition(&waiting, "Succeeded") == "Unknown/ResultUnknown", "{}", condition(&waiting, "Succeeded"));
        rule(scene, "Released").await?;
        scene.gone(&doubted).await
    })
    .await
}

#[tokio::test]
async fn a_job_in_doubt_does_not_keep_its_namespace() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        in_doubt(scene).await?;
        scene.delete("job").await?;
        let namespaces = Api::<Namespace>::all(scene.client.clone());
        namespaces.delete(&scene.namespace, &DeleteParams::default()).await?;
        eventually("the namespace is gone", BOUND, async || {
            ensure!(namespaces.get_opt(&scene.namespace).await?.is_none(), "it is there");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_ruling_on_a_job_that_runs_is_turned_down_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&job("job", UNTIL_TERM)).await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        rule(scene, "BackendLost").await?;
        let told = scene.until_condition("job", "BackendLost", "False/NotResultUnknown").await?;
        ensure!(message(&told, "BackendLost").ends_with(SAID), "{}", message(&told, "BackendLost"));
        tokio::time::sleep(QUIET).await;
        let later = scene.jobs.get("job").await?;
        ensure!(later.metadata.resource_version == told.metadata.resource_version, "it is written again");
        ensure!(!is_over(&later) && condition(&later, "Succeeded") == "Unknown/Running");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_ruling_that_came_too_early_can_be_made_again() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.start(&job("job", UNTIL_KILLED)).await?;
        rule(scene, "BackendLost").await?;
        scene.until_condition("job", "BackendLost", "False/NotResultUnknown").await?;
        scene.take_away(&created).await?;
        let doubted = scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await?;
        // As `kubectl edit --subresource=status` does.
        let mut conditions = doubted.conditions().to_owned();
        let turned_down = conditions.iter_mut().find(|condition| condition.type_ == "BackendLost");
        let ruling = turned_down.context("no ruling")?;
        (ruling.status, ruling.message) = (ConditionStatus::True, SAID.to_owned());
        let again = Patch::Merge(json!({"status": {"conditions": conditions}}));
        scene.jobs.patch_status("job", &PatchParams::default(), &again).await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/BackendLost", "{}", condition(&over, "Succeeded"));
        ensure!(message(&over, "Succeeded") == SAID, "{}", message(&over, "Succeeded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_released_goes_without_waiting_for_its_task() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // It takes its whole grace period of 30 s, and so would the deletion.
        let created = scene.start(&job("job", UNTIL_KILLED)).await?;
        scene.delete("job").await?;
        scene.until_condition("job", "Stopping", "True/Cancelled").await?;
        rule(scene, "Released").await?;
        scene.until_gone("job").await?;
        let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let ours = writes.iter().rev().find(|write| !write.sent["status"]["result"].is_null());
        let result = ours.map(|write| write.sent["status"]["result"]["reason"].clone());
        ensure!(result == Some(json!("Released")), "{result:?}");
        // What is stopped already is gone in its own time; nothing of ours holds it.
        scene.gone(&created).await
    })
    .await
}
