//! Changing a JSON document at a place named by a JSON pointer.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// Puts `value` at the pointer, or removes what is there for None. What lies above the place is made where it is
/// missing.
pub fn set(document: &mut Value, pointer: &str, value: Option<Value>) -> anyhow::Result<()> {
    let (above, last) = pointer.rsplit_once('/').with_context(|| format!("{pointer:?} is no pointer to a field"))?;
    match (parent(document, above)?, value) {
        (Value::Array(items), value) => {
            let index: usize = last.parse()?;
            let item = items.get_mut(index).with_context(|| format!("nothing is at {pointer}"))?;
            match value {
                Some(value) => *item = value,
                None => drop(items.remove(index)),
            }
        }
        (Value::Object(fields), Some(value)) => drop(fields.insert(last.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(last)),
        (other, _) => bail!("nothing can be set in {other} ({pointer})"),
    }
    Ok(())
}

fn parent<'a>(mut at: &'a mut Value, pointer: &str) -> anyhow::Result<&'a mut Value> {
    for token in pointer.split('/').skip(1) {
        at = match at {
            Value::Array(items) => items.get_mut(token.parse::<usize>()?).context("the list is shorter")?,
            Value::Object(fields) => fields.entry(token).or_insert(Value::Null),
            other => bail!("nothing lies in {other} ({pointer})"),
        };
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    Ok(at)
}
