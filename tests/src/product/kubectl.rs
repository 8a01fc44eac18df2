//! kubectl, and what it says.

use std::{
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use crate::Cluster;
use anyhow::{Context, ensure};

/// kubectl as the administrator.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: Option<String>,
}

/// What one call said.
#[derive(Debug)]
pub struct Said {
    /// Whether it ended with 0.
    pub success: bool,
    /// What it answered.
    pub stdout: String,
    /// Warnings and errors.
    pub stderr: String,
}

impl Kubectl {
    /// As the administrator of a cluster, in the namespace `default`.
    pub fn of(cluster: &Cluster) -> Self {
        Self { program: cluster.kubectl_path().to_owned(), kubeconfig: cluster.kubeconfig(), namespace: None }
    }

    /// In another namespace.
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Starts it; standard input is a pipe.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().context("start kubectl")
    }

    /// Runs it with a manifest on its input.
    pub fn run(&self, arguments: &[&str], manifest: &str) -> anyhow::Result<Said> {
        let mut child = self.start(arguments)?;
        child.stdin.take().context("no input")?.write_all(manifest.as_bytes())?;
        Said::of(child)
    }

    /// As [`Self::run`], where failing is an error.
    pub fn ok_with(&self, arguments: &[&str], manifest: &str) -> anyhow::Result<Said> {
        let said = self.run(arguments, manifest)?;
        ensure!(said.success, "kubectl {}: {}", arguments.join(" "), said.stderr);
        Ok(said)
    }

    /// Without a manifest.
    pub fn ok(&self, arguments: &[&str]) -> anyhow::Result<Said> {
        self.ok_with(arguments, "")
    }
}

impl Said {
    /// Waits for its end.
    pub fn of(child: Child) -> anyhow::Result<Self> {
        let output = child.wait_with_output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Self { success: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) })
    }
}
