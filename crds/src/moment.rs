//! Times in a schema: strings of the one form that Kubernetes' own clients write, whole seconds in UTC.
//!
//! So two texts are one moment exactly when they are equal, their order is that of the moments, and CEL can compare
//! them without ever failing. With `format: date-time` on the field itself CEL would read timestamps, but that format
//! takes what is no time for CEL (`2030-01-01t10:00:00z`, even a list of strings). A rule that *fails* on a stored
//! value, unlike one that is false, locks the object: neither labels nor finalizers can be changed any more (spec A4).

use schemars::{Schema, SchemaGenerator, json_schema};

/// The schema of a time. The format inside of `allOf` checks the calendar and is not seen by CEL.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": 20,
        "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        "allOf": [{ "format": "date-time" }],
    })
}
