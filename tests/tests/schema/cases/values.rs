//! What a field of a type is fed with: absent, null, empty, at and beyond its bounds, of another type, in odd Unicode.

use serde_json::{Value, json};

use super::quantities;
use crate::fields::Place;

/// Values by class.
type Values = Vec<(String, Option<Value>)>;

/// For a field without an upper bound: long, but affordable.
const LONG: usize = 10_000;

/// The values for a field.
pub(crate) fn of(place: &Place) -> Values {
    let (schema, present) = (&place.schema, &place.present);
    let mut values = Values::new();
    let mut add = |class: &str, value: Value| values.push((class.to_owned(), Some(value)));
    add("null", Value::Null);
    if schema["x-kubernetes-int-or-string"] == json!(true) {
        quantities::add(&place.field, &mut add);
    } else {
        match schema["type"].as_str() {
            Some("string") => strings(schema, present, &mut add),
            Some("integer") => integers(schema, &mut add),
            Some("boolean") => booleans(&mut add),
            Some("array") => lists(schema, present, &mut add),
            Some("object") => objects(present, &mut add),
            other => panic!("a field of type {other:?}"),
        }
    }
    values.push(("absent".to_owned(), None));
    values
}

fn number(schema: &Value, bound: &str) -> Option<usize> {
    schema[bound].as_u64().map(|number| usize::try_from(number).unwrap())
}

fn strings(schema: &Value, present: &Value, add: &mut impl FnMut(&str, Value)) {
    let present = present.as_str().unwrap();
    for (class, wrong) in [("a-number", json!(5)), ("a-boolean", json!(true)), ("a-list", json!(["a"]))] {
        add(class, wrong);
    }
    add("an-object", json!({"a": "b"}));
    add("a-fraction", json!(1.5));
    add("empty", json!(""));
    add("one-character", json!("a"));
    // On top of the valid value, so that what the field demands of its beginning (https://) holds.
    for (class, odd) in [
        ("combining", "e\u{301}\u{302}"),
        ("right-to-left", "\u{202e}\u{5d0}\u{627}"),
        ("emoji", "👩\u{200d}🚀"),
        ("nul", "\u{0}"),
        ("line-break", "\n"),
        ("escape", "\u{1b}[31m"),
        ("blank", " "),
        ("byte-order-mark", "\u{feff}"),
        ("last-code-point", "\u{10ffff}"),
    ] {
        add(class, json!(format!("{present}{odd}")));
    }
    if schema["allOf"][0]["format"] == "date-time" {
        return date_times(add);
    }
    for word in schema["enum"].as_array().into_iter().flatten() {
        let word = word.as_str().unwrap();
        add(&format!("word-{word}"), json!(word));
        add(&format!("small-{word}"), json!(word.to_lowercase()));
    }
    let longest = number(schema, "maxLength");
    let filled = |length: usize, with: char| {
        json!(present.chars().chain(std::iter::repeat(with)).take(length).collect::<String>())
    };
    add("longest", filled(longest.unwrap_or(LONG), 'a'));
    add("longest-in-emoji", filled(longest.unwrap_or(LONG), '🚀'));
    if let Some(longest) = longest {
        add("too-long", filled(longest + 1, 'a'));
        add("too-long-in-emoji", filled(longest + 1, '🚀'));
    }
}

fn date_times(add: &mut impl FnMut(&str, Value)) {
    for (class, text) in [
        ("another-zone", "2030-01-01T12:00:00+02:00"),
        ("nanoseconds", "2030-01-01T10:00:00.123456789Z"),
        ("no-zone", "2030-01-01T10:00:00"),
        ("no-time", "2030-01-01"),
        ("small-letters", "2030-01-01t10:00:00z"),
        ("blank-between", "2030-01-01 10:00:00Z"),
        ("30-february", "2030-02-30T10:00:00Z"),
        ("leap-second", "2030-01-01T23:59:60Z"),
        ("hour-24", "2030-01-01T24:00:00Z"),
        ("year-1", "0001-01-01T00:00:00Z"),
        ("year-9999", "9999-12-31T23:59:59Z"),
        ("year-10000", "10000-01-01T00:00:00Z"),
    ] {
        add(class, json!(text));
    }
}

fn integers(schema: &Value, add: &mut impl FnMut(&str, Value)) {
    for (class, value) in [
        ("0", json!(0)),
        ("1", json!(1)),
        ("-1", json!(-1)),
        ("2^31-1", json!(2_147_483_647_i64)),
        ("2^31", json!(2_147_483_648_i64)),
        ("-2^31", json!(-2_147_483_648_i64)),
        ("-2^31-1", json!(-2_147_483_649_i64)),
        ("2^53+1", json!(9_007_199_254_740_993_i64)),
        ("2^63-1", json!(i64::MAX)),
        ("2^63", json!(9_223_372_036_854_775_808_u64)),
        ("-2^63", json!(i64::MIN)),
        ("2^64", json!(18_446_744_073_709_551_616.0)),
        ("1.0", json!(1.0)),
        ("1.5", json!(1.5)),
        ("1e300", json!(1e300)),
        ("a-string", json!("1")),
        ("empty", json!("")),
        ("wide-digit", json!("１")),
        ("a-boolean", json!(true)),
        ("a-list", json!([1])),
        ("an-object", json!({})),
    ] {
        add(class, value);
    }
    if let Some(minimum) = schema["minimum"].as_i64() {
        add("the-least", json!(minimum));
        add("too-little", json!(minimum - 1));
    }
}

fn booleans(add: &mut impl FnMut(&str, Value)) {
    for (class, value) in [
        ("true", json!(true)),
        ("false", json!(false)),
        ("a-string", json!("true")),
        ("empty", json!("")),
        ("wide-letters", json!("ｔｒｕｅ")),
        ("0", json!(0)),
        ("1", json!(1)),
        ("a-list", json!([true])),
        ("an-object", json!({})),
    ] {
        add(class, value);
    }
}

fn lists(schema: &Value, present: &Value, add: &mut impl FnMut(&str, Value)) {
    let items = present.as_array().unwrap();
    let many = |count: usize| {
        let key = schema["x-kubernetes-list-map-keys"][0].as_str();
        let item = |index: usize| {
            let mut item = items[0].clone();
            if let Some(key) = key {
                item[key] = json!(format!("Key{index}"));
            }
            item
        };
        // The first stay: other rules may need them.
        json!(items.iter().cloned().chain((0..count).map(item)).take(count).collect::<Vec<_>>())
    };
    add("empty", json!([]));
    add("twice-the-same", json!([items[0], items[0]]));
    add("with-null", json!([items[0], null]));
    add("with-a-list", json!([items[0], []]));
    add("a-string", json!("text"));
    add("an-object", json!({"0": items[0]}));
    match number(schema, "maxItems") {
        Some(most) => {
            add("most", many(most));
            add("too-many", many(most + 1));
        }
        None => add("most", many(1000)),
    }
}

fn objects(present: &Value, add: &mut impl FnMut(&str, Value)) {
    let mut more = present.clone();
    more["unknownField"] = json!("text");
    add("empty", json!({}));
    add("with-an-unknown-field", more);
    add("a-string", json!("text"));
    add("a-list", json!([present]));
    add("a-boolean", json!(false));
}
