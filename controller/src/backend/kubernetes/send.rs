//! The requests to one native Job, each under a test of its UID.

use ayatori_crds::names::BACKEND_CLEANUP_FINALIZER;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, api::Preconditions};
use serde_json::json;

use super::objects::NativeJob;
use crate::{
    call::{CallError, bounded, found},
    patch, write,
};

/// The native Jobs of one namespace. An answer is the native Job as it is then; `None` where there is none.
pub(super) struct NativeJobs(Api<NativeJob>);

type Answer = Result<Option<NativeJob>, CallError>;

impl NativeJobs {
    pub(super) fn of(client: &Client, namespace: &str) -> Self {
        Self(Api::namespaced(client.clone(), namespace))
    }

    pub(super) async fn read(&self, name: &str) -> Answer {
        found(bounded(self.0.get(name)).await)
    }

    /// Its one release.
    pub(super) async fn release(&self, name: &str, uid: &str) -> Answer {
        write::operations(&self.0, name, patch::release(uid)).await
    }

    /// 0, not 1: on a suspended native Job it makes a release that lands late harmless (spec F1).
    pub(super) async fn stop(&self, name: &str, uid: &str) -> Answer {
        write::operations(&self.0, name, patch::set_by_uid(uid, "/spec/activeDeadlineSeconds", &json!(0))).await
    }

    /// A limit of its own, where it has none: never over our stop, so under the resourceVersion that was seen.
    pub(super) async fn limit(&self, seen: &ObjectMeta, seconds: i64) -> Answer {
        let operations = patch::set_where_seen(seen, "/spec/activeDeadlineSeconds", &json!(seconds));
        write::operations(&self.0, seen.name.as_deref().unwrap_or_default(), operations).await
    }

    pub(super) async fn delete(&self, name: &str, uid: String) -> Answer {
        write::deletion(&self.0, name, Preconditions { uid: Some(uid), resource_version: None }).await
    }

    /// Takes our finalizer off the native Job that was seen; nothing is sent where it has none.
    pub(super) async fn unprotect(&self, seen: &ObjectMeta) -> Answer {
        let Some(operations) = patch::remove_finalizer(seen, BACKEND_CLEANUP_FINALIZER) else { return Ok(None) };
        write::operations(&self.0, seen.name.as_deref().unwrap_or_default(), operations).await
    }
}
