//! Reads which keys a Secret or ConfigMap has (spec C3), and never a value: values and annotations are skipped while an
//! answer is decoded.

use std::collections::{BTreeMap, BTreeSet};

use ayatori_crds::rules::references::Referent;
use kube::{Client, api::GetParams, core::Request};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    call::{CallError, bounded, found},
    job::references::{Answer, Reference},
};

/// Metadata, of which only the names of the fields are read: the API server lists there who wrote which.
#[derive(Deserialize, Debug, Default)]
struct Metadata {
    #[serde(default)]
    metadata: Managed,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Managed {
    #[serde(default)]
    managed_fields: Vec<Manager>,
}

#[derive(Deserialize, Debug, Default)]
struct Manager {
    #[serde(default, rename = "fieldsV1")]
    fields: Fields,
}

#[derive(Deserialize, Debug, Default)]
struct Fields {
    #[serde(default, rename = "f:data")]
    data: BTreeMap<String, IgnoredAny>,
    #[serde(default, rename = "f:binaryData")]
    binary_data: BTreeMap<String, IgnoredAny>,
}

impl Metadata {
    /// The keys that the API server lists. That one is not listed proves nothing: the list can be emptied.
    fn keys(&self) -> impl Iterator<Item = &str> {
        let fields = self.metadata.managed_fields.iter().map(|manager| &manager.fields);
        fields
            .flat_map(|fields| fields.data.keys().chain(fields.binary_data.keys()))
            .filter_map(|key| key.strip_prefix("f:"))
    }
}

/// The whole object, of which only the keys are read.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Keys {
    #[serde(default)]
    data: Option<BTreeMap<String, IgnoredAny>>,
    #[serde(default)]
    binary_data: Option<BTreeMap<String, IgnoredAny>>,
}

/// Looks at an object for these keys: its metadata first, the whole only where a key is not listed there.
///
/// # Errors
/// The call's own failure, apart from "not found" and "forbidden", which are answers.
pub async fn read(
    client: &Client,
    namespace: &str,
    reference: &Reference,
    wanted: &BTreeSet<String>,
) -> Result<Answer, CallError> {
    match look(client, namespace, reference, wanted).await {
        Ok(answer) => Ok(answer),
        Err(CallError::Refused(why)) => Ok(Answer::Forbidden(why)),
        Err(error) => Err(error),
    }
}

async fn look(
    client: &Client,
    namespace: &str,
    reference: &Reference,
    wanted: &BTreeSet<String>,
) -> Result<Answer, CallError> {
    let resource = match reference.kind {
        Referent::Secret => "secrets",
        Referent::ConfigMap => "configmaps",
    };
    let (path, parameters) = (Request::new(format!("/api/v1/namespaces/{namespace}/{resource}")), GetParams::default());
    let metadata = path.get_metadata(&reference.name, &parameters).map_err(kube::Error::BuildRequest)?;
    let Some(metadata) = found(bounded(client.request::<Metadata>(metadata)).await)? else { return Ok(Answer::Absent) };
    let listed: BTreeSet<&str> = metadata.keys().collect();
    if wanted.iter().all(|key| listed.contains(key.as_str())) {
        return Ok(Answer::Present(wanted.clone()));
    }
    let whole = path.get(&reference.name, &parameters).map_err(kube::Error::BuildRequest)?;
    let Some(whole) = found(bounded(client.request::<Keys>(whole)).await)? else { return Ok(Answer::Absent) };
    let has = |key: &String| [&whole.data, &whole.binary_data].into_iter().flatten().any(|keys| keys.contains_key(key));
    Ok(Answer::Present(wanted.iter().filter(|key| has(key)).cloned().collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_read_off_the_list_of_managed_fields() {
        let metadata: Metadata = serde_json::from_value(json!({
            "kind": "PartialObjectMetadata",
            "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "a value"},
                "managedFields": [
                    {"manager": "kubectl", "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:type": {}}},
                    {"manager": "other", "fieldsV1": {"f:binaryData": {"f:b.c": {}}}}, {"manager": "none"}]},
        }))
        .unwrap();
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["a", "b.c"]);
    }

    #[test]
    fn no_value_is_held_of_an_object_that_is_read_whole() {
        let whole: Keys = serde_json::from_value(json!({
            "metadata": {"annotations": {"x": "hunter2"}}, "data": {"password": "aHVudGVyMg=="}, "type": "Opaque",
        }))
        .unwrap();
        let held = format!("{whole:?}");
        assert!(held.contains("password") && !held.contains("hunter2") && !held.contains("aHVudGVyMg"), "{held}");
        let empty: Keys = serde_json::from_value(json!({"data": null})).unwrap();
        assert!(empty.data.is_none());
    }
}
