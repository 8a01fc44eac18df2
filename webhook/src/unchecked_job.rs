//! A Job as defaulting sees it: before its schema is checked, so any part may have any shape.
//!
//! What is looked at is borrowed from the body and the rest is passed over. A tree of all values would take sixteen times
//! the memory of the body, and whoever reaches the port may send one.

use std::borrow::Cow;
use std::fmt;

use ayatori_crds::names::{JOB_CLEANUP_FINALIZER, TRACEPARENT_ANNOTATION, TRACESTATE_ANNOTATION};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A part is None where it is absent, null, or no object.
#[derive(Debug, Default)]
pub(crate) struct UncheckedJob<'a> {
    pub(crate) spec: Option<Spec<'a>>,
    pub(crate) metadata: Option<Metadata<'a>>,
}

#[derive(Debug, Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

/// What defaulting fills of a spec. None where it is absent or null.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec<'a> {
    #[serde(borrow)]
    job_class_name: Option<&'a RawValue>,
    #[serde(borrow)]
    ttl_seconds_after_finished: Option<&'a RawValue>,
}

/// What defaulting reads and fills of the metadata. None where it is absent or null.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    finalizers: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    deletion_timestamp: Option<IgnoredAny>,
}

/// A collection of texts to which defaulting adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    /// It is absent.
    Absent,
    /// It is there, without what would be added.
    Lacking,
    /// It has what would be added, or is something else than it should be: it stays as it is.
    Settled,
}

impl<'a> UncheckedJob<'a> {
    pub(crate) fn of(object: &'a RawValue) -> Self {
        let Some(Parts { spec, metadata }) = members(Some(object)) else { return Self::default() };
        Self { spec: members(spec), metadata: members(metadata) }
    }

    /// Whether it has a spec that names no class; an empty name is none.
    pub(crate) fn lacks_class(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.job_class_name.is_none_or(|name| name.get() == r#""""#))
    }

    /// Whether it has a spec that says nothing of a TTL.
    pub(crate) fn lacks_ttl(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.ttl_seconds_after_finished.is_none())
    }

    /// The name of its class, where it is a text.
    pub(crate) fn class(&self) -> Option<Cow<'a, str>> {
        text(self.spec.as_ref()?.job_class_name?)
    }

    /// Whether it waits for its finalizers to go.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.deletion_timestamp.is_some())
    }
}

impl Metadata<'_> {
    /// Whether our finalizer is in the list.
    pub(crate) fn finalizer(&self) -> Present {
        present(self.finalizers, '[', &[JOB_CLEANUP_FINALIZER])
    }

    /// Whether one of the annotations of a trace is there: a state means nothing beside another parent.
    pub(crate) fn trace(&self) -> Present {
        present(self.annotations, '{', &[TRACEPARENT_ANNOTATION, TRACESTATE_ANNOTATION])
    }
}

/// The members of an object that `T` names.
fn members<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    // serde would take an array for a struct.
    let object = raw.filter(|raw| raw.get().starts_with('{'))?;
    serde_json::from_str(object.get()).ok()
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    /// serde borrows a text where it is told to.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// Looks for texts among the items of a list or the keys of a map, as the bracket says.
fn present(raw: Option<&RawValue>, bracket: char, wanted: &'static [&'static str]) -> Present {
    let Some(raw) = raw else { return Present::Absent };
    let found = serde_json::Deserializer::from_str(raw.get()).deserialize_any(Holds(wanted));
    match found {
        Ok(false) if raw.get().starts_with(bracket) => Present::Lacking,
        _ => Present::Settled,
    }
}

/// Whether one of these is there. Nothing of the collection is kept.
struct Holds(&'static [&'static str]);

impl<'de> Visitor<'de> for Holds {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut holds = false;
        while let Some(item) = items.next_element::<&RawValue>()? {
            holds |= text(item).is_some_and(|item| self.0.contains(&&*item));
        }
        Ok(holds)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let mut holds = false;
        while let Some((key, IgnoredAny)) = entries.next_entry::<String, IgnoredAny>()? {
            holds |= self.0.contains(&&*key);
        }
        Ok(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(text: &str) -> (Present, Present) {
        let metadata: Metadata<'_> = serde_json::from_str(text).unwrap();
        (metadata.finalizer(), metadata.trace())
    }

    #[test]
    fn lists_and_maps_are_searched_whatever_else_they_hold() {
        use Present::{Absent, Lacking, Settled};
        for (text, expected) in [
            ("{}", (Absent, Absent)),
            (r#"{"finalizers": null, "annotations": null}"#, (Absent, Absent)),
            (r#"{"finalizers": [], "annotations": {}}"#, (Lacking, Lacking)),
            (r#"{"finalizers": [[1], {"a": 2}, "b"], "annotations": {"a": [1]}}"#, (Lacking, Lacking)),
            (r#"{"finalizers": {}, "annotations": []}"#, (Settled, Settled)),
            (r#"{"finalizers": "x", "annotations": 5}"#, (Settled, Settled)),
        ] {
            assert_eq!(metadata(text), expected, "{text}");
        }
        // An escape in it makes it no other text.
        let ours = JOB_CLEANUP_FINALIZER.replace('j', r"\u006a");
        assert_eq!(metadata(&format!(r#"{{"finalizers": ["{ours}", 1]}}"#)).0, Settled);
        let ours = TRACESTATE_ANNOTATION.replace('t', r"\u0074");
        assert_eq!(metadata(&format!(r#"{{"annotations": {{"{ours}": "x", "b": 1}}}}"#)).1, Settled);
    }

    #[test]
    fn what_has_another_shape_is_not_there() {
        for text in ["5", "null", "[]", r#"[{"jobClassName": "a"}, {}]"#, r#"{"spec": [], "metadata": "x"}"#] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            let job = UncheckedJob::of(raw);
            assert!(job.spec.is_none() && job.metadata.is_none(), "{text}: {job:?}");
        }
    }

    #[test]
    fn the_class_is_the_text_and_only_a_text() {
        for (text, class, lacks) in [
            (r#"{"spec": {"jobClassName": "a\u0062"}}"#, Some("ab"), false),
            (r#"{"spec": {"jobClassName": 5}}"#, None, false),
            (r#"{"spec": {"jobClassName": ""}}"#, Some(""), true),
            (r#"{"spec": {}}"#, None, true),
        ] {
            let job = UncheckedJob::of(serde_json::from_str(text).unwrap());
            assert_eq!((job.class().as_deref(), job.lacks_class()), (class, lacks), "{text}");
        }
    }
}
