//! What others do to a native Job (spec D3, D5, E4; matrix: ResultUnknown, name conflict, `--cascade=orphan`).

use anyhow::{Context, ensure};
use ayatori_crds::{Job, names::JOB_UID_LABEL};
use ayatori_tests::{
    eventually,
    record::{Invariant, Recorder},
};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{UNTIL_KILLED, condition, exit_code, is_over, job, message, native_name, uid, with},
    scene::{BOUND, QUIET, Scene, object, offer_class},
    shared::in_namespace,
};

#[tokio::test]
async fn an_execution_that_is_taken_away_leaves_the_result_unknown_and_is_never_made_again() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.start(&job("job", UNTIL_KILLED)).await?;
        scene.take_away(&created).await?;
        let unknown = scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await?;
        ensure!(!is_over(&unknown), "it has a completion time");
        tokio::time::sleep(QUIET).await;
        ensure!(scene.native_job(&created).await?.is_none(), "it was made again");
        let made = scene.audit().writes("batch/jobs")?.iter().filter(|write| write.verb == "create").count();
        ensure!(made == 1, "{made} native Jobs were made");
        Ok(())
    })
    .await
}

/// A task that takes its time after TERM.
const SLOW_TO_END: &str = "trap 'sleep 6; exit 9' TERM; echo ready; while :; do sleep 0.1; done";

#[tokio::test]
async fn a_pod_that_outlives_its_native_job_is_judged_by_its_end() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.start(&job("job", SLOW_TO_END)).await?;
        scene.take_native_job_away(&created).await?;
        goes_on_without_its_native_job(scene, &created).await?;
        let over = scene.over("job").await?;
        let verdict = (condition(&over, "Succeeded"), exit_code(&over));
        ensure!(verdict == ("False/ProcessFailed".to_owned(), Some(9)), "{verdict:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn no_job_is_over_while_the_pod_runs_that_its_deleted_native_job_has_left() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let cancelled = scene.start(&job("cancelled", SLOW_TO_END)).await?;
        let deleted = scene.start(&job("deleted", SLOW_TO_END)).await?;
        for created in [&cancelled, &deleted] {
            scene.native_jobs.delete(&native_name(created), &DeleteParams::background()).await?;
        }
        // What somebody deletes heeds no stop: the native Job is let go, and its pod has its grace period.
        scene.cancel("cancelled").await?;
        scene.delete("deleted").await?;
        for created in [&cancelled, &deleted] {
            goes_on_without_its_native_job(scene, created).await?;
        }
        let over = scene.over("cancelled").await?;
        let verdict = (condition(&over, "Succeeded"), exit_code(&over));
        ensure!(verdict == ("False/Cancelled".to_owned(), Some(9)), "{verdict:?}");
        scene.gone(&deleted).await?;
        let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let last = writes.iter().rfind(|write| write.name == "deleted").map(|write| &write.sent["status"]["result"]);
        ensure!(last == Some(&json!({"reason": "Cancelled", "exitCode": 9})), "{last:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_that_somebody_orphaned_is_still_ours_and_waited_for_until_somebody_deletes_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.start(&job("job", SLOW_TO_END)).await?;
        scene.native_jobs.delete(&native_name(&created), &DeleteParams::orphan()).await?;
        let orphan = eventually("the pod is orphaned", BOUND, async || {
            let pod = scene.pod_of(&created).await?;
            ensure!(pod.metadata.owner_references.is_none(), "{:?}", pod.metadata.owner_references);
            Ok(pod)
        })
        .await?;
        scene.cancel("job").await?;
        goes_on_without_its_native_job(scene, &created).await?;
        let name = orphan.metadata.name.context("a name")?;
        ensure!(scene.pods.get(&name).await?.metadata.deletion_timestamp.is_none(), "nothing of ours ends it");
        scene.pods.delete(&name, &DeleteParams::default()).await?;
        let over = scene.over("job").await?;
        let verdict = (condition(&over, "Succeeded"), exit_code(&over));
        ensure!(verdict == ("False/Cancelled".to_owned(), Some(9)), "{verdict:?}");
        scene.delete("job").await?;
        scene.gone(&over).await
    })
    .await
}

/// The native Job is gone, and for some time the Job says that its pod is left.
async fn goes_on_without_its_native_job(scene: &Scene, created: &Job) -> anyhow::Result<()> {
    let name = created.metadata.name.as_deref().context("a name")?;
    let left = scene.until(name, "its pod is left", |job| message(job, "Succeeded").contains("is left")).await?;
    ensure!(scene.native_job(created).await?.is_none(), "the native Job is there");
    ensure!(condition(&left, "Succeeded") == "Unknown/Running", "{}", condition(&left, "Succeeded"));
    tokio::time::sleep(QUIET).await;
    let pod = scene.pod_of(created).await?;
    let states = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let runs = states.filter_map(|container| container.state.as_ref()).any(|state| state.running.is_some());
    ensure!(runs, "it was to take longer than this: {:?}", pod.status);
    let later = scene.jobs.get(name).await?;
    ensure!(!is_over(&later), "it is over while its pod runs: {:?}", later.status);
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
        let strict = Recorder::start(scene.cluster).await?;
        let created = scene.create(&job("job", script)).await?;
        scene.says(&created, "ready").await?;
        scene.tolerate(Invariant::I8);
        scene.delete("job").await?;
        scene.patch("job", json!({"metadata": {"finalizers": null}})).await?;
        ensure!(scene.jobs.get_opt("job").await?.is_none(), "the Job is there");
        // Who does not tolerate it sees it.
        let seen = strict.check(&scene.client, &scene.namespace).await.err().map(|error| error.to_string());
        ensure!(seen.as_ref().is_some_and(|seen| seen.contains("I8")), "the recorder says {seen:?}");
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
