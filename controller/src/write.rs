//! The writes of the controllers: one bounded call each. `None` is an object that is gone.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    call::{CallError, bounded, found},
    patch::{self, json_patch},
};

/// Sends the operations of a JSON patch.
///
/// # Errors
/// The call's own failure, apart from "not found".
pub async fn operations<K>(objects: &Api<K>, name: &str, operations: Value) -> Result<Option<K>, CallError>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = json_patch(operations)?;
    found(bounded(objects.patch(name, &PatchParams::default(), &patch)).await)
}

/// Writes a status, under the resourceVersion of the object that was seen.
///
/// # Errors
/// The call's own failure, apart from "not found".
pub async fn status<K, S>(objects: &Api<K>, seen: &ObjectMeta, status: &S) -> Result<Option<K>, CallError>
where
    K: DeserializeOwned,
    S: Serialize + Sync,
{
    let patch = Patch::Merge(patch::status(seen, status));
    let name = seen.name.as_deref().unwrap_or_default();
    found(bounded(objects.patch_status(name, &PatchParams::default(), &patch)).await)
}

/// Deletes the object with these preconditions, said aloud as Background: the default of native Jobs orphans their pods.
/// What is left of it is answered where its deletion takes its time.
///
/// # Errors
/// The call's own failure, apart from "not found".
pub async fn deletion<K>(objects: &Api<K>, name: &str, preconditions: Preconditions) -> Result<Option<K>, CallError>
where
    K: Clone + Debug + DeserializeOwned,
{
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    // The answer holds the object, or a Status where it was gone at once.
    Ok(found(bounded(objects.delete(name, &parameters)).await)?.and_then(|answer| answer.left()))
}
