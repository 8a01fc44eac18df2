//! The owner's hold on the processes of a cluster.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use crate::{
    Timings,
    folder::Folder,
    logs,
    stage::{self, Report},
    tools::say,
};

/// A bound for the whole start with binaries at hand: its steps have their own (90 s each), with better messages.
const START: Duration = Duration::from_secs(240);
/// A bound for the end: usually half a second.
const END: Duration = Duration::from_secs(45);

/// The process at the top of a cluster, and the pipe whose end is the cluster's end.
#[derive(Debug)]
pub(crate) struct Host {
    process: Child,
    pipe: Option<ChildStdin>,
    ended: bool,
}

impl Host {
    /// Starts everything, and waits.
    pub(crate) fn start(folder: &Folder) -> anyhow::Result<(Self, Timings)> {
        let mut command = stage::command("host", folder)?;
        // A group of its own: Ctrl-C at a terminal is for the owner; this process has to clean up after it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut process = command.spawn().context("start the cluster's host process")?;
        let output = process.stdout.take().context("the output of the host process")?;
        let host = Self { pipe: process.stdin.take(), process, ended: false };
        // From here on dropping `host` ends everything.
        let (sender, report) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = report
            .recv_timeout(START)
            .map_err(|_| anyhow::anyhow!("no cluster after {} s\n{}", START.as_secs(), logs::tails(&folder.logs())))?;
        match serde_json::from_str(&line) {
            Ok(Report::Ready(timings)) => Ok((host, timings)),
            Ok(Report::Failed(why)) => bail!("the cluster did not start: {why}"),
            _ => bail!("the cluster's host process ended before the cluster was ready"),
        }
    }

    /// Ends the cluster and waits for it.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        drop(self.pipe.take());
        let deadline = Instant::now() + END;
        loop {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "the cluster did not end well: its host process says {status}");
                return Ok(());
            }
            if Instant::now() > deadline {
                // What it leaves, the next start sweeps.
                self.process.kill()?;
                self.process.wait()?;
                bail!("the cluster did not end within {} s", END.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            say(&format!("{error:#}"));
        }
    }
}
