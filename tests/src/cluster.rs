//! A cluster as its owner sees it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    client,
    folder::{Folder, Plan},
    host_process::Host,
    image::Image,
    logs,
    network::Network,
    node,
    packages::{self, FOR_NAMESPACES, FOR_NODE},
    stage,
    tools::{self, Module},
};

/// What a cluster shall have.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A node, so that pods run. Needs root.
    pub node: bool,
    /// Images of the node, besides `localhost/busybox:1`, which it always has.
    pub images: Vec<Image>,
    /// An audit log, see [`Cluster::audit_log`].
    pub audit: bool,
    /// More flags of etcd, kube-apiserver, kube-controller-manager or kube-scheduler by its name.
    pub flags: BTreeMap<String, Vec<String>>,
}

impl Options {
    /// A control plane with a node.
    #[must_use]
    pub fn with_node() -> Self {
        Self { node: true, ..Self::default() }
    }
}

/// How long a start took, from the first process inside.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Timings {
    /// Until the API server was ready.
    pub control_plane: Duration,
    /// Until everything was there that was asked for.
    pub all: Duration,
}

/// A running cluster. It ends with this value and at the latest with this process.
#[derive(Debug)]
pub struct Cluster {
    folder: Folder,
    plan: Plan,
    timings: Timings,
    host: Host,
}

impl Cluster {
    /// Starts a cluster; builds its programs if the cache has none (the first time this takes minutes).
    ///
    /// # Errors
    /// Something is missing on this machine, or a part does not start: then its log is in the error.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let (folder, plan) = tokio::task::spawn_blocking(move || prepare(&options)).await??;
        let (host, timings) = tokio::task::spawn_blocking({
            let folder = folder.clone();
            move || Host::start(&folder)
        })
        .await??;
        let seconds = |time: Duration| time.as_secs_f64();
        let (control_plane, all) = (seconds(timings.control_plane), seconds(timings.all));
        tools::say(&format!("cluster: API server ready after {control_plane:.1} s, everything after {all:.1} s"));
        Ok(Self { folder, plan, timings, host })
    }

    /// The kubeconfig of the administrator, for programs on this machine.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig()
    }

    /// The kubeconfig of the administrator for programs inside, see [`Self::command`].
    #[must_use]
    pub fn inside_kubeconfig(&self) -> PathBuf {
        self.folder.inside_kubeconfig("admin")
    }

    /// A new client of the administrator. It belongs to the Tokio runtime in which it is made.
    ///
    /// # Errors
    /// The cluster has ended.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        client::connect(&self.kubeconfig()).await
    }

    /// kubectl as the administrator.
    #[must_use]
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.kubectl_path());
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Where kubectl is.
    #[must_use]
    pub fn kubectl_path(&self) -> &Path {
        self.plan.program("kubectl").unwrap_or_else(|_| Path::new("kubectl"))
    }

    /// A program to run inside of the cluster's namespaces, with `KUBECONFIG` set: its loopback is that of the API
    /// server, its files are this machine's. TERM, INT and HUP to the returned process reach the program; killing it
    /// kills the program.
    ///
    /// # Errors
    /// The executable that runs it cannot be found.
    pub fn command(&self, program: impl AsRef<Path>) -> anyhow::Result<Command> {
        let mut command = stage::command("enter", &self.folder)?;
        command.arg(program.as_ref()).env("KUBECONFIG", self.inside_kubeconfig());
        Ok(command)
    }

    /// containerd's own client, which sees what the kubelet has made.
    ///
    /// # Errors
    /// The cluster has no node.
    pub fn ctr(&self) -> anyhow::Result<Command> {
        let mut command = self.command(self.plan.program("ctr")?)?;
        command.args(node::runtime_arguments(&self.folder));
        Ok(command)
    }

    /// Where containerd looks for registries by their host names.
    pub(crate) fn registries(&self) -> PathBuf {
        self.folder.registries()
    }

    /// The cluster's network, for servers and clients in this process.
    ///
    /// # Errors
    /// The cluster has ended.
    pub fn network(&self) -> anyhow::Result<Network> {
        Network::of(&self.folder)
    }

    /// Sends a signal (`KILL`, `STOP`, `CONT`, …) to a part, such as `kubelet`. One that ends starts again a second
    /// later.
    ///
    /// # Errors
    /// There is no such part, or it has ended.
    pub fn signal(&self, part: &str, signal: &str) -> anyhow::Result<()> {
        let pid = fs::read_to_string(self.folder.pid(part)).with_context(|| format!("the cluster has no {part}"))?;
        self.signal_process(pid.trim().parse()?, signal).with_context(|| format!("signal {part}"))
    }

    /// Sends a signal to a process inside, by its number there.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal_process(&self, pid: u32, signal: &str) -> anyhow::Result<()> {
        let output = self.command("sh")?.args(["-c", &format!("kill -s {signal} {pid}")]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// Kills a part, which then stays away until [`Self::start_part`].
    ///
    /// # Errors
    /// There is no such part, or it has ended.
    pub fn stop_part(&self, part: &str) -> anyhow::Result<()> {
        fs::write(self.folder.hold(part), "")?;
        self.signal(part, "KILL")
    }

    /// Lets a stopped part start again, which it does within a second.
    ///
    /// # Errors
    /// The part was not stopped.
    pub fn start_part(&self, part: &str) -> anyhow::Result<()> {
        fs::remove_file(self.folder.hold(part)).with_context(|| format!("{part} is not stopped"))
    }

    /// Gives an image to the node.
    ///
    /// # Errors
    /// The cluster has no node, or containerd refuses the image.
    pub async fn load_image(&self, image: &Image) -> anyhow::Result<()> {
        ensure!(self.plan.node, "the cluster has no node");
        let archive = write_image(&self.folder, image)?;
        let mut command = self.ctr()?;
        command.args(["images", "import"]).arg(archive);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        ensure!(output.status.success(), "import {}: {}", image.name(), String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// The end of every part's log, for a failed test.
    #[must_use]
    pub fn logs(&self) -> String {
        logs::tails(&self.folder.logs())
    }

    /// The audit log of the API server: a JSON event on each line.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.audit_log()
    }

    /// The cluster's data folder; tests may put files there. It is gone after the cluster's end.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How long the start took.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// Ends the cluster and waits until nothing of it is left, as dropping it does, but tells of failures.
    ///
    /// # Errors
    /// Something could not be removed.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.host.end()
    }
}

/// Everything that has to happen on this machine before.
fn prepare(options: &Options) -> anyhow::Result<(Folder, Plan)> {
    packages::require(FOR_NAMESPACES)?;
    let mut plan = Plan { node: options.node, audit: options.audit, flags: options.flags.clone(), ..Plan::default() };
    let mut add = |module, names: &[&str]| -> anyhow::Result<()> {
        for name in names {
            plan.programs.insert((*name).to_owned(), tools::program(module, name)?);
        }
        Ok(())
    };
    add(Module::Etcd, &["etcd"])?;
    add(Module::Kubernetes, &["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"])?;
    let mut images = Vec::new();
    if options.node {
        ensure!(packages::is_root(), "a node needs root");
        packages::require(FOR_NODE)?;
        add(Module::Kubernetes, &["kubelet", "kube-proxy"])?;
        add(Module::Node, &["containerd", "containerd-shim-runc-v2", "ctr", "bridge", "loopback", "host-local"])?;
        plan.programs.insert("runc".to_owned(), packages::find("runc").context("there is no runc")?);
        images = vec![Image::pause()?, Image::busybox()?];
        images.extend(options.images.iter().cloned());
    }
    let folder = Folder::create()?;
    plan.images = images.iter().map(|image| write_image(&folder, image)).collect::<anyhow::Result<_>>()?;
    folder.write_plan(&plan)?;
    Ok((folder, plan))
}

fn write_image(folder: &Folder, image: &Image) -> anyhow::Result<PathBuf> {
    let path = folder.path("images").join(image.name().replace(['/', ':', '@'], "_")).with_extension("tar");
    fs::write(&path, image.archive()).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}
