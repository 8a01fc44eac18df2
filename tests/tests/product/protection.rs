//! Classes and settings that are in use (spec H3, H4; matrix: class deletion blocked, then free).

use anyhow::ensure;
use ayatori_crds::{JobClass, KubernetesExecutionParameters, conditions::find};
use ayatori_tests::eventually;
use kube::{Api, api::DeleteParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{UNTIL_TERM, condition, job, with},
    scene::{BOUND, Scene, offer_class},
    shared::in_namespace,
};

async fn until_gone<K>(what: &str, all: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
{
    eventually(what, BOUND, async || {
        let left = all.get_opt(name).await?;
        ensure!(left.is_none(), "it is there: {}", serde_json::to_string(&left)?);
        Ok(())
    })
    .await
}

/// A class of its own with a Job that runs.
async fn in_use(scene: &Scene) -> anyhow::Result<String> {
    let name = format!("{}-used", scene.namespace);
    offer_class(&scene.client, &name).await?;
    let created = scene.create(&with(job("job", UNTIL_TERM), "jobClassName", json!(name))).await?;
    scene.says(&created, "ready").await?;
    Ok(name)
}

#[tokio::test]
async fn a_class_that_is_deleted_waits_for_its_jobs_says_for_which_and_accepts_no_others() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = in_use(scene).await?;
        let classes = Api::<JobClass>::all(scene.client.clone());
        classes.delete(&name, &DeleteParams::default()).await?;
        eventually("the class says for which Job it waits", BOUND, async || {
            let status = classes.get(&name).await?.status.unwrap_or_default();
            let terminating = find(&status.conditions, "Terminating").map(|found| found.message.as_str());
            let expected = format!("deletion waits for 1 Job that holds this class: {}/job", scene.namespace);
            ensure!(terminating == Some(&expected), "{terminating:?}");
            Ok(())
        })
        .await?;
        scene.create(&with(job("late", "exit 0"), "jobClassName", json!(name))).await?;
        scene.until_condition("late", "Accepted", "False/JobClassNotFound").await?;

        // The running one is not touched, and frees the class by its end.
        ensure!(condition(&scene.jobs.get("job").await?, "Succeeded") == "Unknown/Running");
        scene.cancel("job").await?;
        scene.over("job").await?;
        until_gone("the class is gone", &classes, &name).await
    })
    .await
}

#[tokio::test]
async fn settings_that_are_deleted_stay_as_long_as_a_class_names_them() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = in_use(scene).await?;
        let settings = Api::<KubernetesExecutionParameters>::all(scene.client.clone());
        eventually("the settings are protected", BOUND, async || {
            let finalizers = settings.get(&name).await?.metadata.finalizers.unwrap_or_default();
            ensure!(finalizers == ["execution.ayatori.ddupan.top/parameters-protection"], "{finalizers:?}");
            Ok(())
        })
        .await?;
        let classes = Api::<JobClass>::all(scene.client.clone());
        // The class first: its deletion waits for the Job, that of the settings for the class.
        classes.delete(&name, &DeleteParams::default()).await?;
        // Our webhook may refuse it meanwhile; what counts is that they stay.
        let _ = settings.delete(&name, &DeleteParams::default()).await;
        ensure!(settings.get_opt(&name).await?.is_some(), "they are gone under a running Job");
        scene.cancel("job").await?;
        until_gone("the class is gone", &classes, &name).await?;
        let _ = settings.delete(&name, &DeleteParams::default()).await;
        until_gone("the settings are gone", &settings, &name).await
    })
    .await
}
