//! The main promise: at most one execution is ever started for a Job, whatever happens to us (spec D2, D3, I1).

use std::{
    collections::HashMap,
    fs::{self, File},
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_crds::{Job, names::JOB_UID_LABEL};
use ayatori_tests::{Cluster, eventually};
use kube::api::{ListParams, PostParams};

use ayatori_tests::product::{
    jobs::{condition, exit_code, is_over, job, uid},
    own::alone,
    process::{Ayatori, Ports},
    scene::{BOUND, Scene, object},
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
        let counter = Counter::start(scene.cluster)?;
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
        let script = format!("wget -q -O - {}/$AYATORI_JOB_UID; sleep 0.{number}; exit {}", Counter::URL, number % 3);
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

/// Kills one of two processes after a random while and starts it again, until all Jobs are over.
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
        std::mem::replace(process, start(*ports)?).kill();
        deaths += 1;
    }
    Ok(())
}

/// Pods that were ever made, by Job UID.
fn pods_made(scene: &Scene) -> anyhow::Result<HashMap<String, usize>> {
    let mut made = HashMap::new();
    for pod in scene.audit().writes("/pods")?.iter().filter(|write| write.verb == "create") {
        let uid = pod.answered["metadata"]["labels"][JOB_UID_LABEL].as_str().unwrap_or("none");
        *made.entry(uid.to_owned()).or_default() += 1;
    }
    Ok(made)
}

fn none_ran_twice(scene: &Scene, counter: &Counter) -> anyhow::Result<()> {
    let (pods, starts) = (pods_made(scene)?, counter.starts()?);
    let once = |counts: &HashMap<String, usize>| counts.values().all(|count| *count == 1);
    ensure!(once(&pods) && once(&starts), "by Job UID: pods {pods:?}, starts {starts:?}");
    Ok(())
}

async fn each_ran_once(scene: &Scene, created: &[Job], counter: &Counter) -> anyhow::Result<()> {
    let (pods, starts) = (pods_made(scene)?, counter.starts()?);
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

/// What the tasks tell when they start: a web server inside of the cluster's network that logs each path asked for.
struct Counter {
    server: Child,
    log: PathBuf,
}

impl Counter {
    const URL: &'static str = "http://10.89.0.1:7000/start";

    fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        let log = cluster.dir().join("starts.log");
        let home = cluster.dir().join("starts");
        fs::create_dir_all(&home)?;
        let arguments = ["httpd", "-f", "-vv", "-p", "10.89.0.1:7000", "-h"];
        let mut command = cluster.command("busybox")?;
        command.args(arguments).arg(home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { server: command.spawn().context("start the web server")?, log })
    }

    /// By Job UID.
    fn starts(&self) -> anyhow::Result<HashMap<String, usize>> {
        let mut starts = HashMap::new();
        for line in fs::read_to_string(&self.log)?.lines() {
            if let Some((_, uid)) = line.split_once("url:/start/") {
                *starts.entry(uid.trim().to_owned()).or_default() += 1;
            }
        }
        Ok(starts)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
