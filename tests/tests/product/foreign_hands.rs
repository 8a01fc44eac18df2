//! What others do to a native Job (spec D3, D5, E4; matrix: ResultUnknown, name conflict, `--cascade=orphan`).

use anyhow::{Context, ensure};
use ayatori_crds::names::{BACKEND_CLEANUP_FINALIZER, JOB_UID_LABEL};
use ayatori_tests::{eventually, record::Invariant};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{UNTIL_TERM, condition, exit_code, is_over, job, native_name, uid, with},
    scene::{BOUND, QUIET, Scene, object, offer_class},
    shared::in_namespace,
};

#[tokio::test]
async fn a_native_job_that_is_taken_away_leaves_the_result_unknown_and_is_never_made_again() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.create(&job("job", UNTIL_TERM)).await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        let name = native_name(&created);
        scene.native_jobs.delete(&name, &DeleteParams::background()).await?;
        // Our finalizer holds it; whoever strips that too has taken it away for good.
        let held = scene.native_jobs.get(&name).await?;
        ensure!(held.metadata.finalizers.iter().flatten().any(|held| held == BACKEND_CLEANUP_FINALIZER));
        strip(scene, &name).await?;

        let unknown = scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await?;
        ensure!(!is_over(&unknown), "it has a completion time");
        tokio::time::sleep(QUIET).await;
        ensure!(scene.native_job(&created).await?.is_none(), "it was made again");
        let made = scene.audit().writes("batch/jobs")?.iter().filter(|write| write.verb == "create").count();
        ensure!(made == 1, "{made} native Jobs were made");

        // It can be deleted: what is gone is an end to observe (F3).
        scene.delete("job").await?;
        scene.gone(&created).await
    })
    .await
}

/// Takes all finalizers off a native Job.
async fn strip(scene: &Scene, name: &str) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    scene.native_jobs.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_native_job_that_somebody_deletes_while_our_finalizer_holds_it_is_judged_by_its_end() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.create(&job("job", "echo ready; sleep 2; exit 5")).await?;
        scene.says(&created, "ready").await?;
        scene.native_jobs.delete(&native_name(&created), &DeleteParams::background()).await?;
        let over = scene.over("job").await?;
        let verdict = (condition(&over, "Succeeded"), exit_code(&over));
        ensure!(verdict == ("False/ProcessFailed".to_owned(), Some(5)), "{verdict:?}");
        scene.delete("job").await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn a_native_job_without_its_owner_is_still_ours_by_its_recorded_uid() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // `--cascade=orphan` strips the owner reference; so does anybody with the right to.
        let created = scene.create(&job("job", "sleep 2")).await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        let orphan = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        scene.native_jobs.patch(&native_name(&created), &PatchParams::default(), &orphan).await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        scene.jobs.delete("job", &DeleteParams::orphan()).await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn a_native_job_whose_job_was_forced_away_is_stopped_and_swept() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // D7. The task takes its time, so that the Job is forced away before it has ended. From then on only our
        // finalizer is left, on a native Job that the garbage collector deletes.
        let script = "trap 'sleep 3; exit 0' TERM; echo ready; while :; do sleep 0.1; done";
        let created = scene.create(&job("job", script)).await?;
        scene.says(&created, "ready").await?;
        scene.tolerate(Invariant::I8);
        scene.delete("job").await?;
        scene.patch("job", json!({"metadata": {"finalizers": null}})).await?;
        ensure!(scene.jobs.get_opt("job").await?.is_none(), "the Job is there");
        scene.gone(&created).await
    })
    .await
}

#[tokio::test]
async fn what_is_not_ours_under_our_name_is_neither_adopted_nor_changed_nor_deleted() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // The name is known once the Job is there: it waits for its class meanwhile.
        let class = format!("{}-late", scene.namespace);
        let waiting = scene.create(&with(job("job", "exit 0"), "jobClassName", json!(class))).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        // Our label alone proves nothing (D5).
        let pod = json!({"restartPolicy": "Never", "containers": [
            {"name": "task", "image": "localhost/busybox:1", "command": ["sleep", "300"]}]});
        let foreign = object(&json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": native_name(&waiting), "labels": {JOB_UID_LABEL: uid(&waiting)}},
            "spec": {"suspend": true, "template": {"spec": pod}},
        }))?;
        let foreign = scene.native_jobs.create(&PostParams::default(), &foreign).await?;
        offer_class(&scene.client, &class).await?;
        let conflict = scene.until_condition("job", "Scheduled", "False/NameConflict").await?;
        ensure!(condition(&conflict, "Succeeded") == "Unknown/Scheduling", "{:?}", conflict.status);
        tokio::time::sleep(QUIET).await;

        // Neither while the Job waits nor when it is deleted.
        scene.delete("job").await?;
        scene.until_gone("job").await?;
        let name = native_name(&waiting);
        let left = eventually("the native Job controller has seen it", BOUND, async || {
            let left = scene.native_jobs.get(&name).await?;
            ensure!(left.status.as_ref().is_some_and(|status| status.conditions.is_some()));
            Ok(left)
        })
        .await?;
        ensure!(left.metadata.uid == foreign.metadata.uid && left.metadata.deletion_timestamp.is_none());
        ensure!(left.metadata.generation == foreign.metadata.generation, "its spec was changed");
        ensure!(left.spec.context("a spec")?.suspend == Some(true), "it was released");
        Ok(())
    })
    .await
}
