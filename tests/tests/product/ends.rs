//! How a Job ends, and what is then known of it (spec sections 4 to 6; matrix: exit 0, non-zero, start failure).

use anyhow::{Context, ensure};
use ayatori_crds::{JobClass, KubernetesExecutionParameters, names::KUBERNETES_CONTROLLER};
use kube::Api;
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{STANDARD, condition, exit_code, has_started, job, message, task, uid, with},
    scene::Scene,
    shared::in_namespace,
};

#[tokio::test]
async fn a_task_that_exits_0_is_reported_with_everything_that_is_known_of_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let job = with(job("job", "exit 0"), "resources", json!({"limits": {"memory": "64Mi"}}));
        let job = scene.run(&job).await?;
        let status = job.status.as_ref().context("a status")?;

        for (type_, wanted) in
            [("Accepted", "True/Valid"), ("Scheduled", "True/BackendCreated"), ("Succeeded", "True/Completed")]
        {
            ensure!(condition(&job, type_) == wanted, "{type_}: {}", condition(&job, type_));
        }
        ensure!(status.observed_generation == job.metadata.generation);
        let result = serde_json::to_value(&status.result)?;
        ensure!(result == json!({"exitCode": 0, "reason": "Completed"}), "{result}");

        let created = job.metadata.creation_timestamp.as_ref().context("a creation time")?;
        let started = status.start_time.as_ref().context("a start time")?;
        let completed = status.completion_time.as_ref().context("a completion time")?;
        ensure!(created <= started && started <= completed, "{created:?} {started:?} {completed:?}");

        // C2: the class and its parameters by their UIDs. C5: given, else the class's default.
        let class = Api::<JobClass>::all(scene.client.clone()).get(STANDARD).await?;
        let settings = Api::<KubernetesExecutionParameters>::all(scene.client.clone()).get(STANDARD).await?;
        let resolved = serde_json::to_value(&status.resolved_job_class)?;
        ensure!(resolved["name"] == STANDARD && resolved["controllerName"] == KUBERNETES_CONTROLLER, "{resolved}");
        ensure!(resolved["uid"].as_str() == class.metadata.uid.as_deref(), "{resolved}");
        ensure!(resolved["parametersRef"]["uid"].as_str() == settings.metadata.uid.as_deref(), "{resolved}");
        let effective = serde_json::to_value(&status.effective_resources)?;
        let wanted = json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}});
        ensure!(effective == wanted, "{effective}");

        let native = scene.native_job(&job).await?.context("a native Job")?;
        let execution = serde_json::to_value(&status.execution)?;
        let reference = json!([{"type": "Job", "id": native.metadata.uid}]);
        ensure!(execution == json!({"adapter": "kubernetes", "references": reference}), "{execution}");
        ensure!(native.metadata.name == Some(format!("ay-{}", uid(&job))));
        let pods = scene.pods_of(&job).await?;
        ensure!(pods.len() == 1, "{} pods", pods.len());
        let given = &pods[0].spec.as_ref().context("a spec")?.containers[0].resources;
        ensure!(serde_json::to_value(given)? == wanted, "{given:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_task_that_fails_says_with_which_code() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let ended = scene.run(&job("job", "exit 3")).await?;
        is_failed(&ended, "ProcessFailed", Some(3))?;
        ensure!(has_started(&ended) && message(&ended, "Succeeded").contains("code 3"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_task_that_the_kernel_kills_for_its_memory_is_out_of_memory() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // tail keeps the last line, and this one has no end.
        let hungry = task("job", json!({"image": "localhost/busybox:1", "command": ["tail", "/dev/zero"]}));
        let resources = json!({"requests": {"memory": "16Mi"}, "limits": {"memory": "16Mi"}});
        let ended = scene.run(&with(hungry, "resources", resources)).await?;
        is_failed(&ended, "OutOfMemory", Some(137))
    })
    .await
}

#[tokio::test]
async fn a_command_that_does_not_exist_fails_without_having_started() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let absent = task("job", json!({"image": "localhost/busybox:1", "command": ["/no/such/program"]}));
        let ended = scene.run(&absent).await?;
        is_failed(&ended, "StartFailed", None)?;
        ensure!(!has_started(&ended), "it has a start time");
        ensure!(message(&ended, "Succeeded").contains("/no/such/program"), "{}", message(&ended, "Succeeded"));
        Ok(())
    })
    .await
}

/// The condition and the result agree.
fn is_failed(job: &ayatori_crds::Job, reason: &str, code: Option<i32>) -> anyhow::Result<()> {
    let succeeded = condition(job, "Succeeded");
    ensure!(succeeded == format!("False/{reason}"), "{succeeded}: {}", message(job, "Succeeded"));
    ensure!(exit_code(job) == code, "{:?}", exit_code(job));
    let result: Value = serde_json::to_value(job.status.as_ref().and_then(|status| status.result.clone()))?;
    ensure!(result["reason"] == reason, "{result}");
    Ok(())
}

#[tokio::test]
async fn a_finished_job_is_not_written_any_more() -> anyhow::Result<()> {
    in_namespace(async |scene: &Scene| {
        // I12: what the native Job and its pod go through after the verdict costs no write.
        let ended = scene.run(&job("job", "exit 0")).await?;
        tokio::time::sleep(ayatori_tests::product::scene::QUIET * 2).await;
        let later = scene.jobs.get("job").await?;
        ensure!(later.metadata.resource_version == ended.metadata.resource_version, "{:?}", later.status);
        Ok(())
    })
    .await
}
