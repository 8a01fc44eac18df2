//! The objects that cases start from, and where objects are.

use anyhow::Context;
use ayatori_tests::api::kinds::Kind;
use serde_json::{Value, json};

use crate::{theme, world::NAMESPACE};

/// What is there before any case: `cases/world.yaml`.
pub(crate) fn of_the_world() -> anyhow::Result<Vec<Value>> {
    theme::read("cases/world.yaml")
}

/// The plain valid object of a kind (`cases/bases.yaml`), under a name, changed by a merge patch (RFC 7386: null takes a
/// field away).
pub(crate) fn changed(kind: Kind, name: &str, change: &Value) -> anyhow::Result<Value> {
    let bases: Vec<Value> = theme::read("cases/bases.yaml")?;
    let mut manifest = bases.into_iter().find(|base| base["kind"] == kind.name()).context("no base of that kind")?;
    manifest["metadata"]["name"] = json!(name);
    if kind == Kind::Job {
        manifest["metadata"]["namespace"] = json!(NAMESPACE);
    }
    json_patch::merge(&mut manifest, change);
    Ok(manifest)
}

/// The kind, if it is one of our four.
pub(crate) fn kind(manifest: &Value) -> Option<Kind> {
    Kind::named(manifest["kind"].as_str()?)
}

/// The namespace of an object that has one.
pub(crate) fn namespace(manifest: &Value) -> &str {
    manifest["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE)
}

/// The path of the objects of a manifest's kind, in its namespace.
pub(crate) fn collection(manifest: &Value) -> anyhow::Result<String> {
    if let Some(kind) = kind(manifest) {
        return Ok(kind.collection_within(namespace(manifest)));
    }
    let within = format!("/api/v1/namespaces/{}", namespace(manifest));
    Ok(match manifest["kind"].as_str().context("a kind")? {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "Secret" => format!("{within}/secrets"),
        "ConfigMap" => format!("{within}/configmaps"),
        other => anyhow::bail!("where is a {other}?"),
    })
}

/// The path of the object itself.
pub(crate) fn path(manifest: &Value) -> anyhow::Result<String> {
    let name = manifest["metadata"]["name"].as_str().context("a name")?;
    Ok(format!("{}/{name}", collection(manifest)?))
}
