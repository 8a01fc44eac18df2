//! Changing a JSON document at a place named by a JSON pointer.

use serde_json::Value;

/// Puts `value` at the pointer, or removes what is there for None. What lies above the place is made where it is
/// missing.
pub(crate) fn set(document: &mut Value, pointer: &str, value: Option<Value>) {
    let (above, last) = pointer.rsplit_once('/').unwrap();
    match (parent(document, above), value) {
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => drop(items.remove(last.parse().unwrap())),
        (Value::Object(fields), Some(value)) => drop(fields.insert(last.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(last)),
        (other, _) => panic!("nothing can be set in {other} ({pointer})"),
    }
}

fn parent<'a>(mut at: &'a mut Value, pointer: &str) -> &'a mut Value {
    for token in pointer.split('/').skip(1) {
        at = match at {
            Value::Array(items) => &mut items[token.parse::<usize>().unwrap()],
            _ => &mut at[token],
        };
        if at.is_null() {
            *at = Value::Object(serde_json::Map::new());
        }
    }
    at
}
