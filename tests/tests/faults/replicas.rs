//! The processes that run behind the fault proxy.

use std::path::Path;

use anyhow::Context;
use ayatori_tests::{
    Cluster,
    fault_proxy::FaultProxy,
    product::process::{Ayatori, Ports},
};
use tokio::sync::Mutex;

/// One process or two, each behind its own door. No leader is elected: both act on every Job.
pub(crate) struct Replicas {
    cluster: &'static Cluster,
    pub(crate) proxy: FaultProxy,
    processes: Vec<Mutex<Option<Ayatori>>>,
}

impl Replicas {
    pub(crate) async fn start(cluster: &'static Cluster, kubeconfig: &Path, count: usize) -> anyhow::Result<Self> {
        let proxy = FaultProxy::start(cluster, kubeconfig, count).await?;
        let processes = (0..count).map(|_| Mutex::default()).collect();
        let replicas = Self { cluster, proxy, processes };
        for door in 0..count {
            replicas.start_again(door).await?;
        }
        Ok(replicas)
    }

    /// `kill -9`.
    pub(crate) async fn kill(&self, door: usize) -> anyhow::Result<()> {
        self.processes[door].lock().await.take().context("it does not run")?.kill();
        Ok(())
    }

    /// Starts one that does not run, and waits until it is ready.
    pub(crate) async fn start_again(&self, door: usize) -> anyhow::Result<()> {
        let ports = [Ports::MAIN, Ports::BESIDE][door];
        let process = Ayatori::ready(self.cluster, self.proxy.kubeconfig(door), ports).await?;
        *self.processes[door].lock().await = Some(process);
        Ok(())
    }
}
