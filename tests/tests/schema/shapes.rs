//! Names, types, defaults, list types and bounds are those of the reference (spec section 2), field by field.
//!
//! The objects of [`crate::differential`] show what the API server makes of them; this shows that no field, default or
//! mark was forgotten that no object happens to touch.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    kinds::{Kind, schema_of},
    server,
};

/// What a field of ours must say exactly as the reference says it.
const SAME: [&str; 12] = [
    "type",
    "format",
    "default",
    "enum",
    "pattern",
    "minLength",
    "minimum",
    "required",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Fields with what they say of [`SAME`]; nothing above spec and status.
fn fields(schema: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for root in ["spec", "status"] {
        if let Some(inner) = schema["properties"].get(root) {
            visit(inner, root, &mut found);
        }
    }
    found
}

fn visit(schema: &Value, field: &str, found: &mut BTreeMap<String, Value>) {
    let mut said = serde_json::Map::new();
    for key in SAME {
        if let Some(value) = schema.get(key) {
            said.insert(key.to_owned(), value.clone());
        }
    }
    for list in ["required", "enum"] {
        if let Some(Value::Array(words)) = said.get_mut(list) {
            words.sort_by_key(ToString::to_string);
        }
    }
    found.insert(field.to_owned(), Value::Object(said));
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        visit(inner, &format!("{field}.{name}"), found);
    }
    for (mark, inner) in [("[]", &schema["items"]), ("{}", &schema["additionalProperties"])] {
        if inner.is_object() {
            visit(inner, &format!("{field}{mark}"), found);
        }
    }
}

/// A4: times of a status are strings of one form, see `crds/src/moment.rs`; the rest of the field is the reference's.
fn as_the_reference_writes_times(mut ours: Value) -> Value {
    if ours["pattern"].as_str().is_some_and(|pattern| pattern.ends_with(r"T\d\d:\d\d:\d\dZ$")) {
        let fields = ours.as_object_mut().unwrap();
        fields.remove("pattern");
        fields.insert("format".to_owned(), json!("date-time"));
    }
    ours
}

#[test]
fn our_definitions_have_the_fields_types_defaults_and_list_types_of_the_reference() -> anyhow::Result<()> {
    let Some(manifests) = server::reference_definitions()? else { return Ok(()) };
    for (kind, manifest) in Kind::ALL.into_iter().zip(&manifests) {
        let reference: Value = serde_saphyr::from_str(manifest)?;
        let theirs = fields(&schema_of(&reference));
        let ours: BTreeMap<_, _> = fields(&kind.schema().unwrap())
            .into_iter()
            .map(|(field, said)| (field, as_the_reference_writes_times(said)))
            .collect();
        assert_eq!(ours, theirs, "{kind:?}");
        let definition = ayatori_crds::definitions::all()?.into_iter().find(|one| one.file == kind.file()).unwrap();
        for name in ["/spec/scope", "/spec/names/kind", "/spec/names/plural", "/spec/names/singular", "/spec/group"] {
            assert_eq!(definition.object.pointer(name), reference.pointer(name), "{kind:?} {name}");
        }
    }
    Ok(())
}
