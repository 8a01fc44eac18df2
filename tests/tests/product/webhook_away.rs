//! The finalizer, and what works while the webhook does not (spec section 3, B5, B7).

use anyhow::ensure;
use ayatori_crds::{Job, names::JOB_CLEANUP_FINALIZER};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{condition, job, with},
    own::alone,
    process::{Ayatori, Ports},
    scene::object,
    shared::in_namespace,
    webhooks::Webhooks,
};

fn is_guarded(job: &Job) -> bool {
    job.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLEANUP_FINALIZER)
}

#[tokio::test]
async fn the_finalizer_is_there_from_creation_on_and_a_replace_without_it_keeps_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let manifest = with(job("job", "exit 0"), "jobClassName", json!("no-such-class"));
        // In the answer to the creation: the webhook's work, no controller has seen it yet.
        let created = scene.create(&manifest).await?;
        ensure!(is_guarded(&created), "{:?}", created.metadata);

        // What replaces it must not race with the status that says that it waits.
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        let mut replacing = with(manifest, "ttlSecondsAfterFinished", json!(60));
        replacing["metadata"]["labels"] = json!({"replaced": "yes"});
        scene.kubectl().ok_with(&["replace", "-f", "-"], &replacing.to_string())?;
        // The second one changes no spec: only the dropped finalizer brings it before the webhook.
        scene
            .until("job", "the new generation is seen", |job| {
                job.status.as_ref().is_some_and(|status| status.observed_generation == job.metadata.generation)
            })
            .await?;
        replacing["metadata"]["labels"] = json!({"replaced": "again"});
        scene.kubectl().ok_with(&["replace", "-f", "-"], &replacing.to_string())?;
        let replaced = scene.jobs.get("job").await?;
        let label = replaced.metadata.labels.as_ref().and_then(|labels| labels.get("replaced"));
        ensure!(label.is_some_and(|label| label == "again") && is_guarded(&replaced), "{:?}", replaced.metadata);
        // No write of the replacing ones was without it for a moment, to be mended by the controller.
        let updates = scene.audit().writes("execution.ayatori.ddupan.top/jobs")?;
        let bare = |write: &&ayatori_tests::product::audit::Write| {
            write.answered["metadata"]["finalizers"] != json!([JOB_CLEANUP_FINALIZER])
        };
        ensure!(updates.iter().filter(bare).count() == 0, "{updates:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_the_webhook_metadata_deletion_and_finalizers_still_work_and_specs_do_not() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let waiting = |name: &str| with(job(name, "exit 0"), "jobClassName", json!("no-such-class"));
        scene.create(&waiting("job")).await?;
        scene.create(&waiting("other")).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        scene.until_condition("other", "Accepted", "False/JobClassNotFound").await?;
        process.kill();

        let refused = |result: Result<Job, kube::Error>| {
            result.is_err_and(|error| error.to_string().contains("failed calling webhook"))
        };
        let unseen = scene.jobs.create(&PostParams::default(), &object(&waiting("unseen"))?).await;
        ensure!(refused(unseen), "a Job is admitted unseen");
        let merge = async |patch: Value| scene.jobs.patch("job", &PatchParams::default(), &Patch::Merge(patch)).await;
        ensure!(refused(merge(json!({"spec": {"ttlSecondsAfterFinished": 5}})).await), "a spec is changed unseen");
        ensure!(refused(merge(json!({"metadata": {"finalizers": null}})).await), "a living Job loses its finalizer");

        merge(json!({"metadata": {"labels": {"edited": "yes"}, "annotations": {"edited": "yes"}}})).await?;
        scene.jobs.delete("job", &DeleteParams::background()).await?;
        let deleting = scene.jobs.get("job").await?;
        ensure!(deleting.metadata.deletion_timestamp.is_some() && is_guarded(&deleting));
        merge(json!({"metadata": {"finalizers": null}})).await?;
        ensure!(scene.jobs.get_opt("job").await?.is_none(), "it is there without its finalizer");

        // Deleted meanwhile, cleaned up by a controller whose webhook the API server cannot reach.
        scene.jobs.delete("other", &DeleteParams::background()).await?;
        let _beside = Ayatori::ready(scene.cluster, kubeconfig, Ports::BESIDE).await?;
        scene.until_gone("other").await
    })
    .await
}

#[tokio::test]
async fn a_job_whose_finalizer_was_lost_gets_it_back_before_anything_is_started() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        // As with failurePolicy Ignore and a dead webhook (B10, D2): stored without the finalizer.
        let kubectl = scene.kubectl();
        let saved = Webhooks::remove(&kubectl)?;
        scene.create(&job("job", "exit 0")).await?;
        ensure!(!is_guarded(&scene.jobs.get("job").await?));
        let _process = Ayatori::start(scene.cluster, kubeconfig, Ports::BESIDE)?;
        let over = scene.over("job").await?;
        saved.restore(&kubectl)?;
        ensure!(is_guarded(&over) && condition(&over, "Succeeded") == "True/Completed", "{over:?}");
        let guarded = scene.audit().writes("execution.ayatori.ddupan.top/jobs")?;
        let native = scene.audit().writes("batch/jobs")?;
        let guarded = guarded.iter().find(|write| write.verb == "patch").map(|write| &write.ended);
        let made = native.iter().find(|write| write.verb == "create").map(|write| &write.began);
        ensure!(guarded.is_some() && guarded <= made, "guarded {guarded:?}, native Job made {made:?}");
        Ok(())
    })
    .await
}
