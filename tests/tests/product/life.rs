//! The process itself (spec J3): what it says when it cannot work, and how it stops.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::{Cluster, Options};
use kube::api::PostParams;
use rustix::process::Signal;
use serde_json::json;

use ayatori_tests::product::{
    installation::kubeconfig_of,
    jobs::job,
    own::alone,
    process::{Ayatori, Ports, STOPPED},
    scene::object,
    shared::in_namespace,
};

/// It gives up on its first look.
const GIVES_UP: Duration = Duration::from_secs(30);

/// It ends with a code other than 0, and these words are the last that it says.
async fn gives_up(cluster: &Cluster, kubeconfig: &Path, ports: Ports, words: &str) -> anyhow::Result<()> {
    let mut process = Ayatori::start(cluster, kubeconfig, ports)?;
    let code = process.ended(GIVES_UP).await?;
    let log = process.log();
    // The last error: what is cut off at the end may still say so after it.
    let last = log.lines().rfind(|line| line.contains(" ERROR ")).unwrap_or_default();
    ensure!(code == 1 && last.contains(words), "exit code {code}: {log}");
    Ok(())
}

#[tokio::test]
async fn without_an_api_server_it_says_where_it_looked() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let text = fs::read_to_string(scene.cluster.inside_kubeconfig())?;
        let path = scene.cluster.dir().join("nowhere.kubeconfig");
        fs::write(&path, text.replace("127.0.0.1:6443", "127.0.0.1:1"))?;
        gives_up(scene.cluster, &path, Ports::BESIDE, "cannot reach the API server at https://127.0.0.1:1/").await
    })
    .await
}

#[tokio::test]
async fn without_rights_it_says_which_one_is_missing() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let kubeconfig = kubeconfig_of(scene.cluster, &scene.namespace, "default").await?;
        let words = "not allowed to list jobs (API group \"execution.ayatori.ddupan.top\")";
        gives_up(scene.cluster, &kubeconfig, Ports::BESIDE, words).await
    })
    .await
}

#[tokio::test]
async fn with_the_right_to_look_only_it_says_all_that_it_may_not_do() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-looks", scene.namespace);
        let rights = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
             "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", "namespace": scene.namespace, "name": "default"}]},
        ]});
        scene.kubectl().ok_with(&["create", "-f", "-"], &rights.to_string())?;
        let kubeconfig = kubeconfig_of(scene.cluster, &scene.namespace, "default").await?;
        let words = "not allowed to patch jobs (API group \"execution.ayatori.ddupan.top\"); delete jobs (API group \
                     \"execution.ayatori.ddupan.top\"); patch jobs/status";
        gives_up(scene.cluster, &kubeconfig, Ports::BESIDE, words).await
    })
    .await
}

#[tokio::test]
async fn with_its_port_taken_it_says_which() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let kubeconfig = scene.cluster.dir().join("ayatori-system-ayatori.kubeconfig");
        // That of the process which all tests share.
        let ports = Ports { webhook: Ports::MAIN.webhook, ..Ports::BESIDE };
        gives_up(scene.cluster, &kubeconfig, ports, "0.0.0.0:9443").await
    })
    .await
}

#[tokio::test]
async fn without_the_definitions_it_says_that_they_come_first() -> anyhow::Result<()> {
    let cluster = Cluster::start(Options::default()).await?;
    let words = "does not know jobs.execution.ayatori.ddupan.top: apply the CustomResourceDefinitions first";
    gives_up(&cluster, &cluster.inside_kubeconfig(), Ports::MAIN, words).await?;
    cluster.stop()
}

#[tokio::test]
async fn told_to_stop_it_answers_what_comes_in_the_meantime_and_ends_with_0() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let mut process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let job: Job = object(&job("job", "exit 0"))?;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        scene.jobs.create(&dry, &job).await.context("before it is told to stop")?;
        process.signal(Signal::TERM)?;
        // Clients learn of its going by and by: it must go on answering for 3 s (webhook limits). One after another,
        // so that at any moment one is in flight.
        let told = tokio::time::Instant::now();
        let mut answered = 0;
        while told.elapsed() < Duration::from_secs(2) {
            scene
                .jobs
                .create(&dry, &job)
                .await
                .with_context(|| format!("after {:?}, {answered} before", told.elapsed()))?;
            answered += 1;
        }
        ensure!(answered > 10, "only {answered} requests in 2 s");
        let code = process.ended(STOPPED).await?;
        let log = process.log();
        ensure!(code == 0 && log.contains("stopping") && log.contains("stopped"), "exit code {code}: {log}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn told_to_stop_twice_it_ends_at_once_and_says_so() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let mut process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        process.signal(Signal::TERM)?;
        // Two of the same kind before the first is seen would be one.
        tokio::time::sleep(Duration::from_millis(500)).await;
        process.signal(Signal::INT)?;
        let told = tokio::time::Instant::now();
        let code = process.ended(STOPPED).await?;
        // Without the second it is at least the 3 s of the farewell.
        ensure!(told.elapsed() < Duration::from_millis(2000), "it took {:?}", told.elapsed());
        ensure!(code == 1 && process.log().contains("aborted by a second signal"), "{code}: {}", process.log());
        Ok(())
    })
    .await
}
