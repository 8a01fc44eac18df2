//! What a Job was accepted with stays its own (spec C2; matrix: re-created class or parameters never hijack, class edit
//! leaves accepted Jobs alone).

use anyhow::{Context, ensure};
use ayatori_crds::{JobClass, KubernetesExecutionParameters};
use ayatori_tests::eventually;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{class, condition, job, parameters, uid, with},
    own::alone,
    process::{Ayatori, Ports},
    scene::{BOUND, QUIET, Scene, object, offer},
    shared::in_namespace,
    webhooks::Webhooks,
};

/// A Job that is accepted and not started: its class waits for a RuntimeClass. Returns the class's name.
pub(crate) async fn accepted_and_waiting(scene: &Scene) -> anyhow::Result<String> {
    let name = format!("{}-pinned", scene.namespace);
    let mut settings = parameters(&name);
    settings["spec"]["runtimeClassName"] = json!("no-such-runtime");
    offer(&scene.client, &class(&name), &settings).await?;
    scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
    scene.until_condition("job", "Scheduled", "False/RuntimeClassNotFound").await?;
    Ok(name)
}

/// The Job stays what it was accepted as, and nothing runs; it can still be deleted.
async fn it_stays(scene: &Scene, why: &str, before: &Value) -> anyhow::Result<()> {
    let waiting = scene.until_condition("job", "Scheduled", &format!("False/{why}")).await?;
    tokio::time::sleep(QUIET).await;
    let after = serde_json::to_value(&scene.jobs.get("job").await?.status.context("a status")?.resolved_job_class)?;
    ensure!(after == *before, "before {before}, after {after}");
    ensure!(condition(&waiting, "Accepted") == "True/Valid", "{}", condition(&waiting, "Accepted"));
    ensure!(scene.native_jobs.list(&ListParams::default()).await?.items.is_empty(), "it was started");
    scene.delete("job").await?;
    scene.gone(&waiting).await
}

/// Deletes what is in use, against our finalizer: an administrator's force.
async fn force_away<K>(all: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    all.delete(name, &DeleteParams::default()).await?;
    let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    match all.patch(name, &PatchParams::default(), &strip).await {
        // It had none yet.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => Ok(answer.map(drop)?),
    }
}

async fn resolved(scene: &Scene) -> anyhow::Result<Value> {
    let job = scene.jobs.get("job").await?;
    ensure!(!uid(&job).is_empty());
    Ok(serde_json::to_value(&job.status.context("a status")?.resolved_job_class)?)
}

#[tokio::test]
async fn a_label_that_its_namespace_loses_does_not_reach_a_job_that_is_accepted() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-labelled", scene.namespace);
        let mut labelled = class(&name);
        labelled["spec"]["allowedNamespaces"] = json!({"matchLabels": {"tier": "ci"}});
        offer(&scene.client, &labelled, &parameters(&name)).await?;
        scene.kubectl().ok(&["label", "namespace", &scene.namespace, "tier=ci"])?;
        let manifest = |job_name| with(job(job_name, "echo ready; sleep 4"), "jobClassName", json!(name));
        scene.start(&manifest("job")).await?;
        scene.kubectl().ok(&["label", "namespace", &scene.namespace, "tier-"])?;
        eventually("new Jobs are refused", BOUND, async || {
            let refused = scene.create(&manifest("other")).await;
            if refused.is_ok() {
                scene.delete("other").await?;
            }
            ensure!(
                refused.is_err_and(|error| error.to_string().contains("does not allow namespace")),
                "it is admitted"
            );
            Ok(())
        })
        .await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Accepted") == "True/Valid", "{}", condition(&over, "Accepted"));
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_class_that_is_made_anew_does_not_take_over_a_job_of_the_old_one() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = accepted_and_waiting(scene).await?;
        let before = resolved(scene).await?;
        force_away(&Api::<JobClass>::all(scene.client.clone()), &name).await?;
        scene.until_condition("job", "Scheduled", "False/JobClassReplaced").await?;
        // The new one could start it at once.
        let ready = format!("{name}-ready");
        let mut anew = class(&name);
        anew["spec"]["parametersRef"]["name"] = json!(ready);
        offer(&scene.client, &anew, &parameters(&ready)).await?;
        it_stays(scene, "JobClassReplaced", &before).await
    })
    .await
}

/// Only with the webhook away: it keeps settings that a class uses.
#[tokio::test]
async fn parameters_that_are_made_anew_do_not_take_over_a_job_of_the_old_ones() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let name = accepted_and_waiting(scene).await?;
        let before = resolved(scene).await?;
        process.kill();
        let kubectl = scene.kubectl();
        let saved = Webhooks::remove(&kubectl)?;
        let settings = Api::<KubernetesExecutionParameters>::all(scene.client.clone());
        // The API server goes on asking the webhook for a moment.
        eventually("the settings are deleted", BOUND, async || force_away(&settings, &name).await).await?;
        settings.create(&PostParams::default(), &object(&parameters(&name))?).await?;
        saved.restore(&kubectl)?;
        let _process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        it_stays(scene, "ParametersReplaced", &before).await
    })
    .await
}

#[tokio::test]
async fn an_edit_of_the_class_does_not_reach_a_job_that_is_accepted() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-edited", scene.namespace);
        offer(&scene.client, &class(&name), &parameters(&name)).await?;
        scene.create(&with(job("job", "sleep 2"), "jobClassName", json!(name))).await?;
        scene.until_condition("job", "Accepted", "True/Valid").await?;
        let edit = json!({"spec": {
            "allowedNamespaces": {"matchLabels": {"nobody": "has-this"}},
            "resources": {"defaults": {"limits": {"memory": "64Mi"}}},
        }});
        scene.kubectl().ok(&["patch", "jobclass", &name, "--type=merge", "-p", &edit.to_string()])?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        let effective = serde_json::to_value(over.status.context("a status")?.effective_resources)?;
        ensure!(effective["limits"]["memory"] == "128Mi", "{effective}");
        Ok(())
    })
    .await
}
