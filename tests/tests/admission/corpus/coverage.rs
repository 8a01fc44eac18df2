//! No field of our definitions without its inputs.

use std::collections::BTreeSet;

use ayatori_tests::api::{fields, kinds::Kind};
use serde_json::Value;

use super::{Fed, all, input::Input};

/// How many inputs there are at least in all, and for each field.
const IN_ALL: usize = 480;
const OF_A_FIELD: usize = 6;

/// The fields that take a value, with their schemas. Not those of the status: no one can create an object with one, and
/// what may be written there is the matter of the schema suite.
fn leaves(kind: Kind) -> Vec<fields::Place> {
    let places = fields::places(&kind.schema().unwrap(), &kind.object("any"));
    let known: BTreeSet<String> = places.iter().map(|place| place.field.clone()).collect();
    let all = fields::fields(&kind.schema().unwrap());
    let lost: Vec<_> = all.iter().filter(|field| field.starts_with("spec") && !known.contains(*field)).collect();
    assert!(lost.is_empty(), "{kind:?}: the valid object lacks {lost:?}");
    places.into_iter().filter(|place| place.is_leaf() && place.field.starts_with("spec")).collect()
}

#[test]
fn every_field_of_the_definitions_has_its_corpus() {
    let all = all().unwrap();
    let mut faults = vec![];
    for kind in Kind::ALL {
        for leaf in leaves(kind) {
            let inputs: Vec<&Input> =
                all.iter().filter(|fed| fed.kind == kind && fed.field == leaf.field).map(|fed| &fed.input).collect();
            let lacking = lacking(&leaf.schema, &inputs);
            if !lacking.is_empty() {
                faults.push(format!("{} {}: {}", kind.name(), leaf.field, lacking.join(", ")));
            }
        }
    }
    assert!(faults.is_empty(), "{} fields lack inputs:\n{}", faults.len(), faults.join("\n"));
}

/// What the inputs of a field do not have, though its type asks for it.
fn lacking(schema: &Value, inputs: &[&Input]) -> Vec<String> {
    let mut lacking = vec![];
    let mut want = |is: bool, what: &str| {
        if !is {
            lacking.push(what.to_owned());
        }
    };
    let values: Vec<&Value> = inputs.iter().filter_map(|input| input.value.as_ref()).collect();
    let long = inputs.iter().filter_map(|input| input.long.as_ref().map(|long| long.text()));
    let texts: Vec<String> = values.iter().filter_map(|value| value.as_str().map(str::to_owned)).chain(long).collect();
    want(inputs.len() >= OF_A_FIELD, "six inputs");
    want(inputs.iter().any(|input| input.is_missing()), "the field taken away");
    want(values.iter().any(|value| value.is_null()), "null");
    let is_quantity = schema["x-kubernetes-int-or-string"] == true;
    match schema["type"].as_str() {
        Some("string") => {
            want(values.iter().any(|value| !value.is_string() && !value.is_null()), "another type");
            want(texts.iter().any(String::is_empty), "an empty text");
            want(texts.iter().any(|text| !text.chars().all(|c| c.is_ascii_graphic())), "an odd character");
            if let Some(most) = schema["maxLength"].as_u64() {
                let has = |length| texts.iter().any(|text| text.chars().count() as u64 == length);
                want(schema["enum"].is_array() || has(most), "the longest text");
                want(schema["enum"].is_array() || has(most + 1), "a text one too long");
            }
            for word in schema["enum"].as_array().into_iter().flatten() {
                want(values.contains(&word), &format!("the word {word}"));
            }
        }
        Some("integer") => {
            want(values.iter().any(|value| value.is_string()), "a text");
            want(values.iter().any(|value| value.is_f64()), "a fraction");
            if let Some(least) = schema["minimum"].as_i64() {
                want(values.contains(&&Value::from(least)), "the least");
                want(values.contains(&&Value::from(least - 1)), "one less than the least");
            }
        }
        Some("boolean") => {
            want([true, false].iter().all(|is| values.contains(&&Value::from(*is))), "both values");
            want(values.iter().any(|value| value.is_string()), "a text");
            want(values.iter().any(|value| value.is_number()), "a number");
        }
        _ if is_quantity => {
            want(values.iter().any(|value| value.is_i64()), "a number");
            want(values.iter().any(|value| value.is_f64()), "a fraction");
            want(texts.iter().any(|text| text.starts_with('-')), "a negative one");
            want(texts.iter().any(String::is_empty), "an empty text");
        }
        other => want(false, &format!("a way to look at the type {other:?}")),
    }
    lacking
}

#[test]
fn the_corpus_is_large_and_no_two_inputs_of_a_field_are_called_the_same() {
    let all = all().unwrap();
    assert!(all.len() >= IN_ALL, "{}", all.len());
    let names: BTreeSet<String> = all.iter().map(Fed::name).collect();
    assert_eq!(names.len(), all.len());
}

#[test]
fn a_field_without_enough_inputs_is_seen() {
    let inputs: Vec<Input> = serde_saphyr::from_str("[{say: a, value: 1, schema: ok}]").unwrap();
    let lacking = lacking(&serde_json::json!({"type": "string", "maxLength": 4}), &inputs.iter().collect::<Vec<_>>());
    assert_eq!(
        lacking,
        [
            "six inputs",
            "the field taken away",
            "null",
            "an empty text",
            "an odd character",
            "the longest text",
            "a text one too long"
        ]
    );
}
