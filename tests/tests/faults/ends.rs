//! What is left at the end of a life, without what differs from run to run.

use anyhow::Context;
use ayatori_crds::Job;
use ayatori_tests::{
    eventually,
    product::{
        jobs::native_name,
        scene::{BOUND, QUIET, Scene},
    },
};
use serde_json::{Value, json};

use crate::workloads::Workload;

/// Everything that is left, and the last status that was written.
pub(crate) async fn end(scene: &Scene, created: &Job, workload: &Workload) -> anyhow::Result<Value> {
    let job = scene.jobs.get_opt("job").await?;
    let mut status = match &job {
        Some(job) => serde_json::to_value(&job.status)?,
        None => {
            let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
            writes.last().context("no status was written")?.answered["status"].clone()
        }
    };
    mask(&mut status);
    if workload.may_lose_its_code()
        && let Some(result) = status["result"].as_object_mut()
    {
        result.remove("exitCode");
    }
    let native = scene.native_jobs.get_opt(&native_name(created)).await?;
    let native = native.map(|native| {
        let spec = native.spec.unwrap_or_default();
        let conditions = native.status.and_then(|status| status.conditions).unwrap_or_default();
        // Whether its controller saw it suspended before its release is a matter of who was faster.
        let told = conditions.into_iter().filter(|condition| condition.type_ != "Suspended");
        let conditions: Vec<_> = told.map(|it| (it.type_, it.status, it.reason)).collect();
        json!({
            "finalizers": native.metadata.finalizers, "deleting": native.metadata.deletion_timestamp.is_some(),
            "suspend": spec.suspend, "limit": spec.active_deadline_seconds, "conditions": conditions,
        })
    });
    let pods = scene.pods_of(created).await?;
    let phases: Vec<_> = pods.into_iter().map(|pod| pod.status.and_then(|status| status.phase)).collect();
    let finalizers = job.as_ref().and_then(|job| job.metadata.finalizers.clone());
    Ok(json!({"job": job.is_some(), "finalizers": finalizers, "status": status, "native": native, "pods": phases}))
}

/// The end of an undisturbed life: what is left once nothing changes any more.
pub(crate) async fn settled(scene: &Scene, created: &Job, workload: &Workload) -> anyhow::Result<Value> {
    let mut last = end(scene, created, workload).await?;
    eventually("nothing changes any more", BOUND, async || {
        tokio::time::sleep(QUIET).await;
        let before = std::mem::replace(&mut last, end(scene, created, workload).await?);
        anyhow::ensure!(before == last, "{before} became {last}");
        Ok(())
    })
    .await?;
    Ok(last)
}

/// Times and identifiers are those of one run; that they are there is the same in each.
fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "lastTransitionTime" | "startTime" | "completionTime" | "id" | "uid" if value.is_string() => {
                        *value = json!("…");
                    }
                    _ => mask(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

#[test]
fn what_differs_from_run_to_run_is_masked_and_what_is_missing_is_not_made_up() {
    let mut value =
        json!({"startTime": "2026-01-01T00:00:00Z", "references": [{"type": "Job", "id": "u"}], "message": "m"});
    mask(&mut value);
    assert_eq!(value, json!({"startTime": "…", "references": [{"type": "Job", "id": "…"}], "message": "m"}));
}
