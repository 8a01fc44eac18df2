//! Stage `host`: the part of a cluster that is outside of its namespaces. It makes what outlives a kill of everything
//! inside (the cgroups), relays the API server to a loopback port, and cleans up when its owner is gone.

use std::{fs, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::{cgroups::Groups, folder::Folder, packages, pki, relay, stage, stage::Report};

/// A bound for the making of namespaces: milliseconds, unless the machine is drowning.
const NAMESPACES: Duration = Duration::from_secs(20);
/// The kernel kills all processes inside in well under a second; a big pod's memory takes longer to free.
const END: Duration = Duration::from_secs(10);

pub(crate) fn run(folder: &Folder) -> anyhow::Result<i32> {
    let _lock = folder.lock()?;
    Folder::sweep();
    let outcome = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(folder));
    if let Err(error) = &outcome {
        Report::Failed(format!("{error:#}")).send();
    }
    folder.remove()?;
    outcome.map(|()| 0)
}

async fn serve(folder: &Folder) -> anyhow::Result<()> {
    let plan = folder.plan()?;
    pki::write(&folder.pki())?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("a loopback port")?;
    let server = format!("https://{}", listener.local_addr()?);
    fs::write(folder.kubeconfig(), pki::kubeconfig(&folder.pki(), "admin", &server)?)?;
    tokio::spawn(relay::outside(listener, folder.api_socket()));

    let groups = if plan.node { Groups::plan(folder.name())? } else { Groups::default() };
    folder.write_groups(&groups)?;
    groups.create()?;
    let mut unshare = groups.during(|| unshare(folder)?.spawn().context("start unshare"))??;
    let outcome = relay_reports(folder, &groups, &mut unshare).await;
    end(unshare).await?;
    outcome
}

fn unshare(folder: &Folder) -> anyhow::Result<Command> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--cgroup", "--fork", "--mount-proc", "--kill-child"]);
    if !packages::is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let init = stage::command("init", folder)?;
    command.arg("--").arg(init.get_program()).args(init.get_args());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// Hands the reports of `parts` to the owner until the owner or the cluster ends.
async fn relay_reports(folder: &Folder, groups: &Groups, unshare: &mut Child) -> anyhow::Result<()> {
    let mut reports = BufReader::new(unshare.stdout.take().context("the output of unshare")?).lines();
    let first = timeout(NAMESPACES, reports.next_line()).await.context("no namespaces within 20 s")??;
    ensure!(matches!(parse(first.as_deref()), Some(Report::Inside)), "no namespaces: see the messages of `unshare`");
    let pid = unshare.id().context("unshare has ended")?;
    fs::write(folder.init_pid(), only_child(pid)?)?;
    groups.settle()?;
    unshare.stdin.as_mut().context("the input of unshare")?.write_all(b"go\n").await?;

    let mut owner = stage::owner()?;
    let mut byte = [0];
    loop {
        tokio::select! {
            _ = owner.read(&mut byte) => return Ok(()),
            line = reports.next_line() => match parse(line?.as_deref()) {
                Some(report) => report.send(),
                None => anyhow::bail!("the cluster ended by itself"),
            },
        }
    }
}

fn parse(line: Option<&str>) -> Option<Report> {
    serde_json::from_str(line?).ok()
}

fn only_child(pid: u32) -> anyhow::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).context("the first process inside")
}

/// Closes the pipe, at which `parts` and with it everything inside ends; then nothing is left to hold the groups.
async fn end(mut unshare: Child) -> anyhow::Result<()> {
    drop(unshare.stdin.take());
    if timeout(END, unshare.wait()).await.is_err() {
        unshare.start_kill().context("kill unshare")?;
        timeout(END, unshare.wait()).await.context("unshare does not end")??;
        // `--kill-child` has sent the signal; this process is not told when it has worked.
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}
