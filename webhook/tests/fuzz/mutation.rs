//! From an input that is right to one that is nearly so.

use serde_json::{Value, json};

use crate::chance::Chance;

/// Texts that have broken parsers before.
const TEXTS: [&str; 22] = [
    "",
    " ",
    "\0",
    "\u{1b}[31m",
    "\u{202e}txt",
    "\u{1f600}",
    "é",
    "../../x",
    "a/b",
    "-",
    "0",
    "true",
    "null",
    "AYATORI_X",
    "9223372036854775808",
    "1e400",
    "0.1m",
    "1Ei",
    "-1",
    "app@sha256:00",
    "UPPER",
    "$(HOME)",
];

/// Flips, drops, repeats and overwrites bytes.
pub(crate) fn bytes(input: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..=chance.below(4) {
        if input.is_empty() {
            return;
        }
        let at = chance.below(input.len());
        match chance.below(7) {
            0 => input[at] ^= 1 << chance.below(8),
            1 => input.truncate(at),
            2 => {
                input.remove(at);
            }
            3 => input.insert(at, u8::try_from(chance.below(256)).unwrap()),
            4 => {
                let end = (at + 1 + chance.below(32)).min(input.len());
                let part = input[at..end].to_vec();
                let to = chance.below(input.len());
                input.splice(to..to, part);
            }
            5 => input[at] = *chance.pick(b"{}[]\",:\\0-.eE\xff"),
            _ => {
                let depth = 1 << chance.below(16);
                input.splice(at..at, std::iter::repeat_n(b'[', depth));
            }
        }
    }
}

/// Replaces, removes, repeats and adds values anywhere in a document.
pub(crate) fn value(document: &mut Value, chance: &mut Chance) {
    for _ in 0..=chance.below(3) {
        let count = places(document);
        let mut at = chance.below(count);
        let place = nth(document, &mut at).unwrap();
        change(place, chance);
    }
}

fn change(place: &mut Value, chance: &mut Chance) {
    match (chance.below(6), &mut *place) {
        (0, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(chance.below(map.len())).cloned().unwrap();
            map.remove(&key);
        }
        (1, Value::Object(map)) => {
            map.insert((*chance.pick(&TEXTS)).to_owned(), leaf(chance));
        }
        (0, Value::Array(list)) if !list.is_empty() => {
            list.remove(chance.below(list.len()));
        }
        (1, Value::Array(list)) if !list.is_empty() => {
            let copy = list[chance.below(list.len())].clone();
            let times = if chance.once_in(20) { 200 } else { 1 };
            list.extend(std::iter::repeat_n(copy, times));
        }
        (2, Value::String(text)) => {
            let other = *chance.pick(&TEXTS);
            let times = if chance.once_in(20) { 2000 } else { 1 };
            text.push_str(&other.repeat(times));
        }
        (3, Value::String(text)) => {
            let mut bytes = std::mem::take(text).into_bytes();
            self::bytes(&mut bytes, chance);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => *place = leaf(chance),
    }
}

fn leaf(chance: &mut Chance) -> Value {
    match chance.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!({}),
        3 => json!([]),
        4 => json!(chance.next()),
        5 => json!(-1),
        6 => json!(0.5),
        7 => json!([[], {"a": null}]),
        _ => json!(chance.pick(&TEXTS)),
    }
}

/// How many values a document holds, itself included.
fn places(document: &Value) -> usize {
    1 + match document {
        Value::Array(list) => list.iter().map(places).sum::<usize>(),
        Value::Object(map) => map.values().map(places).sum(),
        _ => 0,
    }
}

fn nth<'a>(document: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(document);
    }
    *at -= 1;
    match document {
        Value::Array(list) => list.iter_mut().find_map(|inner| nth(inner, at)),
        Value::Object(map) => map.values_mut().find_map(|inner| nth(inner, at)),
        _ => None,
    }
}
