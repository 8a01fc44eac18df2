//! The programs that a cluster runs besides Kubernetes are this crate's own executable, started with a marker as first
//! argument: see the crate's documentation for what each does.

use std::{
    io::Write,
    os::fd::AsFd,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::net::unix::pipe::Receiver;

use crate::{enter, folder::Folder, host, init, parts};

/// The first argument of a stage.
const MARKER: &str = "ayatori-cluster-stage";
/// The program of this crate that knows the stages.
const PROGRAM: &str = "ayatori-test-cluster";

/// Whether this executable runs stages when asked.
static THIS_EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// What a stage tells the one above, as a line of JSON on its output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The namespaces are made.
    Inside,
    /// Everything that was asked for is there.
    Ready(crate::Timings),
    /// It will not be; why, with the logs.
    Failed(String),
}

impl Report {
    /// Errors are no news here: they mean that nobody listens any more, and then the pipe's end says so too.
    pub(crate) fn send(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        }
    }
}

/// The pipe whose end says that the process above has ended. Read without a thread, so that nothing waits for it.
pub(crate) fn owner() -> anyhow::Result<Receiver> {
    let pipe = std::io::stdin().as_fd().try_clone_to_owned()?;
    Receiver::from_owned_fd(pipe).context("the input of a stage is a pipe")
}

/// Call this first in `main` of a program that starts clusters, before any thread exists: when the program was started
/// as a stage, it runs that and does not return. Test binaries cannot do this; they use the executable of this crate
/// that Cargo builds beside them.
pub fn run_if_asked() {
    if let Ok(path) = std::env::current_exe() {
        let _ = THIS_EXECUTABLE.set(path);
    }
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != MARKER) {
        return;
    }
    let stage = arguments.next().unwrap_or_default();
    let folder = Folder::open(Path::new(&arguments.next().unwrap_or_default()));
    let outcome = match stage.to_str() {
        Some("host") => host::run(&folder),
        Some("init") => init::run(&folder),
        Some("parts") => parts::run(&folder),
        Some("enter") => enter::run(&folder, arguments),
        _ => Err(anyhow::anyhow!("there is no stage {}", stage.display())),
    };
    let code = outcome.unwrap_or_else(|error| {
        crate::tools::say(&format!("stage {}: {error:#}", stage.display()));
        1
    });
    std::process::exit(code)
}

/// The command that runs a stage for the cluster of the folder.
pub(crate) fn command(stage: &str, folder: &Folder) -> anyhow::Result<Command> {
    let mut command = Command::new(executable()?);
    command.args([MARKER, stage]).arg(folder.dir());
    Ok(command)
}

fn executable() -> anyhow::Result<PathBuf> {
    if let Some(path) = THIS_EXECUTABLE.get() {
        return Ok(path.clone());
    }
    // target/debug/deps/suite-0123 -> target/debug/ayatori-test-cluster
    let this = std::env::current_exe().context("the path of this executable")?;
    let found = this.ancestors().skip(1).take(2).map(|dir| dir.join(PROGRAM)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(path),
        None => bail!("{PROGRAM} is not beside {}: build it with `cargo build -p ayatori-tests`", this.display()),
    }
}
