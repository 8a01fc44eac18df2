//! JobClasses (spec B8, H1, H2; matrix: unsupported controller, wrong parameters kind, parameters late, RuntimeClass
//! missing, Ready=False blocks only starts).

use anyhow::{Context, ensure};
use ayatori_crds::{JobClass, conditions::find};
use ayatori_tests::eventually;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{UNTIL_TERM, class, condition, in_short, job, message, parameters, with},
    scene::{BOUND, QUIET, Scene, object, offer},
    shared::in_namespace,
};

/// Waits until the class has these conditions.
async fn until_class(scene: &Scene, name: &str, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    let classes = Api::<JobClass>::all(scene.client.clone());
    eventually(&format!("class {name} is {wanted:?}"), BOUND, async || {
        let status = classes.get(name).await?.status.unwrap_or_default();
        let has = |(type_, words): &(&str, &str)| in_short(find(&status.conditions, type_)) == *words;
        ensure!(wanted.iter().all(has), "{}", serde_json::to_string(&status)?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_class_that_contradicts_itself_is_refused_with_every_fault() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-wrong", scene.namespace);
        let mut wrong = class(&name);
        wrong["spec"]["parametersRef"]["kind"] = json!("ConfigMap");
        wrong["spec"]["resources"]["minimum"] = json!({"limits": {"cpu": "3"}});
        let said = scene.kubectl().run(&["create", "-f", "-"], &wrong.to_string())?;
        let words = format!(
            "The JobClass \"{name}\" is invalid: \n\
             * spec.parametersRef.kind: Invalid value: \"ConfigMap\": must be KubernetesExecutionParameters, which \
             execution.ayatori.ddupan.top/kubernetes takes\n\
             * spec.resources.minimum.limits.cpu: Invalid value: \"3\": must be at most 2, the maximum\n\
             * spec.resources.defaults.limits.cpu: Invalid value: \"1\": must be at least 3, the minimum\n"
        );
        ensure!(!said.success && said.stderr == words, "{}", said.stderr);
        ensure!(Api::<JobClass>::all(scene.client.clone()).get_opt(&name).await?.is_none(), "it is stored");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_class_of_an_adapter_that_is_not_here_is_admitted_with_a_warning_and_not_accepted() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-unsupported", scene.namespace);
        let mut unsupported = class(&name);
        unsupported["spec"]["controllerName"] = json!("execution.ayatori.ddupan.top/later");
        let said = scene.kubectl().ok_with(&["create", "-f", "-"], &unsupported.to_string())?;
        let warning =
            "no adapter here serves \"execution.ayatori.ddupan.top/later\": if none elsewhere does, its Jobs wait";
        ensure!(said.stderr == format!("Warning: {warning}\n"), "{}", said.stderr);
        until_class(scene, &name, &[("Accepted", "False/UnsupportedController")]).await?;
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotAccepted").await.map(drop)
    })
    .await
}

#[tokio::test]
async fn a_class_of_another_domain_is_never_touched() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-foreign", scene.namespace);
        let mut foreign = class(&name);
        foreign["spec"]["controllerName"] = json!("other.example/runner");
        foreign["spec"]["parametersRef"] = json!({"group": "other.example", "kind": "Anything", "name": "x"});
        let classes = Api::<JobClass>::all(scene.client.clone());
        let made = classes.create(&PostParams::default(), &object(&foreign)?).await?;
        // A class made after it has its status: the controller has passed this one by.
        let next = format!("{}-next", scene.namespace);
        offer(&scene.client, &class(&next), &parameters(&next)).await?;
        let later = classes.get(&name).await?;
        ensure!(later.metadata.resource_version == made.metadata.resource_version, "{later:?}");
        ensure!(later.status.is_none() && later.metadata.finalizers.is_none(), "{later:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_class_and_its_jobs_wait_for_its_parameters() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-early", scene.namespace);
        Api::<JobClass>::all(scene.client.clone()).create(&PostParams::default(), &object(&class(&name))?).await?;
        until_class(scene, &name, &[("Accepted", "False/ParametersNotFound")]).await?;
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotAccepted").await?;
        scene.kubectl().ok_with(&["create", "-f", "-"], &parameters(&name).to_string())?;
        until_class(scene, &name, &[("Accepted", "True/Accepted"), ("Ready", "True/BackendReachable")]).await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_class_whose_runtime_class_is_missing_accepts_jobs_and_starts_none() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-sandboxed", scene.namespace);
        let mut settings = parameters(&name);
        settings["spec"]["runtimeClassName"] = json!("no-such-runtime");
        offer(&scene.client, &class(&name), &settings).await?;
        until_class(scene, &name, &[("Accepted", "True/Accepted"), ("Ready", "False/RuntimeClassNotFound")]).await?;
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        // D1: it waits and says for what; it does not run without the sandbox that was asked for.
        let waiting = scene.until_condition("job", "Scheduled", "False/RuntimeClassNotFound").await?;
        ensure!(condition(&waiting, "Accepted") == "True/Valid", "{}", condition(&waiting, "Accepted"));
        ensure!(message(&waiting, "Scheduled").contains("no-such-runtime"), "{}", message(&waiting, "Scheduled"));
        tokio::time::sleep(QUIET).await;
        ensure!(scene.native_jobs.list(&ListParams::default()).await?.items.is_empty(), "it was started");

        // Not ready stops new starts only (H2).
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        over.status.context("a status").map(drop)
    })
    .await
}

#[tokio::test]
async fn a_class_that_becomes_unready_starts_nothing_new_and_its_running_jobs_go_on() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-runtime", scene.namespace);
        let runtimes = Api::<RuntimeClass>::all(scene.client.clone());
        let runtime = object(&json!({"metadata": {"name": name}, "handler": "runc"}))?;
        runtimes.create(&PostParams::default(), &runtime).await?;
        let mut settings = parameters(&name);
        settings["spec"]["runtimeClassName"] = json!(name);
        offer(&scene.client, &class(&name), &settings).await?;
        until_class(scene, &name, &[("Ready", "True/BackendReachable")]).await?;
        let of_class = |job| with(job, "jobClassName", json!(name));
        for name in ["stopped", "ending"] {
            scene.start(&of_class(job(name, UNTIL_TERM))).await?;
        }

        runtimes.delete(&name, &DeleteParams::default()).await?;
        // It is looked for each minute, and on a change of the class.
        let label = Patch::Merge(json!({"metadata": {"labels": {"changed": "yes"}}}));
        Api::<JobClass>::all(scene.client.clone()).patch(&name, &PatchParams::default(), &label).await?;
        until_class(scene, &name, &[("Ready", "False/RuntimeClassNotFound")]).await?;
        scene.create(&of_class(job("late", "exit 0"))).await?;
        scene.until_condition("late", "Scheduled", "False/RuntimeClassNotFound").await?;
        for name in ["stopped", "ending"] {
            let running = scene.jobs.get(name).await?;
            ensure!(condition(&running, "Succeeded") == "Unknown/Running", "{name}: {:?}", running.status);
        }
        // H2: observing, cancelling and deleting go on.
        scene.cancel("stopped").await?;
        let over = scene.over("stopped").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        scene.delete("ending").await?;
        scene.until_gone("ending").await
    })
    .await
}
