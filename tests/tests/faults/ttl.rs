//! The removal of finished Jobs (spec F4, I9, I12; matrix: TTL for three terminal states, restart while waiting for TTL,
//! TTL extended near expiry).

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, ensure};
use ayatori_crds::{Job, JobState};
use ayatori_tests::{
    eventually,
    product::{
        jobs::{UNTIL_TERM, job, uid, with},
        own::alone,
        process::{Ayatori, Ports},
        scene::{BOUND, QUIET, Scene},
    },
    suite::setting,
    tools::say,
};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use serde_json::json;

use crate::{
    finished::{expire_at, finished},
    replicas::Replicas,
};

/// Requests of a test at the same time.
const AT_ONCE: usize = 16;

#[tokio::test]
async fn each_end_has_its_ttl_and_none_is_forgotten_or_early_while_the_process_is_away() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let (early, late) = tokio::try_join!(each_end(scene, "early"), each_end(scene, "late"))?;
        // The early ones end while nobody is there, the late ones after the restart, which takes half a second.
        let now = Timestamp::now();
        let (soon, later) = (in_whole_seconds(now, 3)?, in_whole_seconds(now, 7)?);
        for (jobs, expiry) in [(&early, soon), (&late, later)] {
            try_join_all(jobs.iter().map(|job| expire_at(scene, job, expiry))).await?;
        }
        process.kill();
        ensure!(Timestamp::now() < soon, "this machine was too slow: they may have gone before the process was killed");
        sleep_until(soon, SignedDuration::from_secs(1)).await;
        ensure!(living(scene).await?.len() == 6, "somebody else has deleted one");
        let _process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        for job in early.iter().chain(&late) {
            scene.gone(job).await?;
        }
        for (jobs, expiry) in [(&early, soon), (&late, later)] {
            ensure!(lags(scene, jobs, expiry)?.len() == jobs.len(), "one went without a DELETE");
        }
        Ok(())
    })
    .await
}

/// A Job in each of the three terminal states, with a TTL that is far away.
async fn each_end(scene: &Scene, prefix: &str) -> anyhow::Result<Vec<Job>> {
    let run = async |end: &str, script: &str| {
        let kept = with(job(&format!("{prefix}-{end}"), script), "ttlSecondsAfterFinished", json!(3600));
        scene.run(&kept).await
    };
    let cancelled = async {
        let kept = with(job(&format!("{prefix}-cancelled"), UNTIL_TERM), "ttlSecondsAfterFinished", json!(3600));
        let name = scene.create(&kept).await?.metadata.name.context("a name")?;
        scene.cancel(&name).await?;
        scene.over(&name).await
    };
    let (succeeded, failed, cancelled) =
        tokio::try_join!(run("succeeded", "exit 0"), run("failed", "exit 1"), cancelled)?;
    let ends = [&succeeded, &failed, &cancelled].map(JobState::of);
    ensure!(ends == [JobState::Succeeded, JobState::Failed, JobState::Cancelled], "{ends:?}");
    Ok(vec![succeeded, failed, cancelled])
}

#[tokio::test]
async fn no_accepted_edit_of_a_ttl_near_its_expiry_is_lost() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let _process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let (mut in_time, mut at_the_edge, mut too_late) = (0, 0, 0);
        for _ in 0..setting(1, 10) {
            // Twenty are extended 100 ms before, twenty more around the very moment.
            let jobs = finished(scene, 40).await?;
            let expiry = in_whole_seconds(Timestamp::now(), 3)?;
            try_join_all(jobs.iter().map(|job| expire_at(scene, job, expiry))).await?;
            let edits = jobs.iter().zip(0..).map(async |(job, number): (&Job, i64)| {
                let before = if number < 20 { 100 } else { 30 - number };
                sleep_until(expiry, SignedDuration::from_millis(-before)).await;
                let answer = extend(scene, job).await?;
                anyhow::Ok((number < 20, answer, job))
            });
            let edits = try_join_all(edits).await?;
            sleep_until(expiry, SignedDuration::from_secs(1)).await;
            tokio::time::sleep(QUIET).await;
            lags(scene, &jobs, expiry)?;
            for (early, accepted, job) in edits {
                let left = scene.jobs.get_opt(job.metadata.name.as_deref().unwrap_or_default()).await?;
                let lives = left.is_some_and(|left| uid(&left) == uid(job) && left.metadata.deletion_timestamp.is_none());
                ensure!(lives == accepted, "accepted: {accepted}, it lives: {lives}: {:?}", job.metadata.name);
                match (accepted, early) {
                    (true, true) => in_time += 1,
                    (true, false) => at_the_edge += 1,
                    (false, _) => too_late += 1,
                }
            }
        }
        say(&format!(
            "TTL edits: {in_time} accepted 100 ms before expiry, {at_the_edge} around it, {too_late} too late; none lost"
        ));
        ensure!(in_time > 0, "no edit came in time: nothing was tried");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn finished_jobs_cost_no_write_and_many_that_expire_together_all_go_none_early() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let replicas = Replicas::start(scene.cluster, kubeconfig, 1).await?;
        let idle = finished(scene, setting(100, 500)).await?;
        // Nothing waits for Events: the last of them may come later. There is one for each.
        eventually("the Events of all are told", BOUND, async || {
            let events = writes(&replicas).iter().filter(|write| write.starts_with("create events.k8s.io/")).count();
            ensure!(events == idle.len(), "{events} Events of {} Jobs", idle.len());
            Ok(())
        })
        .await?;
        // What is left to do for the last of them is done within this time.
        tokio::time::sleep(QUIET).await;
        let before = writes(&replicas);
        ensure!(!before.is_empty(), "the process writes by another way than this proxy");
        let window = Duration::from_secs(setting(10, 60));
        tokio::time::sleep(window).await;
        let written = writes(&replicas).split_off(before.len());
        ensure!(written.is_empty(), "in {} s: {written:?}", window.as_secs());
        say(&format!("idle: {} finished Jobs, 0 writes in {} s", idle.len(), window.as_secs()));

        let begin = Timestamp::now();
        let more = finished(scene, setting(100, 1500)).await?;
        let jobs: Vec<Job> = idle.into_iter().chain(more).collect();
        // An edit costs less than a life: the edits of all are done in time, on whatever machine.
        let took = Timestamp::now().duration_since(begin).as_secs();
        let expiry =
            in_whole_seconds(Timestamp::now(), 3 + took * 2 * i64::try_from(jobs.len())? / setting(100, 1500))?;
        let edits = stream::iter(&jobs).map(|job| expire_at(scene, job, expiry)).buffer_unordered(AT_ONCE);
        edits.try_collect::<Vec<_>>().await?;
        ensure!(Timestamp::now() < expiry, "the edits took too long: nothing expires together");
        sleep_until(expiry, SignedDuration::ZERO).await;
        eventually("all are gone", setting(BOUND, BOUND * 5), async || {
            let left = living(scene).await?.len();
            ensure!(left == 0, "{left} are there");
            Ok(())
        })
        .await?;
        let lags = lags(scene, &jobs, expiry)?;
        ensure!(lags.len() == jobs.len(), "{} removals of {} Jobs", lags.len(), jobs.len());
        let at = |percent: usize| lags[(lags.len() - 1) * percent / 100].as_millis();
        say(&format!(
            "TTL of {} Jobs at once: lag p50 {} ms, p99 {} ms, longest {} ms",
            lags.len(),
            at(50),
            at(99),
            at(100)
        ));
        Ok(())
    })
    .await
}

/// The next whole second after that many: as an expiry is one.
fn in_whole_seconds(now: Timestamp, seconds: i64) -> anyhow::Result<Timestamp> {
    Ok(Timestamp::from_second(now.as_second() + 1 + seconds)?)
}

async fn sleep_until(time: Timestamp, offset: SignedDuration) {
    let left = time.duration_since(Timestamp::now()) + offset;
    tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
}

async fn living(scene: &Scene) -> anyhow::Result<Vec<Job>> {
    Ok(scene.jobs.list(&ListParams::default()).await?.items)
}

/// Extends its TTL by an hour; answers whether that was accepted, which it is not once its deletion has begun (B5).
async fn extend(scene: &Scene, job: &Job) -> anyhow::Result<bool> {
    let name = job.metadata.name.as_deref().context("a name")?;
    match scene.patch(name, json!({"spec": {"ttlSecondsAfterFinished": 3600}})).await {
        Ok(edited) => Ok(edited.metadata.deletion_timestamp.is_none()),
        Err(error) => match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) if status.code == 404 || status.message.contains("is being deleted") => {
                Ok(false)
            }
            _ => Err(error),
        },
    }
}

/// How long after their expiry those of these Jobs were deleted that were; shortest first. None may be early, and each
/// deletion names the one version that it is for (I9).
fn lags(scene: &Scene, jobs: &[Job], expiry: Timestamp) -> anyhow::Result<Vec<SignedDuration>> {
    let names: BTreeSet<&str> = jobs.iter().filter_map(|job| job.metadata.name.as_deref()).collect();
    let mut lags = vec![];
    let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs")?;
    for removal in writes.iter().filter(|write| write.verb == "delete" && names.contains(write.name.as_str())) {
        let (name, conditions) = (&removal.name, &removal.sent["preconditions"]);
        let named = conditions["uid"].is_string() && conditions["resourceVersion"].is_string();
        ensure!(named, "{name} was deleted without preconditions: {}", removal.sent);
        let at: Timestamp = removal.began.parse()?;
        ensure!(at >= expiry, "{name} was to go at {expiry} and was deleted at {at}");
        lags.push(at.duration_since(expiry));
    }
    lags.sort_unstable();
    Ok(lags)
}

/// What the process has written so far, whatever it was.
fn writes(replicas: &Replicas) -> Vec<String> {
    let relayed = replicas.proxy.relayed();
    relayed.iter().filter(|relayed| relayed.asked.is_write()).map(|relayed| relayed.asked.to_string()).collect()
}
