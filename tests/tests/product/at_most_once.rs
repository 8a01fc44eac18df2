//! The main promise: at most one execution is ever started for a Job, whatever happens to us (spec D2, D3, I1).

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::eventually;
use kube::api::{ListParams, PostParams};

use ayatori_tests::product::{
    jobs::{condition, exit_code, is_over, job, uid},
    own::alone,
    process::{Ayatori, Ports},
    scene::{BOUND, Scene, object},
    starts::Starts,
};

/// How many Jobs are on their way while processes die.
const JOBS: usize = 20;
/// From one creation to the next.
const BETWEEN: Duration = Duration::from_millis(300);
/// Deaths at least; they go on until the last Job is over.
const DEATHS: usize = 12;
/// 20 Jobs take some 10 s on this node when nobody dies.
const ALL_OVER: Duration = Duration::from_secs(180);

#[tokio::test]
async fn each_job_runs_exactly_once_while_two_processes_are_killed_again_and_again() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let counter = Starts::count(scene.cluster)?;
        let seed = RandomState::new().hash_one(0);
        let told = || format!("the seed of the deaths was {seed}");
        let outcome = tokio::try_join!(create_all(scene), slaughter(scene, kubeconfig, seed));
        // Whatever became of them: none ran twice.
        none_ran_twice(scene, &counter).with_context(told)?;
        let (created, ()) = outcome.with_context(told)?;
        each_ran_once(scene, &created, &counter).await.with_context(told)
    })
    .await
}

/// Each Job says when it starts, takes a moment, and ends with a code of its own.
async fn create_all(scene: &Scene) -> anyhow::Result<Vec<Job>> {
    let mut created = Vec::new();
    for number in 0..JOBS {
        let script = format!("{}; sleep 0.{number}; exit {}", Starts::TELL, number % 3);
        let (name, manifest) = (format!("job-{number}"), object(&job(&format!("job-{number}"), &script))?);
        // The webhook is one of those that die. An answer that was lost shows as a name that is taken.
        eventually("the Job is admitted", BOUND, async || {
            if scene.jobs.get_opt(&name).await?.is_none() {
                scene.jobs.create(&PostParams::default(), &manifest).await?;
            }
            Ok(())
        })
        .await?;
        created.push(scene.jobs.get(&name).await?);
        // Spread over many deaths, so that each process of each pair meets Jobs on every part of their way.
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(created)
}

/// Longest pause of a process: its watches and requests are behind by then, and its leaf is still valid.
const PAUSE_MS: u64 = 2_000;

/// Kills one of two processes after a random while and starts it again, until all Jobs are over. Now and then it only
/// pauses the one that is not the webhook's, and what that was about to do comes late.
async fn slaughter(scene: &Scene, kubeconfig: &Path, seed: u64) -> anyhow::Result<()> {
    let start = |ports| Ayatori::start(scene.cluster, kubeconfig, ports);
    let mut processes = [(Ports::MAIN, start(Ports::MAIN)?), (Ports::BESIDE, start(Ports::BESIDE)?)];
    let mut random = seed | 1;
    let mut deaths = 0;
    let all_over = async || -> anyhow::Result<bool> {
        let jobs = scene.jobs.list(&ListParams::default()).await?.items;
        Ok(jobs.len() == JOBS && jobs.iter().all(is_over))
    };
    let deadline = tokio::time::Instant::now() + ALL_OVER;
    while deaths < DEATHS || !all_over().await? {
        ensure!(tokio::time::Instant::now() < deadline, "after {deaths} deaths not all Jobs are over");
        // Marsaglia's xorshift: enough to be somewhere else each time.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // A process is ready after about half a second: some die before, most after.
        tokio::time::sleep(Duration::from_millis(200 + (random >> 8) % 1600)).await;
        let (ports, process) = &mut processes[usize::from(random >> 60 > 7)];
        match random >> 56 & 3 {
            0 if *ports == Ports::BESIDE => process.pause(Duration::from_millis((random >> 16) % PAUSE_MS)).await?,
            _ => std::mem::replace(process, start(*ports)?).kill(),
        }
        deaths += 1;
    }
    Ok(())
}

fn none_ran_twice(scene: &Scene, counter: &Starts) -> anyhow::Result<()> {
    let (pods, starts) = (scene.audit().pods_made()?, counter.by_uid()?);
    let once = |counts: &HashMap<String, usize>| counts.values().all(|count| *count == 1);
    ensure!(once(&pods) && once(&starts), "by Job UID: pods {pods:?}, starts {starts:?}");
    Ok(())
}

async fn each_ran_once(scene: &Scene, created: &[Job], counter: &Starts) -> anyhow::Result<()> {
    let (pods, starts) = (scene.audit().pods_made()?, counter.by_uid()?);
    ensure!(pods.len() == created.len() && starts.len() == created.len(), "pods {pods:?}, starts {starts:?}");
    for (number, job) in created.iter().enumerate() {
        let over = scene.jobs.get(&format!("job-{number}")).await?;
        ensure!(over.metadata.uid == job.metadata.uid, "another Job stands under the name {number}");
        ensure!(pods.contains_key(uid(&over)) && starts.contains_key(uid(&over)), "job-{number} did not run");
        let wanted = [("True/Completed", 0), ("False/ProcessFailed", 1), ("False/ProcessFailed", 2)][number % 3];
        let verdict = (condition(&over, "Succeeded"), exit_code(&over));
        ensure!(verdict == (wanted.0.to_owned(), Some(wanted.1)), "job-{number}: {verdict:?}");
    }
    Ok(())
}
