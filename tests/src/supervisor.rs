//! Starts the parts of a cluster, keeps their output, and starts again what ends: as a machine's init would.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    process::Stdio,
    time::Duration,
};

use anyhow::Context;
use tokio::{
    process::{Child, Command},
    sync::mpsc,
    time::sleep,
};

use crate::folder::Folder;

/// Between the end of a part and its next start; units of systemd have 1 to 10 s for kubelets.
const RESTART: Duration = Duration::from_secs(1);
/// How soon a part that a test has stopped starts again when it may.
const HELD: Duration = Duration::from_millis(50);

/// Starts parts; each writes to `logs/NAME.log`, and their ends are in `logs/supervisor.log`.
#[derive(Debug)]
pub(crate) struct Supervisor {
    folder: Folder,
    ends: mpsc::UnboundedSender<String>,
}

impl Supervisor {
    /// A supervisor, and the ends of its parts as they come: during the start one is a failure.
    pub(crate) fn new(folder: &Folder) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (ends, received) = mpsc::unbounded_channel();
        (Self { folder: folder.clone(), ends }, received)
    }

    /// Starts a part.
    pub(crate) fn start(&self, name: &str, command: Command) -> anyhow::Result<()> {
        let mut part = Part { name: name.to_owned(), command, folder: self.folder.clone(), ends: self.ends.clone() };
        let process = part.start()?;
        tokio::spawn(part.keep(process));
        Ok(())
    }
}

struct Part {
    name: String,
    command: Command,
    folder: Folder,
    ends: mpsc::UnboundedSender<String>,
}

impl Part {
    fn start(&mut self) -> anyhow::Result<Child> {
        let log = append(&self.folder, &self.name)?;
        self.command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = self.command.spawn().with_context(|| format!("start {}", self.name))?;
        fs::write(self.folder.pid(&self.name), process.id().unwrap_or_default().to_string())?;
        Ok(process)
    }

    async fn keep(mut self, mut process: Child) {
        loop {
            let status = process.wait().await;
            self.tell(format!(
                "{} ended: {}",
                self.name,
                status.map_or_else(|error| error.to_string(), |s| s.to_string())
            ));
            process = loop {
                sleep(RESTART).await;
                while self.folder.hold(&self.name).exists() {
                    sleep(HELD).await;
                }
                match self.start() {
                    Ok(process) => break process,
                    Err(error) => self.tell(format!("{error:#}")),
                }
            };
        }
    }

    fn tell(&self, text: String) {
        if let Ok(mut log) = append(&self.folder, "supervisor") {
            let _ = writeln!(log, "{} {text}", jiff::Timestamp::now());
        }
        let _ = self.ends.send(text);
    }
}

fn append(folder: &Folder, log: &str) -> anyhow::Result<fs::File> {
    OpenOptions::new().create(true).append(true).open(folder.log(log)).with_context(|| format!("open the log of {log}"))
}
