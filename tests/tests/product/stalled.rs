//! Starts that fail (spec E1; matrix: pull failure without startTime), with a short patience (see `process.rs`).

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{class, condition, exit_code, has_started, message, parameters, task},
    scene::{Scene, offer},
    shared::in_namespace,
};

/// Offers a class with these settings and runs a Job of it to its end.
async fn run_with(scene: &Scene, name: &str, settings: Value, image: &str) -> anyhow::Result<ayatori_crds::Job> {
    let name = format!("{}-{name}", scene.namespace);
    let mut all = parameters(&name);
    if let (Some(all), Value::Object(settings)) = (all["spec"].as_object_mut(), settings) {
        all.extend(settings);
    }
    offer(&scene.client, &class(&name), &all).await?;
    let mut job = task("job", json!({"image": image, "command": ["true"]}));
    job["spec"]["jobClassName"] = json!(name);
    scene.run(&job).await
}

fn failed_without_a_start(job: &ayatori_crds::Job, verdict: &str, cause: &str, words: &str) -> anyhow::Result<()> {
    let all = ["Succeeded", "Stalled", "Stopping"].map(|type_| condition(job, type_));
    let expected = [format!("False/{verdict}"), format!("True/{cause}"), format!("True/{verdict}")];
    ensure!(all == expected, "{all:?}");
    ensure!(message(job, "Succeeded").contains(words), "{}", message(job, "Succeeded"));
    ensure!(!has_started(job) && exit_code(job).is_none(), "{:?}", job.status);
    Ok(())
}

#[tokio::test]
async fn an_image_that_is_not_there_fails_after_its_grace_with_the_words_of_the_kubelet() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let image = "localhost/not-on-the-node:1";
        let over = run_with(scene, "never", json!({"imagePullPolicy": "Never"}), image).await?;
        failed_without_a_start(&over, "ImagePullFailed", "ImageNotPresent", image)?;
        let status = over.status.as_ref().context("a status")?;
        let since = ayatori_crds::conditions::find(&status.conditions, "Stalled").context("stalled")?;
        let completed = status.completion_time.as_ref().context("an end")?;
        let waited = completed.0.as_second() - since.last_transition_time.0.as_second();
        ensure!((7..60).contains(&waited), "it waited {waited} s");
        scene.delete("job").await?;
        scene.gone(&over).await
    })
    .await
}

#[tokio::test]
async fn an_image_that_runs_as_root_where_none_may_fails_as_it_cannot_be_started() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let settings = json!({"podSecurityContext": {"runAsNonRoot": true}});
        let over = run_with(scene, "nonroot", settings, "localhost/busybox:1").await?;
        failed_without_a_start(&over, "StartFailed", "StartRefused", "runAsNonRoot")
    })
    .await
}
