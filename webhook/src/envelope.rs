//! The `AdmissionReview` around an object: only what we read of it, in three layers, so that the uid survives whatever
//! is wrong further in (spec B9).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::Arrival;

/// The one version of the envelope that we speak.
pub(crate) const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of the envelope.
pub(crate) const KIND: &str = "AdmissionReview";

/// The outermost layer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Envelope<'a> {
    #[serde(default, deserialize_with = "text")]
    pub(crate) api_version: String,
    #[serde(default, deserialize_with = "text")]
    pub(crate) kind: String,
    #[serde(borrow)]
    pub(crate) request: &'a RawValue,
}

/// A text; whatever else stands there is none, and no reason to lose the uid.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// `apiVersion` and `kind`, which the answer repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Types {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

impl Types {
    /// Whether this is the envelope that we speak.
    pub(crate) fn known(&self) -> bool {
        self.api_version == API_VERSION && self.kind == KIND
    }
}

/// The layer that has the uid, and nothing that could be wrong with it.
#[derive(Deserialize)]
pub(crate) struct Identified {
    pub(crate) uid: String,
}

/// One admission request. Objects stay raw JSON: what a kind does not know of them is never lost.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// The kind of the object.
    pub kind: GroupVersionKind,
    /// The resource that was asked for.
    pub resource: GroupVersionResource,
    /// The subresource; empty for the main resource.
    #[serde(default)]
    pub sub_resource: String,
    /// The object's name; empty where the server has yet to make it from `generateName`.
    #[serde(default)]
    pub name: String,
    /// The object's namespace; empty for a cluster-scoped kind.
    #[serde(default)]
    pub namespace: String,
    /// What is done to the object.
    pub operation: Operation,
    /// The object as it would be stored; absent on DELETE.
    #[serde(default, borrow)]
    pub object: Option<&'a RawValue>,
    /// The object as it is stored; absent on CREATE.
    #[serde(default, borrow)]
    pub old_object: Option<&'a RawValue>,
    /// Whether nothing will be stored.
    #[serde(default)]
    pub dry_run: bool,
    /// How the request came.
    #[serde(skip)]
    pub arrival: Arrival,
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is new.
    Create,
    /// It is changed.
    Update,
    /// It goes.
    Delete,
    /// A connection to it is opened.
    Connect,
}

impl Operation {
    /// The word as it stands in a request.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A kind, fully named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GroupVersionKind {
    /// Its API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its name, such as `Job`.
    pub kind: String,
}

/// A resource, fully named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GroupVersionResource {
    /// Its API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural, such as `jobs`.
    pub resource: String,
}
