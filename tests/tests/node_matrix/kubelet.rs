//! What the kubelet itself refuses or ends.

use anyhow::{Context, bail, ensure};
use ayatori_crds::Job;
use ayatori_tests::{
    NODE_NAME,
    product::{
        jobs::{class, has_started, job, message, parameters, with},
        scene::offer,
        shared::in_namespace,
    },
};
use serde_json::json;

use crate::{
    ends::{ends_as, one_pod, verdict},
    injected::inject,
};

/// More than any machine has.
const CPUS: &str = "4000";

pub(crate) async fn a_pod_that_its_node_has_no_room_for_was_rejected() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-large", scene.namespace);
        let mut large = class(&name);
        large["spec"]["resources"]["maximum"]["limits"]["cpu"] = json!(CPUS);
        offer(&scene.client, &large, &parameters(&name)).await?;
        let job = with(job("job", "exit 0"), "jobClassName", json!(name));
        let cpu = json!({"cpu": CPUS});
        scene.create(&with(job, "resources", json!({"requests": cpu, "limits": cpu}))).await?;
        let says = |job: &Job| message(job, "Succeeded").contains("no node takes it yet: Insufficient cpu");
        let waiting = scene.until("job", "it says that no node takes it", says).await?;
        // A scheduler that knows less of the node than the kubelet does.
        let pod = scene.pod_of(&waiting).await?.metadata.name.context("a name")?;
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/binding", scene.namespace);
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
                             "target": {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME}});
        scene.kubectl().ok_with(&["create", "--raw", &path, "-f", "-"], &binding.to_string())?;
        let over = ends_as(scene, "False/Rejected", None).await?;
        ensure!(message(&over, "Succeeded").contains("the node refused it: OutOfcpu"), "{over:?}");
        ensure!(!has_started(&over), "it has a start time");
        Ok(())
    })
    .await
}

pub(crate) async fn a_task_that_the_kubelet_evicts_for_its_disk_was_evicted() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // A Job has no volumes of its own: what it may fill is what the cluster gave it.
        let volume =
            r#"Object.spec.volumes{name: "injected", emptyDir: Object.spec.volumes.emptyDir{sizeLimit: "1Mi"}}"#;
        let mount = r#"Object.spec.containers.volumeMounts{name: "injected", mountPath: "/injected"}"#;
        // Both lists are there already, for the token of the ServiceAccount.
        inject(scene, &[("/spec/volumes/-", volume), ("/spec/containers/0/volumeMounts/-", mount)]).await?;
        let script =
            "trap 'exit 143' TERM; echo ready; head -c 8000000 /dev/zero > /injected/file; while :; do sleep 0.1; done";
        scene.start(&job("job", script)).await?;
        let over = scene.over("job").await?;
        one_pod(scene, &over)?;
        ensure!(has_started(&over), "it has no start time");
        match verdict(&over) {
            (word, Some(143)) if word == "False/Evicted" => {
                ensure!(message(&over, "Succeeded").contains("after the kubelet evicted it"), "{over:?}");
            }
            // A busy kubelet removes the container before it has told its code.
            (word, None) if word == "False/ResultLost" => {}
            other => bail!("{other:?}: {}", message(&over, "Succeeded")),
        }
        Ok(())
    })
    .await
}
