//! Jobs that are over without having run, by the hundred.

use anyhow::Context;
use ayatori_crds::Job;
use ayatori_tests::{
    product::{
        jobs::{is_over, job, with},
        scene::{BOUND, Scene},
    },
    suite::unique,
};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::api::ListParams;
use serde_json::json;

/// Requests at the same time.
const AT_ONCE: usize = 16;

/// Makes that many: each is born cancelled, of a class that does not exist, so that the controller ends it at once.
pub(crate) async fn finished(scene: &Scene, count: usize) -> anyhow::Result<Vec<Job>> {
    let batch = unique("batch");
    let create = async |number: usize| {
        let manifest = with(job(&format!("{batch}-{number}"), "exit 0"), "jobClassName", json!("none"));
        let mut manifest = with(manifest, "desiredState", json!("Cancelled"));
        manifest["metadata"]["labels"] = json!({"batch": batch});
        scene.create(&manifest).await
    };
    stream::iter(0..count).map(create).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    let of_batch = ListParams::default().labels(&format!("batch={batch}"));
    ayatori_tests::eventually("all are over", BOUND, async || {
        let jobs = scene.jobs.list(&of_batch).await?.items;
        anyhow::ensure!(jobs.len() == count && jobs.iter().all(is_over), "not yet");
        Ok(jobs)
    })
    .await
}

fn completion(job: &Job) -> anyhow::Result<Timestamp> {
    let completion = job.status.as_ref().and_then(|status| status.completion_time.as_ref());
    Ok(completion.context("a completionTime")?.0)
}

/// Sets a TTL that ends at that time.
pub(crate) async fn expire_at(scene: &Scene, job: &Job, expiry: Timestamp) -> anyhow::Result<Job> {
    let ttl = expiry.as_second() - completion(job)?.as_second();
    let name = job.metadata.name.as_deref().context("a name")?;
    scene.patch(name, json!({"spec": {"ttlSecondsAfterFinished": ttl}})).await
}
