//! The platform's policy (spec B2, B5, B7, B10), as one file gives it to webhooks and controllers.

use std::fs;

use anyhow::{Context, ensure};
use ayatori_tests::eventually;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{condition, job, message, with},
    own::alone,
    process::{Ayatori, Ports},
    scene::{BOUND, Scene, object},
    webhooks::Webhooks,
};

/// A file for the process, and the argument that names it.
fn config(scene: &Scene, text: &str) -> anyhow::Result<String> {
    let path = scene.cluster.dir().join(format!("{}.yaml", scene.namespace));
    fs::write(&path, text)?;
    Ok(format!("--config={}", path.display()))
}

/// A Job whose class is not there: what comes before its class shows, and nothing runs.
fn waiting(name: &str, ttl: Value) -> Value {
    with(with(job(name, "exit 0"), "jobClassName", json!("no-such-class")), "ttlSecondsAfterFinished", ttl)
}

#[tokio::test]
async fn a_policy_that_becomes_stricter_judges_new_jobs_and_locks_no_old_one() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let lax = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        scene.create(&waiting("old", json!(3600))).await?;
        scene.until_condition("old", "Accepted", "False/JobClassNotFound").await?;
        lax.kill();
        let flag = config(scene, "ttl: {default: 30, maximum: 60}\nimage: {requireDigest: true}\n")?;
        // A flag over the file.
        let flags = [flag.as_str(), "--image-require-digest=false"];
        let strict = Ayatori::start_with(scene.cluster, kubeconfig, Ports::MAIN, &flags)?;
        strict.is_ready().await?;

        let filled = scene.create(&waiting("filled", Value::Null)).await?;
        ensure!(filled.spec.ttl_seconds_after_finished == Some(30), "{:?}", filled.spec);
        let said = scene.kubectl().run(&["create", "-f", "-"], &waiting("long", json!(61)).to_string())?;
        let words = "The Job \"long\" is invalid: spec.ttlSecondsAfterFinished: Invalid value: \"61\": must be at most 60, \
                     the platform's maximum\n";
        ensure!(said.stderr == words, "{}", said.stderr);

        // The old Job says why it would not be accepted any more, and can be edited, cancelled and deleted.
        let old = scene.until_condition("old", "Accepted", "False/PolicyViolation").await?;
        ensure!(message(&old, "Accepted").contains("spec.ttlSecondsAfterFinished"), "{}", message(&old, "Accepted"));
        let edit = async |patch: Value| scene.jobs.patch("old", &PatchParams::default(), &Patch::Merge(patch)).await;
        edit(json!({"metadata": {"labels": {"edited": "yes"}}})).await?;
        let refused = edit(json!({"spec": {"ttlSecondsAfterFinished": 3601}})).await;
        ensure!(refused.is_err_and(|error| error.to_string().contains("the platform's maximum")), "it is admitted");
        edit(json!({"spec": {"desiredState": "Cancelled"}})).await?;
        let over = scene.over("old").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        scene.delete("old").await?;
        scene.until_gone("old").await
    })
    .await
}

#[tokio::test]
async fn a_job_that_slipped_by_ends_at_the_same_verdict() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let kubectl = scene.kubectl();
        let saved = Webhooks::remove(&kubectl)?;
        let job = object(&waiting("job", json!(61)))?;
        // The API server goes on asking the webhook for a moment.
        let made = eventually("it is created", BOUND, async || {
            Ok(scene.jobs.create(&PostParams::default(), &job).await.map(drop)?)
        })
        .await;
        let flag = config(scene, "ttl: {maximum: 60, required: true}\nimage: {requireDigest: true}\n")?;
        let _process = Ayatori::start_with(scene.cluster, kubeconfig, Ports::BESIDE, &[&flag])?;
        let judged = scene.until_condition("job", "Accepted", "False/PolicyViolation").await;
        saved.restore(&kubectl)?;
        made?;
        let words = "spec.task.image: Invalid value: \"localhost/busybox:1\": must name a digest, which the platform asks \
                     for, such as registry.example/team/app@sha256:…; spec.ttlSecondsAfterFinished: Invalid value: \"61\": \
                     must be at most 60, the platform's maximum";
        let judged = judged?;
        ensure!(message(&judged, "Accepted") == words, "{}", message(&judged, "Accepted"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_setting_that_is_unknown_or_contradicts_another_stops_the_start_with_its_path() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        for (text, words) in [
            ("ttl: {maximun: 60}", "ttl.maximun: unknown field"),
            ("ttl: {default: 61, maximum: 60}", "ttl.default is 61: it must be at most 60, which ttl.maximum allows"),
        ] {
            let flag = config(scene, text)?;
            let mut process = Ayatori::start_with(scene.cluster, kubeconfig, Ports::BESIDE, &[&flag])?;
            let code = process.ended(std::time::Duration::from_secs(30)).await?;
            let log = process.log();
            ensure!(code == 1 && log.lines().last().context("a line")?.contains(words), "exit code {code}: {log}");
        }
        Ok(())
    })
    .await
}
