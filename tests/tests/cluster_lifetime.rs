//! The suite of the test cluster's life: it starts, stands beside another, fails with its logs, and leaves nothing.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_tests::{Cluster, Options, eventually, suite::require_node};

/// Usually a tenth of a second.
const GONE: Duration = Duration::from_secs(60);

/// The folders of a cluster's name in all cgroup hierarchies.
fn cgroups(dir: &Path) -> Vec<PathBuf> {
    fn find(dir: &Path, name: &std::ffi::OsStr, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() == name {
                    found.push(entry.path());
                } else {
                    find(&entry.path(), name, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    find(Path::new("/sys/fs/cgroup"), dir.file_name().unwrap(), &mut found);
    found
}

/// The processes that have a cluster's data folder in their command line or among their mounts.
fn processes(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten().filter(|entry| entry.path().join("mountinfo").exists());
    entries
        .filter(|entry| {
            ["cmdline", "mountinfo"].iter().any(|file| {
                fs::read(entry.path().join(file)).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(dir))
            })
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn nothing_is_left(dir: &Path) -> anyhow::Result<()> {
    let (processes, cgroups) = (processes(dir), cgroups(dir));
    ensure!(processes.is_empty(), "processes {processes:?}");
    ensure!(cgroups.is_empty(), "cgroups {cgroups:?}");
    ensure!(!dir.exists(), "the data folder");
    Ok(())
}

/// An owner in a process of its own, with a cluster that has a node and a pod that sleeps.
fn start_owner() -> anyhow::Result<(Child, PathBuf)> {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_ayatori-test-cluster"))
        .arg("--node")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().context("no output")?).read_line(&mut line)?;
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").context("no cluster")?;
    let dir = Path::new(kubeconfig).parent().context("no folder")?.to_owned();
    ensure!(processes(&dir).len() > 7 && !cgroups(&dir).is_empty(), "this test does not see the cluster");
    Ok((owner, dir))
}

#[tokio::test]
async fn a_control_plane_serves_and_leaves_nothing() -> anyhow::Result<()> {
    let cluster = Cluster::start(Options::default()).await?;
    let version = cluster.client().await?.apiserver_version().await?;
    ensure!(version.git_version.starts_with("v1."), "{version:?}");
    let dir = cluster.dir().to_owned();
    ensure!(!processes(&dir).is_empty(), "this test does not see the cluster");
    cluster.stop()?;
    nothing_is_left(&dir)
}

#[tokio::test]
async fn a_dropped_cluster_leaves_nothing() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = Cluster::start(Options::with_node()).await?;
    let dir = cluster.dir().to_owned();
    let run = ["run", "pod", "--image=localhost/busybox:1", "--restart=Never", "--", "sleep", "86400"];
    ensure!(cluster.kubectl().args(run).status()?.success());
    let wait = ["wait", "--for=condition=Ready", "pod/pod", "--timeout=60s"];
    ensure!(cluster.kubectl().args(wait).status()?.success());
    drop(cluster);
    nothing_is_left(&dir)
}

#[tokio::test]
async fn two_nodes_at_once_have_groups_of_their_own() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let (one, two) = tokio::try_join!(Cluster::start(Options::with_node()), Cluster::start(Options::with_node()))?;
    for cluster in [&one, &two] {
        let pods = cgroups(cluster.dir()).iter().filter(|group| group.join("kubepods").is_dir()).count();
        ensure!(pods > 0, "no pods' group in {:?}", cgroups(cluster.dir()));
        let other = cluster.command("sh")?.args(["-c", "find /sys/fs/cgroup -name 'ayatori-*'"]).output()?;
        ensure!(other.stdout.is_empty(), "sees {}", String::from_utf8_lossy(&other.stdout));
        let nodes = cluster.kubectl().args(["get", "nodes", "-o", "name"]).output()?;
        ensure!(nodes.stdout == b"node/node\n");
    }
    let dir = one.dir().to_owned();
    one.stop()?;
    nothing_is_left(&dir)?;
    two.client().await?.apiserver_version().await.context("the second outlives the first")?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_owner() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let (mut owner, dir) = start_owner()?;
    // `Child::kill` is SIGKILL.
    owner.kill()?;
    owner.wait()?;
    eventually("everything is gone", GONE, async || nothing_is_left(&dir)).await
}

#[tokio::test]
async fn what_a_killed_host_process_leaves_is_swept_by_the_next_start() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let (mut owner, dir) = start_owner()?;
    let host = processes(&dir).into_iter().find(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("stage\0host\0"))
    });
    ensure!(Command::new("kill").args(["-s", "KILL", &host.context("no host process")?]).status()?.success());
    eventually("the processes are gone", GONE, async || {
        ensure!(processes(&dir).is_empty());
        Ok(())
    })
    .await?;
    owner.kill()?;
    owner.wait()?;
    let next = Cluster::start(Options::default()).await?;
    nothing_is_left(&dir)?;
    next.stop()
}

#[tokio::test]
async fn a_part_that_fails_shows_its_log() -> anyhow::Result<()> {
    let flags = [("kube-apiserver".to_owned(), vec!["--no-such-flag".to_owned()])].into();
    let error = Cluster::start(Options { flags, ..Options::default() }).await.unwrap_err();
    let error = format!("{error:#}");
    ensure!(error.contains("kube-apiserver ended") && error.contains("unknown flag: --no-such-flag"), "{error}");
    Ok(())
}
