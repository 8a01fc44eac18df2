//! A running ayatori, inside of a cluster's namespaces.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use crate::{Cluster, eventually};
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::binary;

/// Half a second on an idle machine.
const READY: Duration = Duration::from_secs(60);
/// The webhook answers for 3 s after the signal, then ends what it has within 15 s; the manifest allows 30 s.
pub const STOPPED: Duration = Duration::from_secs(30);

/// Until a program that was killed has closed its files: a moment, and a bound for a busy machine.
const CLOSED: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(5);

/// The ports of a process: all processes of a cluster share its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// Of the webhook.
    pub webhook: u16,
    /// Of /healthz and /readyz.
    pub probes: u16,
    /// Of /metrics.
    pub metrics: u16,
}

impl Ports {
    /// Those of the manifests. The webhook configurations of this suite point there.
    pub const MAIN: Self = Self { webhook: 9443, probes: 8081, metrics: 8443 };
    /// For a second process beside it.
    pub const BESIDE: Self = Self { webhook: 9444, probes: 8082, metrics: 8444 };
}

/// One process. Dropping it kills it.
#[derive(Debug)]
pub struct Ayatori {
    child: Child,
    log: PathBuf,
}

impl Ayatori {
    /// Starts it with a kubeconfig; does not wait for anything.
    pub fn start(cluster: &Cluster, kubeconfig: &Path, ports: Ports) -> anyhow::Result<Self> {
        Self::start_with(cluster, kubeconfig, ports, &[])
    }

    /// As [`Self::start`], with more arguments.
    pub fn start_with(cluster: &Cluster, kubeconfig: &Path, ports: Ports, arguments: &[&str]) -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Beside the logs of the cluster's parts, so that a failed test shows its end with theirs.
        let log = cluster.dir().join("logs").join(format!("ayatori-{number}.log"));
        let output = File::create(&log).with_context(|| format!("make {}", log.display()))?;
        let is_own_certificate = !arguments.iter().any(|argument| argument.starts_with("--webhook-cert-path"));
        let mut command = cluster.command(binary::path()?)?;
        command
            .args(["--namespace", "ayatori-system"])
            // A test waits for its end. Longer than a Job waits for anything that is to come.
            .args(["--start-grace-permanent=8s", "--start-grace-auth=8s"])
            .arg(format!("--webhook-port={}", ports.webhook))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{}", ports.probes))
            .arg(format!("--metrics-bind-address=127.0.0.1:{}", ports.metrics))
            // A certificate from files has the names that it has.
            .args(is_own_certificate.then_some("--webhook-cert-extra-name=127.0.0.1"))
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            // What is read off the log (its readiness) is in the default lines.
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        Ok(Self { child: command.spawn().context("start ayatori")?, log })
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn ready(cluster: &Cluster, kubeconfig: &Path, ports: Ports) -> anyhow::Result<Self> {
        let process = Self::start(cluster, kubeconfig, ports)?;
        process.is_ready().await?;
        Ok(process)
    }

    /// Waits until it says that it is ready.
    pub async fn is_ready(&self) -> anyhow::Result<()> {
        eventually("ayatori is ready", READY, async || {
            let log = self.log();
            ensure!(log.contains(" ready "), "it says: {log}");
            Ok(())
        })
        .await
    }

    /// What it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its open file descriptors, sockets included.
    pub fn open_files(&self) -> anyhow::Result<usize> {
        open_files(self.program().context("it has ended")?)
    }

    /// The PID of its program: the child runs it inside of the cluster's namespaces.
    fn program(&self) -> Option<u32> {
        let starter = self.child.id();
        let children = fs::read_to_string(format!("/proc/{starter}/task/{starter}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Sends TERM or INT.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("signal ayatori")
    }

    /// Stops it for this long, as a machine does that is short of processors: what it was about to send goes out later.
    pub async fn pause(&self, duration: Duration) -> anyhow::Result<()> {
        // It may have just begun, and have no program yet.
        let Some(program) = self.program().and_then(|program| Pid::from_raw(program.cast_signed())) else {
            return Ok(());
        };
        kill_process(program, Signal::STOP).context("stop ayatori")?;
        tokio::time::sleep(duration).await;
        kill_process(program, Signal::CONT).context("let ayatori go on")
    }

    /// `kill -9`: it ends at once, whatever it was doing.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let program = self.program();
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The program dies with its starter, but a little later: the next one may want its ports.
        let open = || program.is_some_and(|program| open_files(program).is_ok_and(|open| open > 0));
        for _ in (0..CLOSED.as_millis() / LOOK.as_millis()).take_while(|_| open()) {
            thread::sleep(LOOK);
        }
    }

    /// Its exit code, once it ends by itself.
    pub async fn ended(&mut self, bound: Duration) -> anyhow::Result<i32> {
        let log = self.log.clone();
        eventually("ayatori ends", bound, async || {
            let status = self.child.try_wait()?;
            let said = || format!("it runs, and says: {}", fs::read_to_string(&log).unwrap_or_default());
            status.with_context(said)?.code().context("killed")
        })
        .await
    }
}

impl Drop for Ayatori {
    fn drop(&mut self) {
        self.end();
    }
}

fn open_files(process: u32) -> anyhow::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}
