//! Which class a Job gets that names none (spec B1, C1; matrix: explicit > namespace > global, zero and many defaults,
//! class created later).

use anyhow::ensure;
use ayatori_crds::{
    Job, JobClass,
    conditions::find,
    names::{DEFAULT_JOB_CLASS_ANNOTATION, IS_DEFAULT_JOB_CLASS_ANNOTATION},
};
use ayatori_tests::eventually;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use ayatori_tests::product::{
    jobs::{class, condition, in_short, job, message, parameters, with},
    scene::{BOUND, Scene, object, offer, offer_class},
    shared::in_namespace,
};

/// A class that is marked as the cluster's default concerns every Job without a class: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// Runs a test that marks classes; afterwards none is marked.
pub(crate) async fn in_turn<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    in_namespace(async |scene| {
        let _turn = TURN.lock().await;
        let outcome = test(scene).await;
        let classes = Api::<JobClass>::all(scene.client.clone());
        for class in classes.list(&ListParams::default()).await?.items {
            if class.annotations().contains_key(IS_DEFAULT_JOB_CLASS_ANNOTATION) {
                classes.delete(&class.name_any(), &DeleteParams::default()).await?;
            }
        }
        outcome
    })
    .await
}

pub(crate) fn marked(name: &str) -> Value {
    let mut class = class(name);
    class["metadata"]["annotations"] = json!({IS_DEFAULT_JOB_CLASS_ANNOTATION: "true"});
    class
}

fn without_class(name: &str) -> Value {
    with(job(name, "exit 0"), "jobClassName", Value::Null)
}

/// Waits until a Job without a class would get this one: the webhook's watch must have told of it.
async fn until_default(scene: &Scene, wanted: &str) -> anyhow::Result<()> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let job: Job = object(&without_class("dry"))?;
    eventually("the default", BOUND, async || {
        let given = scene.jobs.create(&dry, &job).await?.spec.job_class_name;
        ensure!(given.as_deref() == Some(wanted), "{given:?}");
        Ok(())
    })
    .await
}

async fn annotate_namespace(scene: &Scene, class: &str) -> anyhow::Result<()> {
    let patch = json!({"metadata": {"annotations": {DEFAULT_JOB_CLASS_ANNOTATION: class}}});
    let namespaces = Api::<Namespace>::all(scene.client.clone());
    namespaces.patch(&scene.namespace, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn resolved(job: &Job) -> Option<&str> {
    Some(job.status.as_ref()?.resolved_job_class.as_ref()?.name.as_str())
}

#[tokio::test]
async fn a_named_class_wins_over_that_of_the_namespace_and_that_over_that_of_the_cluster() -> anyhow::Result<()> {
    in_turn(async |scene| {
        let [global, of_namespace, named] =
            ["global", "namespace", "named"].map(|n| format!("{}-{n}", scene.namespace));
        offer(&scene.client, &marked(&global), &parameters(&global)).await?;
        offer_class(&scene.client, &of_namespace).await?;
        offer_class(&scene.client, &named).await?;

        until_default(scene, &global).await?;
        scene.create(&without_class("by-cluster")).await?;
        annotate_namespace(scene, &of_namespace).await?;
        until_default(scene, &of_namespace).await?;
        scene.create(&without_class("by-namespace")).await?;
        scene.create(&with(job("by-name", "exit 0"), "jobClassName", json!(named))).await?;
        for (name, class) in [("by-cluster", &global), ("by-namespace", &of_namespace), ("by-name", &named)] {
            // Written into the spec, where the caller sees it, and resolved to the same.
            let over = scene.over(name).await?;
            ensure!(over.spec.job_class_name.as_ref() == Some(class) && resolved(&over) == Some(class), "{over:?}");
        }

        // A name is used as it is written: one that is absent is not skipped for the cluster's default.
        annotate_namespace(scene, "no-such-class").await?;
        until_default(scene, "no-such-class").await?;
        let said = scene.kubectl().ok_with(&["create", "-f", "-"], &without_class("by-absent").to_string())?;
        let warning = "Warning: JobClass \"no-such-class\" does not exist: the Job waits until it does\n";
        ensure!(said.stderr == warning, "{}", said.stderr);
        scene.until_condition("by-absent", "Accepted", "False/JobClassNotFound").await.map(drop)
    })
    .await
}

#[tokio::test]
async fn a_job_without_any_default_is_admitted_with_a_warning_and_runs_once_there_is_one() -> anyhow::Result<()> {
    in_turn(async |scene| {
        let said = scene.kubectl().ok_with(&["create", "-f", "-"], &without_class("job").to_string())?;
        let warning = "Warning: spec.jobClassName is not set and neither the namespace nor the cluster has a default: \
                       the Job waits\n";
        ensure!(said.stderr == warning, "{}", said.stderr);
        let waiting = scene.until_condition("job", "Accepted", "False/NoDefaultJobClass").await?;
        ensure!(condition(&waiting, "Succeeded") == "Unknown/Pending", "{}", condition(&waiting, "Succeeded"));

        let late = format!("{}-late", scene.namespace);
        offer(&scene.client, &marked(&late), &parameters(&late)).await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{:?}", over.status);
        ensure!(resolved(&over) == Some(&late), "{:?}", over.status);
        ensure!(over.spec.job_class_name.is_none(), "the spec was changed after creation");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn several_defaults_are_never_chosen_from() -> anyhow::Result<()> {
    in_turn(async |scene| {
        let [first, second] = ["first", "second"].map(|n| format!("{}-{n}", scene.namespace));
        offer(&scene.client, &marked(&first), &parameters(&first)).await?;
        until_default(scene, &first).await?;
        let said = scene.kubectl().ok_with(&["create", "-f", "-"], &marked(&second).to_string())?;
        let warning = format!("{first} is the default already: with several, Jobs without a class wait");
        ensure!(said.stderr == format!("Warning: {warning}\n"), "{}", said.stderr);
        scene.kubectl().ok_with(&["create", "-f", "-"], &parameters(&second).to_string())?;

        // Once the watch has told of the second.
        let ambiguous = format!("several classes are the default ({first}, {second})");
        eventually("the warning", BOUND, async || {
            let create = ["create", "-f", "-", "--dry-run=server"];
            let said = scene.kubectl().ok_with(&create, &without_class("job").to_string())?;
            ensure!(said.stderr.contains(&ambiguous), "{}", said.stderr);
            Ok(())
        })
        .await?;
        scene.create(&without_class("job")).await?;
        let waiting = scene.until_condition("job", "Accepted", "False/AmbiguousDefaultJobClass").await?;
        let names = format!("{first}, {second}");
        ensure!(message(&waiting, "Accepted").contains(&names), "{}", message(&waiting, "Accepted"));
        until_conflict(scene, &[&first, &second], "True/AmbiguousDefaultJobClass").await?;

        let unmark = format!("{IS_DEFAULT_JOB_CLASS_ANNOTATION}-");
        scene.kubectl().ok(&["annotate", "jobclass", &first, &unmark])?;
        let over = scene.over("job").await?;
        ensure!(resolved(&over) == Some(&second), "{:?}", over.status);
        until_conflict(scene, &[&first, &second], "False/NoConflict").await
    })
    .await
}

/// H4: each of these classes says whether it is one of several defaults.
async fn until_conflict(scene: &Scene, names: &[&str], wanted: &str) -> anyhow::Result<()> {
    let classes = Api::<JobClass>::all(scene.client.clone());
    eventually(&format!("DefaultConflict={wanted}"), BOUND, async || {
        for name in names {
            let status = classes.get(name).await?.status.unwrap_or_default();
            let conflict = in_short(find(&status.conditions, "DefaultConflict"));
            ensure!(conflict == wanted, "{name}: {conflict}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_waits_for_the_class_that_it_names() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-late", scene.namespace);
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        let waiting = scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        ensure!(message(&waiting, "Accepted").contains(&name), "{}", message(&waiting, "Accepted"));
        offer_class(&scene.client, &name).await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{}", condition(&over, "Succeeded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_replace_without_a_class_keeps_the_one_that_was_written_in() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // It waits for its class meanwhile: a status write would make kubectl's replace a conflict.
        let late = format!("{}-late", scene.namespace);
        annotate_namespace(scene, &late).await?;
        until_default(scene, &late).await?;
        scene.create(&without_class("job")).await?;
        scene.until_condition("job", "Accepted", "False/JobClassNotFound").await?;
        // The user's manifest, as it lies in the user's folder.
        let manifest = with(without_class("job"), "ttlSecondsAfterFinished", json!(600));
        scene.kubectl().ok_with(&["replace", "-f", "-"], &manifest.to_string())?;
        let replaced = scene.jobs.get("job").await?;
        ensure!(replaced.spec.job_class_name.as_ref() == Some(&late), "{:?}", replaced.spec);
        ensure!(replaced.spec.ttl_seconds_after_finished == Some(600), "{:?}", replaced.spec);
        offer_class(&scene.client, &late).await?;
        let over = scene.over("job").await?;
        ensure!(resolved(&over) == Some(&late), "{:?}", over.status);
        Ok(())
    })
    .await
}
