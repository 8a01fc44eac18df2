//! The little that is asked of an object before it is decoded: is it going, and did its spec change at all?

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Metadata and spec of an object of any kind. One that has another shape has no outline: it is not being deleted.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Outline<'a> {
    #[serde(default)]
    metadata: OutlineMetadata,
    #[serde(default, borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutlineMetadata {
    deletion_timestamp: Option<IgnoredAny>,
}

impl<'a> Outline<'a> {
    pub(crate) fn of(object: &'a RawValue) -> Self {
        serde_json::from_str(object.get()).unwrap_or_default()
    }

    /// Whether the object waits for its finalizers to go.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether both specs are the same text. The API server writes both by the same encoder with sorted keys, so an
    /// unchanged spec is the same text; where it is not, it may still be the same by value.
    pub(crate) fn same_text(&self, other: &Self) -> bool {
        self.spec.map(RawValue::get) == other.spec.map(RawValue::get)
    }
}
