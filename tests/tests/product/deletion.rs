//! Deleting Jobs (spec F3, K0; matrix: delete in every state).

use anyhow::ensure;
use ayatori_tests::eventually;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{UNTIL_TERM, job, with},
    kubectl::Said,
    scene::BOUND,
    shared::in_namespace,
};

use crate::pinned_class::accepted_and_waiting;

#[tokio::test]
async fn a_job_that_waits_for_its_class_goes_at_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let waiting = with(job("job", "exit 0"), "jobClassName", json!("no-such-class"));
        let created = scene.create(&waiting).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        scene.delete("job").await?;
        scene.gone(&created).await
    })
    .await
}

#[tokio::test]
async fn a_job_that_is_accepted_and_not_scheduled_goes_at_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        accepted_and_waiting(scene).await?;
        let waiting = scene.jobs.get("job").await?;
        scene.delete("job").await?;
        scene.gone(&waiting).await
    })
    .await
}

#[tokio::test]
async fn a_running_job_is_stopped_before_it_goes_and_who_waits_for_its_end_is_answered() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // Later than the second of the stop, so that the exit is not its own.
        let script = "trap 'sleep 1.2; exit 0' TERM; echo ready; while :; do sleep 0.1; done";
        let created = scene.create(&job("job", script)).await?;
        scene.says(&created, "ready").await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        let wait = ["wait", "--for=jsonpath={.status.completionTime}", "ajob/job", "--timeout=60s"];
        let waiting = scene.kubectl().start(&wait)?;
        // The other client must have begun its watch; how far it is cannot be seen from here.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        scene.delete("job").await?;
        scene.gone(&created).await?;
        let said = tokio::task::spawn_blocking(|| Said::of(waiting)).await??;
        ensure!(said.success && said.stdout.contains("condition met"), "{said:?}");

        // The verdict was durable before the finalizer went.
        let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let last = writes.last().map(|write| write.sent["status"]["result"].clone());
        ensure!(last == Some(json!({"exitCode": 0, "reason": "Cancelled"})), "{last:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_finished_job_takes_its_native_job_and_its_pod_with_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let over = scene.run(&job("job", "exit 0")).await?;
        ensure!(scene.native_job(&over).await?.is_some() && scene.pods_of(&over).await?.len() == 1);
        scene.delete("job").await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn the_spec_of_a_deleting_job_may_not_change_and_its_finalizers_may_go() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let mut held = with(job("job", "exit 0"), "jobClassName", json!("no-such-class"));
        held["metadata"]["finalizers"] = json!(["other.example/held"]);
        scene.create(&held).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        scene.delete("job").await?;
        // Ours goes by itself.
        let ours_is_gone =
            |job: &ayatori_crds::Job| job.metadata.finalizers.as_deref().is_some_and(|all| all.len() == 1);
        scene.until("job", "only the other finalizer is left", ours_is_gone).await?;
        for (spec, words) in [
            (json!({"task": {"image": "localhost/busybox:2"}}), "spec.task.image: Invalid value: is immutable"),
            (json!({"ttlSecondsAfterFinished": 5}), "spec: Forbidden: the Job is being deleted"),
            (json!({"desiredState": "Cancelled"}), "spec: Forbidden: the Job is being deleted"),
        ] {
            let refused = scene.patch("job", json!({"spec": spec})).await;
            let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
            ensure!(said.contains(words), "{spec}: {said:?}");
        }
        scene.patch("job", json!({"metadata": {"labels": {"edited": "yes"}, "finalizers": null}})).await?;
        scene.until_gone("job").await
    })
    .await
}

#[tokio::test]
async fn jobs_deleted_right_after_they_were_made_leave_nothing() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // Each is somewhere else on its way: resolving, scheduling, starting, running.
        let mut created = Vec::new();
        for number in 0..6_u64 {
            let made = scene.create(&job(&format!("job-{number}"), UNTIL_TERM)).await?;
            tokio::time::sleep(std::time::Duration::from_millis(number * number * 40)).await;
            scene.delete(&format!("job-{number}")).await?;
            created.push(made);
        }
        for job in &created {
            scene.gone(job).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_foreground_deletion_ends_too() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let created = scene.create(&job("job", UNTIL_TERM)).await?;
        scene.until_condition("job", "Succeeded", "Unknown/Running").await?;
        scene.jobs.delete("job", &DeleteParams::foreground()).await?;
        scene.gone(&created).await
    })
    .await
}

#[tokio::test]
async fn a_namespace_with_jobs_in_every_state_goes() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.run(&job("finished", "exit 0")).await?;
        scene.create(&job("running", UNTIL_TERM)).await?;
        scene.create(&with(job("waiting", "exit 0"), "jobClassName", json!("no-such-class"))).await?;
        scene.until_condition("running", "Succeeded", "Unknown/Running").await?;
        scene.until_condition("waiting", "Accepted", "False/JobClassNotFound").await?;
        let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(scene.client.clone());
        namespaces.delete(&scene.namespace, &DeleteParams::default()).await?;
        eventually("the namespace is gone", BOUND, async || {
            let left = scene.jobs.list(&ListParams::default()).await?.items;
            let native = scene.native_jobs.list(&ListParams::default()).await?.items.len();
            let namespace = namespaces.get_opt(&scene.namespace).await?;
            ensure!(namespace.is_none(), "left: {native} native Jobs, Jobs {left:?}");
            Ok(())
        })
        .await
    })
    .await
}
