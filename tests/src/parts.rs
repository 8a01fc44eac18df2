//! Stage `parts`: makes the inside of the namespaces ready, starts the parts of the cluster, and ends with its input.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Instant,
};

use anyhow::{Context, bail, ensure};
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, unix::pipe::Receiver},
    process::Command,
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    Timings,
    control_plane::{self, API_PORT},
    folder::Folder,
    logs, node, private_mounts, relay,
    stage::{self, Report},
    supervisor::Supervisor,
};

pub(crate) fn run(folder: &Folder) -> anyhow::Result<i32> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(live(folder))?;
    Ok(0)
}

async fn live(folder: &Folder) -> anyhow::Result<()> {
    let mut owner = stage::owner()?;
    Report::Inside.send();
    // The first byte says that the machine's side is ready.
    ensure!(owner.read(&mut [0]).await? > 0, "the owner ended before the start");
    let (supervisor, ends) = Supervisor::new(folder);
    tokio::select! {
        () = end_of(&mut owner) => return Ok(()),
        report = start(folder, &supervisor, ends) => report.send(),
    }
    end_of(&mut owner).await;
    Ok(())
}

async fn end_of(owner: &mut Receiver) {
    while owner.read(&mut [0; 16]).await.is_ok_and(|bytes| bytes > 0) {}
}

async fn start(folder: &Folder, supervisor: &Supervisor, mut ends: UnboundedReceiver<String>) -> Report {
    let outcome = tokio::select! {
        outcome = everything(folder, supervisor) => outcome,
        Some(end) = ends.recv() => Err(anyhow::anyhow!(end)),
    };
    match outcome {
        Ok(timings) => Report::Ready(timings),
        Err(error) => Report::Failed(format!("{error:#}\n{}", logs::tails(&folder.logs()))),
    }
}

async fn everything(folder: &Folder, supervisor: &Supervisor) -> anyhow::Result<Timings> {
    let start = Instant::now();
    let plan = folder.plan()?;
    private_mounts::scratch(&folder.scratch())?;
    if plan.node {
        folder.groups().remount()?;
        private_mounts::cover_fixed_folders(&folder.scratch())?;
    }
    links().await?;
    let api = SocketAddr::from((Ipv4Addr::LOCALHOST, API_PORT));
    tokio::spawn(relay::inside(UnixListener::bind(folder.api_socket())?, api));

    let control_plane = async {
        let client = control_plane::start(folder, &plan, supervisor).await?;
        Ok((client, start.elapsed()))
    };
    // The runtime and its images need no API server: both start at once.
    let runtime = async { if plan.node { node::start_runtime(folder, &plan, supervisor).await } else { Ok(()) } };
    let ((client, control_plane), ()) = tokio::try_join!(control_plane, runtime)?;
    if plan.node {
        node::join(folder, &plan, supervisor, &client).await?;
    }
    control_plane::wait_for_service_account(&client, "default").await?;
    Ok(Timings { control_plane, all: start.elapsed() })
}

/// Loopback, and a link with the address of API server and node: neither takes a loopback address for that.
async fn links() -> anyhow::Result<()> {
    let address = format!("{}/32", crate::pki::NODE_ADDRESS);
    let commands: [&[&str]; 5] = [
        &["link", "set", "lo", "up"],
        // A bridge because kernels without the dummy device exist.
        &["link", "add", "api", "type", "bridge"],
        &["addr", "add", &address, "dev", "api"],
        &["link", "set", "api", "up"],
        // Services: without any route the API server's calls of webhooks end before kube-proxy's rules see them.
        &["route", "add", control_plane::SERVICES, "dev", "api"],
    ];
    for arguments in commands {
        run_to_end(Command::new("ip").args(arguments)).await?;
    }
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("let the node forward packets")
}

/// Runs a program that ends by itself; its messages are in the error.
pub(crate) async fn run_to_end(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().await.with_context(|| format!("start {:?}", command.as_std()))?;
    if !output.status.success() {
        bail!("{:?}: {}: {}", command.as_std(), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
