//! kubectl, with what it prints shown as a person would see it.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, ensure};

/// kubectl for one cluster.
pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn new(program: PathBuf, kubeconfig: PathBuf) -> Self {
        Self { program, kubeconfig }
    }

    /// Makes a program see this cluster and this kubectl.
    pub(super) fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let folder = self.program.parent().map(|folder| folder.to_owned()).unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
        command.env("KUBECONFIG", &self.kubeconfig)
    }

    fn run(&self, arguments: &[&str], input: Option<&str>) -> Result<Output> {
        let mut child = Command::new(&self.program)
            .env("KUBECONFIG", &self.kubeconfig)
            .args(arguments)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            pipe.write_all(input.as_bytes()).context("kubectl did not read its input")?;
        }
        child.wait_with_output().context("kubectl did not end")
    }

    /// Runs it, shows the command and its output, and fails where it fails.
    pub(super) fn show(&self, arguments: &[&str]) -> Result<String> {
        self.shown(arguments, None)
    }

    /// As [`Kubectl::show`], with a manifest on standard input.
    pub(super) fn show_with(&self, arguments: &[&str], manifest: &str) -> Result<String> {
        self.shown(arguments, Some(manifest))
    }

    fn shown(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        println!("\n$ kubectl {}", arguments.join(" "));
        let output = self.run(arguments, input)?;
        let text = both(&output);
        print!("{text}");
        ensure!(output.status.success(), "kubectl {} failed: {text}", arguments.join(" "));
        Ok(text)
    }

    /// Runs it, shows what it says, and fails where it succeeds.
    pub(super) fn show_refusal(&self, arguments: &[&str], manifest: &str) -> Result<String> {
        println!("\n$ kubectl {}", arguments.join(" "));
        let output = self.run(arguments, Some(manifest))?;
        let text = both(&output);
        print!("{text}");
        ensure!(!output.status.success(), "this was to be refused: {text}");
        Ok(text)
    }

    /// Runs it without a word; answers what it printed.
    pub(super) fn ask(&self, arguments: &[&str]) -> Result<String> {
        self.asked(arguments, None)
    }

    /// As [`Kubectl::ask`], with a manifest on standard input.
    pub(super) fn ask_with(&self, arguments: &[&str], manifest: &str) -> Result<String> {
        self.asked(arguments, Some(manifest))
    }

    fn asked(&self, arguments: &[&str], input: Option<&str>) -> Result<String> {
        let output = self.run(arguments, input)?;
        ensure!(output.status.success(), "kubectl {} failed: {}", arguments.join(" "), both(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What a person would look at first when something is wrong.
    pub(super) fn diagnosis(&self) -> String {
        let looks: [&[&str]; 4] = [
            &["get", "pods,jobs.batch,jobs.execution.ayatori.ddupan.top", "-A", "-o", "wide"],
            &["get", "events", "-A"],
            &["get", "jobs.execution.ayatori.ddupan.top", "-A", "-o", "yaml"],
            &["-n", "ayatori-system", "logs", "deployment/ayatori", "--tail=100"],
        ];
        let texts = looks.iter().map(|look| match self.run(look, None) {
            Ok(output) => format!("$ kubectl {}\n{}", look.join(" "), both(&output)),
            Err(error) => format!("{error:#}"),
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
