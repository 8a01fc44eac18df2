//! The suite of the test cluster itself: what runs on it is real.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    panic::AssertUnwindSafe,
    process::{Command, Output},
    sync::Mutex,
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_tests::{
    Cluster, Image, Options, eventually,
    suite::{require_node, shared_cluster, unique, with_namespace},
};
use futures::FutureExt;
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Namespace, Pod},
};
use kube::{
    Api,
    api::{LogParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

/// A pod needs 1 to 3 s; the bound is for a busy machine.
const POD: Duration = Duration::from_secs(90);

async fn cluster() -> anyhow::Result<&'static Cluster> {
    shared_cluster(Options { audit: true, ..Options::with_node() }).await
}

fn object<T: DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn pod(image: &str, script: &str) -> Pod {
    object(json!({
        "metadata": {"name": "pod"},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": image, "command": ["sh", "-c", script]}],
        },
    }))
}

/// Runs a pod to its end; returns its exit code.
async fn run(pods: &Api<Pod>, pod: &Pod) -> anyhow::Result<i32> {
    pods.create(&PostParams::default(), pod).await?;
    end(pods).await
}

async fn end(pods: &Api<Pod>) -> anyhow::Result<i32> {
    eventually("the pod ends", POD, async || {
        let status = pods.get("pod").await?.status.context("no status")?;
        let container = status.container_statuses.iter().flatten().next().context("no container")?;
        let state = container.state.as_ref().context("no state")?;
        state.terminated.as_ref().map(|end| end.exit_code).with_context(|| format!("{state:?}"))
    })
    .await
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn a_pod_runs_and_its_output_can_be_read() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    with_namespace(cluster, async |namespace| {
        let pods = Api::namespaced(cluster.client().await?, namespace);
        let code = run(&pods, &pod("localhost/busybox:1", "echo hello; echo $KUBERNETES_SERVICE_HOST; exit 3")).await?;
        ensure!(code == 3, "exit code {code}");
        let log = pods.logs("pod", &LogParams::default()).await?;
        ensure!(log == "hello\n10.0.0.1\n", "{log}");
        let kubectl = cluster.kubectl().args(["logs", "pod", "-n", namespace]).output()?;
        ensure!(text(&kubectl) == log, "{}", text(&kubectl));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_pod_reaches_the_api_server_through_its_service() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    with_namespace(cluster, async |namespace| {
        let pods = Api::namespaced(cluster.client().await?, namespace);
        // The first connections may come before kube-proxy has written its rules.
        let script = "for i in $(seq 50); do nc -w 2 10.0.0.1 443 </dev/null && exit 0; sleep 0.2; done; exit 1";
        let code = run(&pods, &pod("localhost/busybox:1", script)).await?;
        ensure!(code == 0, "exit code {code}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_native_job_completes() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    with_namespace(cluster, async |namespace| {
        let jobs = Api::<Job>::namespaced(cluster.client().await?, namespace);
        let template = json!({"spec": pod("localhost/busybox:1", "exit 0").spec});
        let job = object(json!({"metadata": {"name": "job"}, "spec": {"backoffLimit": 0, "template": template}}));
        jobs.create(&PostParams::default(), &job).await?;
        eventually("the job completes", POD, async || {
            let status = jobs.get("job").await?.status.context("no status")?;
            let complete = status.conditions.iter().flatten().any(|c| c.type_ == "Complete" && c.status == "True");
            ensure!(complete, "{status:?}");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn an_own_image_runs_as_its_user() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    with_namespace(cluster, async |namespace| {
        let busybox = std::path::Path::new("/bin/busybox");
        let image = Image::of_binary("localhost/own:1", busybox, &["id", "-u"], [].into())?;
        cluster.load_image(&image).await?;
        let mut pod = pod(image.name(), "");
        let container = &mut pod.spec.as_mut().unwrap().containers[0];
        container.command = None;
        container.security_context = Some(object(json!({"runAsNonRoot": true})));
        let pods = Api::namespaced(cluster.client().await?, namespace);
        ensure!(run(&pods, &pod).await? == 0);
        let log = pods.logs("pod", &LogParams::default()).await?;
        ensure!(log == "65532\n", "{log}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_stopped_scheduler_stays_away_until_it_may_come_back() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    // Not the shared cluster: the other tests need their scheduler.
    let cluster = Cluster::start(Options::with_node()).await?;
    with_namespace(&cluster, async |namespace| {
        cluster.stop_part("kube-scheduler")?;
        let pods = Api::<Pod>::namespaced(cluster.client().await?, namespace);
        pods.create(&PostParams::default(), &pod("localhost/busybox:1", "exit 0")).await?;
        // Longer than a part needs to start again.
        tokio::time::sleep(Duration::from_secs(3)).await;
        ensure!(pods.get("pod").await?.spec.context("no spec")?.node_name.is_none());
        cluster.start_part("kube-scheduler")?;
        ensure!(end(&pods).await? == 0);
        ensure!(cluster.logs().contains("kube-scheduler ended: signal: 9"), "{}", cluster.logs());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn programs_run_inside_and_hear_signals() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    let links = cluster.command("ip")?.args(["-brief", "address"]).output()?;
    ensure!(text(&links).contains("10.89.0.1/32"), "{}", text(&links));
    let nodes = cluster.command(cluster.kubectl_path())?.args(["get", "nodes"]).output()?;
    ensure!(nodes.status.success() && text(&nodes).contains(ayatori_tests::NODE_NAME), "{}", text(&nodes));

    let ready = cluster.dir().join(unique("ready"));
    let script = format!("trap 'exit 7' TERM; touch {}; while :; do sleep 0.05; done", ready.display());
    let mut program = cluster.command("sh")?.args(["-c", &script]).spawn()?;
    eventually("the program runs", POD, async || {
        ensure!(ready.exists());
        Ok(())
    })
    .await?;
    ensure!(Command::new("kill").args(["-s", "TERM", &program.id().to_string()]).status()?.success());
    ensure!(program.wait()?.code() == Some(7));

    let mut program = cluster.command("sleep")?.arg("86399.5").spawn()?;
    let running = || -> anyhow::Result<bool> {
        Ok(cluster
            .command("sh")?
            .args(["-c", "cat /proc/[0-9]*/cmdline"])
            .output()
            .map(|output| text(&output).contains("sleep\x0086399.5"))?)
    };
    eventually("the program runs", POD, async || {
        ensure!(running()?);
        Ok(())
    })
    .await?;
    program.kill()?;
    program.wait()?;
    eventually("a killed program has ended inside", POD, async || {
        ensure!(!running()?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn definitions_are_served_once_added_and_requests_are_audited() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    let crd = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
    cluster.add_crds(&[crd]).await?;
    let things = cluster.kubectl().args(["get", "things", "-A"]).output()?;
    ensure!(things.status.success(), "{}", text(&things));
    eventually("the audit log has the request", POD, async || {
        ensure!(std::fs::read_to_string(cluster.audit_log())?.contains("/apis/example.org/v1/things"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_namespace_goes_when_its_test_panics() -> anyhow::Result<()> {
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    let name = Mutex::new(String::new());
    let test = with_namespace(cluster, async |namespace| {
        name.lock().unwrap().push_str(namespace);
        panic!("as a test does")
    });
    ensure!(AssertUnwindSafe(test).catch_unwind().await.is_err(), "the panic is lost");
    let namespaces = Api::<Namespace>::all(cluster.client().await?);
    let name = name.into_inner().unwrap();
    eventually("the namespace goes", POD, async || {
        let namespace = namespaces.get_opt(&name).await?;
        ensure!(namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()));
        Ok(())
    })
    .await
}
