//! Stage `enter`: runs a program inside of a cluster that runs already, from outside, as its parent.
//!
//! Killing this stage kills the program; TERM, INT and HUP are handed on, so the program can be asked to end too.

use std::{
    ffi::OsString,
    fs,
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    process::ExitStatus,
};

use anyhow::Context;
use rustix::{
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

use crate::{folder::Folder, packages};

pub(crate) fn run(folder: &Folder, mut program: impl Iterator<Item = OsString>) -> anyhow::Result<i32> {
    let directory = std::env::current_dir().context("the current folder")?;
    // While both are in sight from here; the child belongs to the cluster's groups from its first moment on.
    folder.groups().enter_leaf()?;
    move_into_namespaces(folder)?;

    let mut command = Command::new("setpriv");
    // The child gets KILL when this process ends, however it ends: nobody else outside could reach it then.
    command.args(["--pdeathsig", "KILL", "--"]).arg(program.next().context("no program")?).args(program);
    // Entering a mount namespace moves to its root.
    command.current_dir(directory);
    // One thread: the kernel's "parent" of the line above is a thread, not a process.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(supervise(command))
}

/// Moves the calling thread, and no other, into the network of a cluster: what it binds and connects from now on is
/// there. Needs root.
pub(crate) fn enter_network(folder: &Folder) -> anyhow::Result<()> {
    let init = init(folder)?;
    move_into_thread_name_spaces(init.as_fd(), ThreadNameSpaceType::NETWORK).context("enter the cluster's network")
}

/// The first process inside.
fn init(folder: &Folder) -> anyhow::Result<OwnedFd> {
    let pid = fs::read_to_string(folder.init_pid()).context("the cluster has not started")?;
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw).context("the cluster's PID file is broken")?;
    pidfd_open(pid, PidfdFlags::empty()).context("the cluster has ended")
}

fn move_into_namespaces(folder: &Folder) -> anyhow::Result<()> {
    let init = init(folder)?;
    let mut spaces = ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::CONTROL_GROUP;
    if !packages::is_root() {
        spaces |= ThreadNameSpaceType::USER;
    }
    move_into_thread_name_spaces(init.as_fd(), spaces).context("enter the cluster's namespaces")
}

async fn supervise(mut command: Command) -> anyhow::Result<i32> {
    let (mut term, mut int, mut hup) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    let mut child = command.spawn().context("start setpriv")?;
    loop {
        let signal = tokio::select! {
            status = child.wait() => return Ok(code(status?)),
            _ = term.recv() => Signal::TERM,
            _ = int.recv() => Signal::INT,
            _ = hup.recv() => Signal::HUP,
        };
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }
}

/// As a shell says it: 128 and the signal's number for a killed program.
fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
