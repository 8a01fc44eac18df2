//! Refusals as people see them through kubectl (spec B2 to B4): every fault at once, in the words of the built-in
//! kinds, and nothing stored.

use anyhow::{Context, ensure};
use ayatori_crds::names::JOB_CLEANUP_FINALIZER;
use kube::api::ListParams;
use serde_json::{Value, json};

use ayatori_tests::{
    api::usable_classes::unnamed,
    product::{
        jobs::{STANDARD, class, job, parameters, task, with},
        scene::{QUIET, Scene, object, offer},
        shared::in_namespace,
    },
};

/// The resource's whole name: `job` alone means batch/v1.
const JOBS: &str = "jobs.execution.ayatori.ddupan.top";

/// A Job with a fault in every part that our rules look at.
fn faulty() -> Value {
    let task =
        task("refused", json!({"image": "Not An Image", "env": [{"name": "AYATORI_JOB_UID", "value": "forged"}]}));
    with(task, "resources", json!({"requests": {"memory": "256Mi"}, "limits": {"cpu": "8"}}))
}

const FAULTS: &str = "\
* spec.task.image: Invalid value: \"Not An Image\": must be an OCI image reference such as registry.example/team/app:1.2
* spec.task.env[0].name: Invalid value: \"AYATORI_JOB_UID\": must not begin with AYATORI_, which is kept for the \
platform
* spec.resources.requests.memory: Invalid value: \"256Mi\": must be at most 128Mi, its limit
* spec.resources.limits.cpu: Invalid value: \"8\": must be at most 2, the maximum of JobClass \"standard\"
";

/// kubectl refuses with exactly these words, and the namespace stays empty.
async fn is_refused(scene: &Scene, arguments: &[&str], job: &Value, words: &str) -> anyhow::Result<()> {
    let said = scene.kubectl().run(arguments, &job.to_string())?;
    ensure!(!said.success && unnamed(&said.stderr) == words, "kubectl said:\n{}\nwanted:\n{words}", said.stderr);
    let stored = scene.jobs.list(&ListParams::default()).await?.items;
    ensure!(stored.is_empty(), "stored: {stored:?}");
    Ok(())
}

#[tokio::test]
async fn every_fault_is_named_in_one_answer_and_nothing_is_stored() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let words = format!("The Job \"refused\" is invalid: \n{FAULTS}");
        is_refused(scene, &["create", "-f", "-"], &faulty(), &words).await?;
        is_refused(scene, &["apply", "-f", "-"], &faulty(), &words).await
    })
    .await
}

#[tokio::test]
async fn a_dry_run_is_refused_alike_and_a_good_one_shows_the_defaults_and_creates_nothing() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let dry = ["create", "-f", "-", "--dry-run=server", "-o", "json"];
        let words = format!("The Job \"refused\" is invalid: \n{FAULTS}");
        is_refused(scene, &dry, &faulty(), &words).await?;

        let said = scene.kubectl().ok_with(&dry, &job("good", "exit 0").to_string())?;
        let shown: Value = serde_json::from_str(&said.stdout)?;
        ensure!(shown["metadata"]["finalizers"] == json!([JOB_CLEANUP_FINALIZER]), "{shown}");
        ensure!(shown["spec"]["desiredState"] == "Running", "{shown}");
        tokio::time::sleep(QUIET).await;
        ensure!(scene.jobs.get_opt("good").await?.is_none(), "the dry run stored the Job");
        ensure!(scene.native_jobs.list(&ListParams::default()).await?.items.is_empty(), "the dry run runs");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_with_a_generate_name_is_refused_under_the_name_that_it_would_have_had() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let mut job = faulty();
        job["metadata"] = json!({"generateName": "refused-"});
        let said = scene.kubectl().run(&["create", "-f", "-"], &job.to_string())?.stderr;
        let (name, faults) = said.split_once('\n').context("one line")?;
        ensure!(name.starts_with("The Job \"refused-") && name.ends_with("\" is invalid: "), "{said}");
        ensure!(faults == FAULTS, "{said}");
        ensure!(scene.jobs.list(&ListParams::default()).await?.items.is_empty(), "it is stored");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_namespace_that_is_the_only_fault_is_forbidden_and_beside_others_one_more_cause() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-only", scene.namespace);
        let mut exclusive = class(&name);
        exclusive["spec"]["allowedNamespaces"] = json!({"matchLabels": {"tier": "production"}});
        offer(&scene.client, &exclusive, &parameters(&name)).await?;
        let namespace = &scene.namespace;
        let why = format!(
            "JobClass \"{name}\" does not allow namespace \"{namespace}\": use one that does (…), or ask an \
             administrator to label the namespace as the class's allowedNamespaces asks"
        );

        let create = ["create", "-f", "-"];
        let alone = with(job("refused", "exit 0"), "jobClassName", json!(name));
        let words = format!(
            "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \
             \"validate.jobs.execution.ayatori.ddupan.top\" denied the request: {JOBS} \"refused\" is forbidden: \
             {why}\n"
        );
        is_refused(scene, &create, &alone, &words).await?;

        let among_others = with(faulty(), "jobClassName", json!(name));
        let faults = FAULTS.replace(&format!("JobClass {STANDARD:?}"), &format!("JobClass {name:?}"));
        let (of_the_task, of_the_resources) = faults.split_at(faults.find("* spec.resources").unwrap());
        let words = format!(
            "The Job \"refused\" is invalid: \n{of_the_task}* spec.jobClassName: Forbidden: {why}\n{of_the_resources}"
        );
        is_refused(scene, &create, &among_others, &words).await?;

        // What was wanted: the label lets the same manifest in.
        let label = ["label", "namespace", namespace, "tier=production"];
        scene.kubectl().ok(&label)?;
        scene.create(&alone).await?;
        scene.over("refused").await.map(drop)
    })
    .await
}

#[tokio::test]
async fn one_fault_is_told_on_one_line() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let words = "The Job \"refused\" is invalid: spec.task.image: Invalid value: \"Not An Image\": must be an OCI \
                     image reference such as registry.example/team/app:1.2\n";
        let job = task("refused", json!({"image": "Not An Image"}));
        is_refused(scene, &["create", "-f", "-"], &job, words).await
    })
    .await
}

#[tokio::test]
async fn a_stale_store_never_refuses() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // B2: the namespace is labelled and the Job sent at once, before the watch can have told of the label.
        let name = format!("{}-only", scene.namespace);
        let mut exclusive = class(&name);
        exclusive["spec"]["allowedNamespaces"] = json!({"matchLabels": {"round": "yes"}});
        offer(&scene.client, &exclusive, &parameters(&name)).await?;
        let namespaces = kube::Api::<k8s_openapi::api::core::v1::Namespace>::all(scene.client.clone());
        let label = |value: Value| kube::api::Patch::Merge(json!({"metadata": {"labels": {"round": value}}}));
        let dry = kube::api::PostParams { dry_run: true, ..kube::api::PostParams::default() };
        let job = object(&with(job("job", "exit 0"), "jobClassName", json!(name)))?;
        for round in 0..20 {
            let parameters = kube::api::PatchParams::default();
            namespaces.patch(&scene.namespace, &parameters, &label(json!("yes"))).await?;
            let sent = scene.jobs.create(&dry, &job).await;
            ensure!(sent.is_ok(), "round {round}: {}", sent.unwrap_err());
            namespaces.patch(&scene.namespace, &parameters, &label(Value::Null)).await?;
        }
        Ok(())
    })
    .await
}
