//! The client program while it runs.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use ayatori_tests::{
    Cluster,
    load::plan::{Plan, Report},
    tools::say,
};
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// For one line of its output, where it has nothing to wait for but a busy machine.
const SOON: Duration = Duration::from_secs(90);

/// One client. Dropping it ends it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Client {
    pub(crate) fn start(cluster: &Cluster, plan: &Plan) -> anyhow::Result<Self> {
        let mut command = cluster.command(env!("CARGO_BIN_EXE_ayatori-webhook-client"))?;
        command.arg(serde_json::to_string(plan)?);
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("start the client")?;
        let output = BufReader::new(child.stdout.take().context("its output")?).lines();
        Ok(Self { input: child.stdin.take(), output, child })
    }

    /// The next line that it says.
    pub(crate) async fn says<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let line = timeout(SOON, self.output.next_line()).await.context("the client says nothing")??;
        Ok(serde_json::from_str(&line.context("the client has ended")?)?)
    }

    /// Whether it still works.
    pub(crate) fn runs(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Ends its work, and reads what came of it.
    pub(crate) async fn report(mut self, of: &str) -> anyhow::Result<Report> {
        drop(self.input.take());
        let report: Report = self.says().await?;
        let leaves: Vec<usize> = report.leaves.values().map(Vec::len).collect();
        say(&format!(
            "{of}: {} reviews, {:.0} in a second, {} failed, {} connections, certificates seen {leaves:?}, p50 {:.1} ms, p99 {:.1} ms",
            report.reviews,
            report.rate(),
            report.failed,
            report.connections,
            report.p50.as_secs_f64() * 1e3,
            report.p99.as_secs_f64() * 1e3,
        ));
        Ok(report)
    }
}

/// Whether nothing failed, and something was asked.
pub(crate) fn lossless(report: &Report) -> anyhow::Result<()> {
    ensure!(report.failed == 0, "{} of {} failed: {:#?}", report.failed, report.reviews, report.failures);
    ensure!(report.reviews > 1000, "only {} reviews", report.reviews);
    Ok(())
}
