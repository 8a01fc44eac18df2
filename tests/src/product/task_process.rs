//! The main process of a task on the node: to signal it and to see its end past kubelet and runtime.

use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;

use crate::{Cluster, eventually};

/// A process ends within milliseconds of its signal; its shim takes it off the list of processes as soon.
const ENDS: Duration = Duration::from_secs(60);

/// The process, by its number inside of the cluster's namespaces.
#[derive(Debug, Clone, Copy)]
pub struct TaskProcess {
    cluster: &'static Cluster,
    pid: u32,
}

impl TaskProcess {
    /// That of a pod with one container that runs; containerd knows it.
    pub fn of(cluster: &'static Cluster, pod: &Pod) -> anyhow::Result<Self> {
        let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
        let container = containers.and_then(<[_]>::first).and_then(|container| container.container_id.as_deref());
        let id = container.and_then(|id| id.strip_prefix("containerd://")).context("no container of containerd")?;
        let output = cluster.ctr()?.args(["tasks", "list"]).output()?;
        let list = String::from_utf8_lossy(&output.stdout);
        // TASK PID STATUS
        let mut rows = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.first() == Some(&id)).with_context(|| format!("{id} is not in {list}"))?;
        Ok(Self { cluster, pid: row.get(1).context("no PID")?.parse()? })
    }

    /// The shim of its pod: it lives on without containerd, and knows how the task ended.
    pub fn shim(&self) -> anyhow::Result<Self> {
        let output = self.cluster.command("cat")?.arg(format!("/proc/{}/status", self.pid)).output()?;
        let status = String::from_utf8_lossy(&output.stdout);
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).context("the task has ended")?;
        Ok(Self { cluster: self.cluster, pid: parent.trim().parse()? })
    }

    /// Sends it a signal, as somebody on the node.
    pub fn signal(&self, signal: &str) -> anyhow::Result<()> {
        self.cluster.signal_process(self.pid, signal)
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> anyhow::Result<()> {
        eventually(&format!("process {} of a task ends", self.pid), ENDS, async || {
            let there = self.cluster.command("test")?.args(["-d", &format!("/proc/{}", self.pid)]).status()?;
            ensure!(!there.success(), "it runs");
            Ok(())
        })
        .await
    }
}
