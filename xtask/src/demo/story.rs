//! What the demo shows, step by step. Each step fails where it did not happen.

use std::{fs, thread, time::Duration};

use anyhow::{Context, Result, bail, ensure};

use super::{expect, kubectl::Kubectl};
use crate::{image, workspace};

/// Where the demo's Jobs live.
pub(super) const NAMESPACE: &str = "ayatori-demo";

/// How long a Job of the demo may take; one takes about 4 s.
const JOB_TIMEOUT: &str = "--timeout=120s";

/// Installs ayatori and shows it at work. `image` is its own image, `task_image` that of the tasks.
pub(super) fn tell(kubectl: &Kubectl, image: &str, task_image: &str) -> Result<()> {
    is_free(kubectl)?;
    install(kubectl, image)?;
    offer_a_class(kubectl)?;
    a_job_runs(kubectl, task_image)?;
    a_job_fails(kubectl, task_image)?;
    a_bad_job_is_refused(kubectl)?;
    a_job_goes_by_its_ttl(kubectl, task_image)?;
    println!("\nAll of it happened: installed, ran, failed with its code, refused, removed.");
    Ok(())
}

fn title(text: &str) {
    println!("\n── {text} ──");
}

/// Only an installation that a demo made, whose namespace tells, is made anew; and a second default class would keep the
/// Jobs of others waiting.
fn is_free(kubectl: &Kubectl) -> Result<()> {
    let exists = |kind: &str, name: &str| {
        let found = kubectl.ask(&["get", kind, name, "--ignore-not-found", "-o=name"])?;
        Ok::<_, anyhow::Error>(!found.trim().is_empty())
    };
    ensure!(
        exists("namespace", NAMESPACE)? || !exists("namespace", "ayatori-system")?,
        "ayatori is installed in this cluster already, and not by a demo: it is left as it is"
    );
    if !exists("crd", "jobclasses.execution.ayatori.ddupan.top")? {
        return Ok(());
    }
    let defaults = kubectl.ask(&["get", "jobclasses", "-o", DEFAULT_CLASSES])?;
    let others: Vec<&str> =
        defaults.lines().filter_map(|line| line.strip_suffix(" true")).filter(|name| *name != "standard").collect();
    ensure!(
        others.is_empty(),
        "{} is this cluster's default class: a second one would keep Jobs waiting",
        others.join(", ")
    );
    Ok(())
}

fn install(kubectl: &Kubectl, image: &str) -> Result<()> {
    title("Install ayatori");
    let root = workspace::root();
    // First, as it says whose installation this is.
    kubectl.show_with(
        &["apply", "-f", "-"],
        &format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n"),
    )?;
    kubectl.show(&["apply", "-k", path(&root.join("crds"))?.as_str()])?;
    let definitions = kubectl.ask(&["kustomize", path(&root.join("crds"))?.as_str()])?;
    kubectl.show_with(&["wait", "--for=condition=Established", "--timeout=30s", "-f", "-"], &definitions)?;
    let manifests = kubectl.ask(&["kustomize", path(&root.join("deploy/self-managed"))?.as_str()])?;
    ensure!(manifests.contains(image::NAME), "the deployment names no image {}", image::NAME);
    kubectl.show_with(&["apply", "-f", "-"], &manifests.replace(image::NAME, image))?;
    kubectl.show(&["-n", "ayatori-system", "rollout", "status", "deployment/ayatori", "--timeout=120s"])?;
    Ok(())
}

/// A class a line, with its mark.
const DEFAULT_CLASSES: &str = r#"jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations.execution\.ayatori\.ddupan\.top/is-default-job-class}{"\n"}{end}"#;

fn offer_a_class(kubectl: &Kubectl) -> Result<()> {
    title("An administrator offers a class");
    // On a cluster that saw the demo before.
    kubectl.ask(&["-n", NAMESPACE, "delete", JOBS, "--all", "--ignore-not-found"])?;
    let class = sample("class.yaml", None)?;
    // The webhook is ready, but its Service's endpoints may take a moment to reach the rules of every node.
    retried(|| kubectl.ask_with(&["apply", "--dry-run=server", "-f", "-"], &class))?;
    kubectl.show_with(&["apply", "-f", "-"], &class)?;
    kubectl.show(&["wait", "--for=condition=Ready", "jobclass/standard", "--timeout=30s"])?;
    kubectl.show(&["get", "jobclasses"])?;
    Ok(())
}

/// The whole resource name: `job` alone means batch/v1.
const JOBS: &str = "jobs.execution.ayatori.ddupan.top";

fn a_job_runs(kubectl: &Kubectl, task_image: &str) -> Result<()> {
    title("A good Job runs to exit 0 in a real container");
    kubectl.show_with(&["-n", NAMESPACE, "create", "-f", "-"], &sample("job.yaml", Some(task_image))?)?;
    until_over(kubectl, "hello")?;
    let table = kubectl.show(&["-n", NAMESPACE, "get", "ajob", "hello", "-o", "wide"])?;
    expect("the reason", "Completed", &table)?;
    expect("the class that was written in", "standard", &field(kubectl, "hello", "{.spec.jobClassName}")?)?;
    ensure!(field(kubectl, "hello", "{.status.result.exitCode}")? == "0", "the exit code is not 0");
    let label = format!("execution.ayatori.ddupan.top/job-uid={}", field(kubectl, "hello", "{.metadata.uid}")?);
    let log = kubectl.show(&["-n", NAMESPACE, "logs", "-l", label.as_str()])?;
    expect("the task's output", "hello, world, from hello", &log)
}

fn a_job_fails(kubectl: &Kubectl, task_image: &str) -> Result<()> {
    title("A Job that exits 3 says so");
    kubectl.show_with(&["-n", NAMESPACE, "create", "-f", "-"], &sample("job_failing.yaml", Some(task_image))?)?;
    until_over(kubectl, "failing")?;
    let table = kubectl.show(&["-n", NAMESPACE, "get", "ajob", "-o", "wide"])?;
    expect("the reason", "ProcessFailed", &table)?;
    ensure!(field(kubectl, "failing", "{.status.result.exitCode}")? == "3", "the exit code is not 3");
    Ok(())
}

fn a_bad_job_is_refused(kubectl: &Kubectl) -> Result<()> {
    title("A bad Job is refused at once, with every fault named");
    let said = kubectl.show_refusal(&["-n", NAMESPACE, "create", "-f", "-"], &sample("job_refused.yaml", None)?)?;
    for cause in [
        "spec.task.image: Invalid value",
        "spec.task.env[0].name: Invalid value",
        "spec.resources.requests.memory: Invalid value",
        "spec.resources.limits.cpu: Invalid value",
    ] {
        expect("the refusal", cause, &said)?;
    }
    let present = kubectl.ask(&["-n", NAMESPACE, "get", JOBS, "refused", "--ignore-not-found", "-o", "name"])?;
    ensure!(present.is_empty(), "the refused Job exists");
    Ok(())
}

fn a_job_goes_by_its_ttl(kubectl: &Kubectl, task_image: &str) -> Result<()> {
    title("A Job is removed when its TTL is over");
    kubectl.show_with(&["-n", NAMESPACE, "create", "-f", "-"], &sample("job_short_lived.yaml", Some(task_image))?)?;
    until_over(kubectl, "short-lived")?;
    kubectl.show(&["-n", NAMESPACE, "get", "ajob", "short-lived"])?;
    kubectl.show(&["-n", NAMESPACE, "wait", "--for=delete", "ajob/short-lived", JOB_TIMEOUT])?;
    kubectl.show(&["-n", NAMESPACE, "get", "ajob,jobs.batch"])?;
    let left = kubectl.ask(&["-n", NAMESPACE, "get", "jobs.batch", "-o", "name"])?;
    ensure!(left.lines().count() == 2, "the native Job of the removed one is still there: {left}");
    Ok(())
}

fn until_over(kubectl: &Kubectl, job: &str) -> Result<()> {
    let job = format!("ajob/{job}");
    kubectl.show(&["-n", NAMESPACE, "wait", "--for=jsonpath={.status.completionTime}", &job, JOB_TIMEOUT])?;
    Ok(())
}

fn field(kubectl: &Kubectl, job: &str, json_path: &str) -> Result<String> {
    kubectl.ask(&["-n", NAMESPACE, "get", JOBS, job, "-o", &format!("jsonpath={json_path}")])
}

/// A manifest of `samples/`, with the tasks' image put in.
fn sample(file: &str, task_image: Option<&str>) -> Result<String> {
    let path = workspace::root().join("samples").join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(task_image.map_or_else(|| text.clone(), |image| text.replace("busybox:1.37", image)))
}

/// Up to ten tries, a second apart.
fn retried<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..9 {
        if let Ok(value) = attempt() {
            return Ok(value);
        }
        thread::sleep(Duration::from_secs(1));
    }
    attempt()
}

fn path(path: &std::path::Path) -> Result<String> {
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => bail!("the project's folder is not named in UTF-8"),
    }
}
