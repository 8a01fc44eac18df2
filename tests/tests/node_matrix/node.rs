//! What happens to a node, on a cluster of its own: the kubelet or the runtime is away, all of it is killed, it is drained
//! (spec section 6; the test matrix's losses).

use std::time::Duration;

use anyhow::{Context, ensure};
use ayatori_crds::{Job, names::JOB_CLEANUP_FINALIZER};
use ayatori_tests::{
    NODE_NAME, eventually,
    product::{
        jobs::{condition, has_started, is_over, job, message, with},
        own::alone,
        process::{Ayatori, Ports},
        scene::{BOUND, QUIET, Scene},
        task_process::TaskProcess,
    },
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::{
    ends::{ends_as, one_pod, verdict},
    pods::at_term,
};

/// Runs a row on the second cluster, with an ayatori.
async fn on_a_node<T>(row: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    alone(async |scene, kubeconfig| {
        // Doubt begins a second after silence.
        let ayatori = Ayatori::start_with(scene.cluster, kubeconfig, Ports::MAIN, &["--unknown-after=1s"])?;
        ayatori.is_ready().await?;
        row(scene).await
    })
    .await
}

/// Does something while parts of the node are away; they come back, whatever became of it.
async fn without<T>(scene: &Scene, parts: &[&str], act: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce() -> anyhow::Result<()>,
{
    for part in parts {
        scene.cluster.stop_part(part)?;
    }
    let outcome = act().await;
    for part in parts {
        scene.cluster.start_part(part)?;
    }
    outcome
}

/// Nothing is said of an end that nobody has seen.
async fn no_verdict(scene: &Scene) -> anyhow::Result<()> {
    tokio::time::sleep(QUIET).await;
    let silent = scene.jobs.get("job").await?;
    ensure!(condition(&silent, "Succeeded") == "Unknown/Running" && !is_over(&silent), "{:?}", silent.status);
    Ok(())
}

pub(crate) async fn a_drained_task_that_exits_0_has_succeeded_and_one_that_does_not_was_drained() -> anyhow::Result<()>
{
    on_a_node(async |scene| {
        scene.start(&job("good", &at_term("exit 0"))).await?;
        scene.start(&job("bad", &at_term("exit 143"))).await?;
        let kubectl = scene.kubectl();
        let drained = kubectl.ok(&["drain", NODE_NAME, "--force", "--ignore-daemonsets", "--timeout=60s"]);
        // The next row needs the node, whatever became of this one.
        kubectl.ok(&["uncordon", NODE_NAME])?;
        drained?;
        // The drain took the pods away; what the watch showed of their end is what counts.
        for (name, succeeded, code) in [("good", "True/Completed", 0), ("bad", "False/Drained", 143)] {
            let over = scene.over(name).await?;
            ensure!(verdict(&over) == (succeeded.to_owned(), Some(code)), "{name}: {:?}", verdict(&over));
            one_pod(scene, &over)?;
        }
        Ok(())
    })
    .await
}

pub(crate) async fn a_task_that_gives_way_to_a_more_important_pod_was_preempted() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
        scene.start(&with(job("job", &at_term("exit 143")), "resources", resources)).await?;
        let node = Api::<Node>::all(scene.client.clone()).get(NODE_NAME).await?;
        let allocatable = node.status.and_then(|status| status.allocatable).context("nothing allocatable")?;
        let cpus: u32 = allocatable.get("cpu").context("no CPUs")?.0.parse().context("whole CPUs")?;
        let name = format!("{}-important", scene.namespace);
        let important = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "important"}, "spec": {
                "priorityClassName": name, "restartPolicy": "Never", "containers": [{
                    "name": "main", "image": "localhost/busybox:1", "command": ["true"],
                    // There is room for it or for the task.
                    "resources": {"requests": {"cpu": format!("{}m", cpus * 1000 - 500)}},
                }],
            }},
        ]});
        scene.kubectl().ok_with(&["create", "-f", "-"], &important.to_string())?;
        ends_as(scene, "False/Preempted", Some(143)).await.map(drop)
    })
    .await
}

/// Ends a task at TERM while a part of the node is away, so that nobody tells of it; answers the Job as it ran.
async fn ends_unseen(scene: &Scene, part: &str, end: &str) -> anyhow::Result<Job> {
    let running = scene.start(&job("job", &at_term(end))).await?;
    let task = TaskProcess::of(scene.cluster, &scene.pod_of(&running).await?)?;
    without(scene, &[part], async || {
        task.signal("TERM")?;
        task.ended().await?;
        no_verdict(scene).await
    })
    .await?;
    Ok(running)
}

pub(crate) async fn an_end_while_the_kubelet_is_away_is_told_as_it_was_once_it_is_back() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = ends_unseen(scene, "kubelet", "exit 7").await?;
        let over = ends_as(scene, "False/ProcessFailed", Some(7)).await?;
        ensure!(started(&over) == started(&running), "the start moved");
        Ok(())
    })
    .await
}

fn started(job: &Job) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time> {
    job.status.as_ref()?.start_time.as_ref()
}

pub(crate) async fn an_end_while_the_runtime_is_away_is_a_result_that_is_lost() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        ends_unseen(scene, "containerd", "exit 0").await?;
        // Back, it says 255 of every container that ended meanwhile; this one had exited 0.
        is_lost(scene).await
    })
    .await
}

/// The task is over, and no exit code is made up.
async fn is_lost(scene: &Scene) -> anyhow::Result<()> {
    let over = ends_as(scene, "False/ResultLost", None).await?;
    ensure!(has_started(&over) && message(&over, "Succeeded").contains("cannot be known"), "{:?}", over.status);
    Ok(())
}

pub(crate) async fn a_job_that_is_deleted_while_the_kubelet_is_away_goes_once_its_task_has_stopped()
-> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 143"))).await?;
        without(scene, &["kubelet"], async || {
            scene.delete("job").await?;
            scene.until_condition("job", "Stopping", "True/Cancelled").await?;
            tokio::time::sleep(QUIET).await;
            // Nobody has seen the task stop: it is neither over nor let go.
            let waiting = scene.jobs.get("job").await?;
            let held = waiting.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == JOB_CLEANUP_FINALIZER);
            ensure!(held && !is_over(&waiting), "{waiting:?}");
            Ok(())
        })
        .await?;
        scene.gone(&running).await?;
        let statuses = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let result = statuses.last().map(|write| write.answered["status"]["result"].clone());
        ensure!(result == Some(json!({"exitCode": 143, "reason": "Cancelled"})), "{result:?}");
        Ok(())
    })
    .await
}

/// Waits for doubt: the node does not answer. Nothing is over, so that even a TTL of 0 does not count (E4).
async fn is_in_doubt(scene: &Scene) -> anyhow::Result<()> {
    let unknown = scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await?;
    ensure!(message(&unknown, "Succeeded").contains(NODE_NAME), "{:?}", unknown.status);
    scene.patch("job", json!({"spec": {"ttlSecondsAfterFinished": 0}})).await?;
    tokio::time::sleep(QUIET).await;
    let kept = scene.patch("job", json!({"spec": {"ttlSecondsAfterFinished": null}})).await?;
    ensure!(kept.metadata.deletion_timestamp.is_none() && !is_over(&kept), "{kept:?}");
    Ok(())
}

pub(crate) async fn a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_its_end() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 6"))).await?;
        let pod = scene.pod_of(&running).await?.metadata.name.context("a name")?;
        without(scene, &["kubelet"], async || {
            // A pod that outlives its deletion is the first sign of a node that does not answer.
            scene.kubectl().ok(&["delete", "pod", &pod, "--grace-period=1", "--wait=false"])?;
            is_in_doubt(scene).await
        })
        .await?;
        // Back, the kubelet ends the task as it was asked to.
        ends_as(scene, "False/ProcessFailed", Some(6)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_that_it_runs()
-> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 0"))).await?;
        let task = TaskProcess::of(scene.cluster, &scene.pod_of(&running).await?)?;
        without(scene, &["kubelet"], async || is_in_doubt(scene).await).await?;
        let found = scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        ensure!(started(&found) == started(&running), "the start moved");
        task.signal("TERM")?;
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_task_that_ends_with_its_whole_node_is_a_result_that_is_lost() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 0"))).await?;
        let task = TaskProcess::of(scene.cluster, &scene.pod_of(&running).await?)?;
        without(scene, &["kubelet", "containerd"], async || {
            // Without its shim nobody has seen how the task ended.
            task.shim()?.signal("KILL")?;
            task.signal("KILL")?;
            task.ended().await?;
            no_verdict(scene).await
        })
        .await?;
        is_lost(scene).await
    })
    .await
}

/// The garbage collector waits 40 s, and looks each 20 s.
const COLLECTED: Duration = Duration::from_secs(150);

pub(crate) async fn a_task_whose_node_object_is_deleted_has_an_unknown_result() -> anyhow::Result<()> {
    on_a_node(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 0"))).await?;
        let nodes = Api::<Node>::all(scene.client.clone());
        // A kubelet that lives would end the task as its pod is deleted, and might still tell its code.
        without(scene, &["kubelet"], async || {
            nodes.delete(NODE_NAME, &DeleteParams::default()).await?;
            // Kubernetes says Failed of a task that runs on.
            eventually("the native Job says Failed", COLLECTED, async || {
                let native = scene.native_job(&running).await?.and_then(|native| native.status);
                let native = native.context("no native Job")?;
                ensure!(native.failed == Some(1), "{native:?}");
                Ok(())
            })
            .await?;
            let unknown = scene.until_condition("job", "Succeeded", "Unknown/ResultUnknown").await?;
            ensure!(!is_over(&unknown), "it has a completion time");
            Ok(())
        })
        .await?;
        // A kubelet registers its node when it starts; the next row needs it.
        eventually("the node is back", BOUND, async || Ok(nodes.get(NODE_NAME).await?)).await?;
        // It ends what it finds without a pod, and has nobody to tell it to: the doubt is an administrator's, whatever its
        // owner asks for since.
        scene.cancel("job").await?;
        tokio::time::sleep(QUIET).await;
        let unknown = scene.jobs.get("job").await?;
        ensure!(condition(&unknown, "Succeeded") == "Unknown/ResultUnknown" && !is_over(&unknown), "{unknown:?}");
        Ok(())
    })
    .await
}
