//! Waiting until the webhook's stores have what was just written. A store that is behind never refuses (B2), but it may
//! allow: so verdicts of the table must not depend on how fast a watch is.

use anyhow::ensure;
use ayatori_crds::names::KUBERNETES_CONTROLLER;
use ayatori_tests::{api::kinds::Kind, eventually};
use serde_json::{Value, json};

use crate::{
    manifests,
    world::{BOUND, NAMESPACE, World},
};

/// Waits for the classes among what was made: that they are judged in their newest generation, and that the webhook
/// knows it.
pub(crate) async fn classes(world: &World, made: &[Value]) -> anyhow::Result<()> {
    for manifest in made.iter().filter(|manifest| manifest["kind"] == Kind::JobClass.name()) {
        eventually("a class is judged and the webhook knows it", BOUND, async || {
            let class = world.get(manifest).await?;
            let going = !class["metadata"]["deletionTimestamp"].is_null();
            if class["spec"]["controllerName"] == KUBERNETES_CONTROLLER && !going {
                is_judged(&class, made)?;
            }
            is_known(world, &class, made).await
        })
        .await?;
    }
    Ok(())
}

/// The controller has looked at this generation, and at the parameters where they are there too.
fn is_judged(class: &Value, made: &[Value]) -> anyhow::Result<()> {
    let (status, metadata) = (&class["status"], &class["metadata"]);
    ensure!(status["observedGeneration"] == metadata["generation"], "not looked at: {status}");
    let name = &class["spec"]["parametersRef"]["name"];
    let are_there = made
        .iter()
        .any(|manifest| manifest["kind"] == Kind::KubernetesParameters.name() && manifest["metadata"]["name"] == *name);
    let waits = status["conditions"].to_string().contains("\"ParametersNotFound\"");
    ensure!(!(are_there && waits), "its parameters are not seen: {status}");
    Ok(())
}

/// What the webhook says of the class: it warns of one that is not accepted. It is asked in every namespace that there
/// is, since the class may allow only some; where it refuses in all of them, it has read the class live.
async fn is_known(world: &World, class: &Value, made: &[Value]) -> anyhow::Result<()> {
    let conditions = class["status"]["conditions"].as_array();
    let is_going = !class["metadata"]["deletionTimestamp"].is_null();
    let Some(conditions) = conditions.filter(|_| !is_going) else {
        // Nobody judges it, or not any more.
        let words = said_of(world, class, NAMESPACE).await?.unwrap_or_default();
        ensure!(!is_going || is_missing(&words), "it says: {words:?}");
        return Ok(());
    };
    let is_accepted = conditions.iter().any(|one| one["type"] == "Accepted" && one["status"] == "True");
    let namespaces = made.iter().filter(|manifest| manifest["kind"] == "Namespace");
    let names = namespaces.filter_map(|namespace| namespace["metadata"]["name"].as_str());
    for namespace in names.chain([NAMESPACE]) {
        let Some(words) = said_of(world, class, namespace).await? else { continue };
        let says_accepted = !words.contains("is not accepted") && !is_missing(&words);
        ensure!(is_accepted == says_accepted && !words.contains("not looked at yet"), "it says: {words:?}");
        return Ok(());
    }
    Ok(())
}

fn is_missing(words: &str) -> bool {
    ["does not exist", "is being deleted"].iter().any(|why| words.contains(why))
}

/// The warnings about a Job of the class; None where it is refused.
async fn said_of(world: &World, class: &Value, namespace: &str) -> anyhow::Result<Option<String>> {
    let answer = world.dry_create(&probe(namespace, &class["metadata"]["name"])?).await?;
    Ok(answer.is_accepted().then(|| answer.warnings.join("; ")))
}

/// A Job that pleases also the strictest platform.
fn probe(namespace: &str, class: &Value) -> anyhow::Result<Value> {
    let digest = format!("registry.example/team/app@sha256:{}", "a".repeat(64));
    let spec = json!({"jobClassName": class, "task": {"image": digest}, "ttlSecondsAfterFinished": 60});
    manifests::changed(Kind::Job, "probe", &json!({"metadata": {"namespace": namespace}, "spec": spec}))
}

/// Waits until no class is the cluster's default for the webhook.
pub(crate) async fn no_default(world: &World) -> anyhow::Result<()> {
    let job = probe(NAMESPACE, &Value::Null)?;
    eventually("no class is the default", BOUND, async || {
        let words = world.dry_create(&job).await?.warnings.join("; ");
        ensure!(words.contains("neither the namespace nor the cluster has a default"), "it says: {words:?}");
        Ok(())
    })
    .await
}
