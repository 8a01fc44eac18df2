//! `cargo xtask demo`: the product at work in a real cluster, told by kubectl's own output.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};
use ayatori_tests::{Cluster, Options as ClusterOptions};

use crate::{image, progress};

mod kubectl;
mod story;

use kubectl::Kubectl;

/// Options of `cargo xtask demo`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Show it on an existing cluster instead of one of its own. Needs kubectl on the PATH, and `--image`.
    #[arg(long, requires = "image")]
    kubeconfig: Option<PathBuf>,
    /// The image of ayatori that the existing cluster can pull.
    #[arg(long, requires = "kubeconfig")]
    image: Option<String>,
    /// The image of the tasks; it needs `sh` and `true`.
    #[arg(long, requires = "kubeconfig", default_value = "busybox:1.37")]
    task_image: String,
    /// Leave a shell with kubectl ready at the end; the cluster of its own goes when the shell ends.
    #[arg(long)]
    shell: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let outcome = match (&options.kubeconfig, &options.image) {
        (Some(kubeconfig), Some(image)) => {
            let kubectl = Kubectl::new(PathBuf::from("kubectl"), kubeconfig.clone());
            story::tell(&kubectl, image, &options.task_image).and_then(|()| options.end(&kubectl))
        }
        _ => on_own_cluster(options),
    };
    outcome.context("the demo did not show what it should")
}

fn on_own_cluster(options: &Options) -> Result<()> {
    let image = image::build(image::NAME, image::Profile::Dev)?;
    let name = image.name().to_owned();
    let cluster = progress::step("starting a Kubernetes cluster", || {
        let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
        runtime.block_on(Cluster::start(ClusterOptions { images: vec![image], ..ClusterOptions::with_node() }))
    })?;
    let kubectl = Kubectl::new(cluster.kubectl_path().to_owned(), cluster.kubeconfig());
    let told = story::tell(&kubectl, &name, "localhost/busybox:1");
    if told.is_err() {
        eprintln!("{}", cluster.logs());
        eprintln!("{}", kubectl.diagnosis());
    }
    told?;
    options.end(&kubectl)?;
    cluster.stop()
}

impl Options {
    fn end(&self, kubectl: &Kubectl) -> Result<()> {
        if !self.shell {
            return Ok(());
        }
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        println!("\nA shell with kubectl ready; the Jobs are in namespace {}. Leave it with `exit`.", story::NAMESPACE);
        let status = kubectl.environment(&mut Command::new(shell)).status().context("cannot start a shell")?;
        // The exit code of a shell is that of its last command, which is nobody's fault.
        ensure!(status.code().is_some(), "the shell was killed");
        Ok(())
    }
}

/// Fails with what was expected and what was seen.
fn expect(what: &str, expected: &str, seen: &str) -> Result<()> {
    if seen.contains(expected) {
        return Ok(());
    }
    bail!("{what}: expected {expected:?}, saw {seen:?}")
}
