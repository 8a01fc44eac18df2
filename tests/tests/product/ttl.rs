//! `ttlSecondsAfterFinished` (spec F4; matrix: TTL extended near expiry, same name with a new UID).

use std::time::Duration;

use anyhow::{Context, ensure};
use ayatori_tests::eventually;
use kube::api::PostParams;
use serde_json::json;

use ayatori_tests::product::{
    jobs::{STANDARD, condition, is_over, job, uid, with},
    scene::{BOUND, QUIET, object},
    shared::in_namespace,
};

#[tokio::test]
async fn a_ttl_of_0_removes_the_job_and_its_native_job_as_soon_as_it_is_over() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let manifest = with(job("job", "exit 0"), "ttlSecondsAfterFinished", json!(0)).to_string();
        let said = scene.kubectl().ok_with(&["create", "-f", "-", "-o", "json"], &manifest)?;
        let warning =
            "Warning: spec.ttlSecondsAfterFinished is 0: the Job and its result are gone as soon as it is over\n";
        ensure!(said.stderr == warning, "{}", said.stderr);
        scene.gone(&serde_json::from_str(&said.stdout)?).await?;
        let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let last = writes.last().map(|write| write.sent["status"]["result"].clone());
        ensure!(last == Some(json!({"exitCode": 0, "reason": "Completed"})), "{last:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn each_of_the_three_ends_has_its_ttl() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let short = |job| with(job, "ttlSecondsAfterFinished", json!(1));
        let succeeded = scene.create(&short(job("succeeded", "exit 0"))).await?;
        let failed = scene.create(&short(job("failed", "exit 1"))).await?;
        let absent = with(job("cancelled", "exit 0"), "jobClassName", json!("no-such-class"));
        let cancelled = scene.create(&short(with(absent, "desiredState", json!("Cancelled")))).await?;
        for job in [&succeeded, &failed, &cancelled] {
            scene.gone(job).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_ttl_that_is_extended_before_its_time_wins_and_one_that_is_shortened_too() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let over = scene.run(&with(job("job", "exit 0"), "ttlSecondsAfterFinished", json!(4))).await?;
        scene.patch("job", json!({"spec": {"ttlSecondsAfterFinished": 3600}})).await?;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let later = scene.jobs.get("job").await.context("it was removed after its first TTL")?;
        ensure!(later.metadata.deletion_timestamp.is_none() && uid(&later) == uid(&over));
        scene.patch("job", json!({"spec": {"ttlSecondsAfterFinished": 1}})).await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn a_job_made_anew_under_the_same_name_has_nothing_of_the_old_one() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // I10. The new one is made the moment the name is free.
        let old = scene.create(&with(job("job", "exit 3"), "ttlSecondsAfterFinished", json!(0))).await?;
        let again = object(&with(job("job", "sleep 1"), "jobClassName", json!(STANDARD)))?;
        let new = eventually("the name is free", BOUND, async || {
            Ok(scene.jobs.create(&PostParams::default(), &again).await?)
        })
        .await?;
        ensure!(uid(&new) != uid(&old));
        let over = scene.until("job", "the new one is over", |job| uid(job) == uid(&new) && is_over(job)).await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        tokio::time::sleep(QUIET).await;
        let later = scene.jobs.get("job").await.context("the old one's TTL removed the new one")?;
        ensure!(uid(&later) == uid(&new) && later.metadata.deletion_timestamp.is_none());
        scene.gone(&old).await?;
        ensure!(scene.native_job(&new).await?.is_some() && scene.pods_of(&new).await?.len() == 1);
        Ok(())
    })
    .await
}
