//! Images that are pulled, late or not at all (spec E1).

use anyhow::ensure;
use ayatori_tests::{
    eventually,
    product::{
        jobs::{condition, has_started, message, task},
        scene::{BOUND, Scene},
        shared::in_namespace,
    },
    registry::{Answer, PASSWORD, USER},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    ends::ends_as,
    registries::{GUARDED, OPEN, front, name_at, push},
};

fn job_of(image: &str) -> Value {
    task("job", json!({"image": image, "command": ["sh", "-c", "exit 0"]}))
}

/// Waits until it says by what its start is held up.
async fn stalled(scene: &Scene, cause: &str, words: &str) -> anyhow::Result<()> {
    let stalled = scene.until_condition("job", "Stalled", &format!("True/{cause}")).await?;
    ensure!(message(&stalled, "Succeeded").contains(words), "{}", message(&stalled, "Succeeded"));
    ensure!(condition(&stalled, "Succeeded") == "Unknown/Scheduling" && !has_started(&stalled), "{:?}", stalled.status);
    Ok(())
}

/// Waits until the Job is given up (after the grace that `process.rs` sets), with the kubelet's words.
async fn given_up(scene: &Scene, cause: &str, words: &str) -> anyhow::Result<()> {
    stalled(scene, cause, words).await?;
    let over = ends_as(scene, "False/ImagePullFailed", None).await?;
    ensure!(!has_started(&over), "it has a start time");
    ensure!(condition(&over, "Stopping") == "True/ImagePullFailed", "{}", condition(&over, "Stopping"));
    ensure!(message(&over, "Succeeded").contains(words), "{}", message(&over, "Succeeded"));
    Ok(())
}

async fn costs_only_time(answer: StatusCode) -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let (front, image) = front(scene, Answer::Status(answer)).await?;
        scene.create(&job_of(&image)).await?;
        stalled(scene, "ImagePullError", &answer.to_string()).await?;
        ensure!(front.kept() > 0, "the registry refused nothing");
        front.answer(Answer::Registry);
        let over = ends_as(scene, "True/Completed", Some(0)).await?;
        ensure!(condition(&over, "Stalled") == "False/Progressing", "{}", condition(&over, "Stalled"));
        Ok(())
    })
    .await
}

pub(crate) async fn a_registry_that_refuses_too_many_requests_for_a_while_costs_only_time() -> anyhow::Result<()> {
    costs_only_time(StatusCode::TOO_MANY_REQUESTS).await
}

pub(crate) async fn a_registry_that_is_unavailable_for_a_while_costs_only_time() -> anyhow::Result<()> {
    costs_only_time(StatusCode::SERVICE_UNAVAILABLE).await
}

pub(crate) async fn a_registry_that_is_silent_for_a_while_costs_only_time() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let (front, image) = front(scene, Answer::Silence).await?;
        scene.create(&job_of(&image)).await?;
        eventually("the node waits for the registry", BOUND, async || {
            ensure!(front.kept() > 0, "nobody has asked it");
            Ok(())
        })
        .await?;
        // There is nothing to tell of yet: the runtime itself waits 30 s for an answer.
        scene.until_condition("job", "Succeeded", "Unknown/Scheduling").await?;
        front.answer(Answer::Registry);
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}

/// Makes the Secret `login` with a password for the guarded registry; returns a Job that pulls with it.
async fn job_with_password(scene: &Scene, password: &str) -> anyhow::Result<Value> {
    let image = push(scene, GUARDED).await?;
    let login = json!({"auths": {GUARDED: {"username": USER, "password": password}}});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": login.to_string()},
    });
    scene.kubectl().ok_with(&["create", "-f", "-"], &secret.to_string())?;
    let mut job = job_of(&image);
    job["spec"]["task"]["imagePullSecrets"] = json!([{"name": "login"}]);
    Ok(job)
}

pub(crate) async fn an_image_is_pulled_with_the_password_of_its_secret() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&job_with_password(scene, PASSWORD).await?).await?;
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_wrong_password_fails_the_job_after_its_grace() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&job_with_password(scene, "another").await?).await?;
        given_up(scene, "ImagePullDenied", "401 Unauthorized").await
    })
    .await
}

pub(crate) async fn an_image_that_the_registry_does_not_have_fails_the_job_after_its_grace() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        push(scene, OPEN).await?;
        let absent = name_at(OPEN, scene).replace(":1", ":2");
        scene.create(&job_of(&absent)).await?;
        given_up(scene, "ImageNotFound", "not found").await
    })
    .await
}
