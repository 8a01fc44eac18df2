//! What a quantity is fed with (A7).

use serde_json::{Value, json};

/// Where every text below is tried. The other quantities have the same schema and get the [`SELECTION`].
const THOROUGH: [&str; 2] = ["spec.resources.requests.", "spec.resources.defaults.requests."];

const TAKEN: &[&str] = &[
    "0",
    "-0",
    "1",
    "+1",
    "1000m",
    "0.5Gi",
    "512Mi",
    "1G",
    "1e9",
    "1E3",
    "1e-3",
    ".5",
    "1.",
    "100n",
    "0.1n",
    "1k",
    "4Ki",
    "9223372036854775",
];
/// Some are taken for memory and beyond the bounds of CPU, which is counted in thousandths.
const AT_AND_BEYOND_THE_BOUNDS: &[&str] = &[
    "9223372036854776",
    "9Pi",
    "1E",
    "7Ei",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "8Ei",
    "9Ei",
    "1e19",
    "1e999",
    "1e1.5",
    "-1",
    "-1m",
    "-0.5Gi",
    "-9Ei",
];
const NO_QUANTITIES: &[&str] =
    &["", "1 Gi", " 1", "1\n", "1gi", "1K", "0x10", "NaN", "1e", "m", "--1", "1.2.3", "１", "٣", "1\u{301}", "1🚀"];
const SELECTION: &[&str] = &["1000m", "9223372036854775", "9Pi", "9Ei", "1e1.5", "-1m", "", "1gi", "１"];

pub(crate) fn add(field: &str, add: &mut impl FnMut(&str, Value)) {
    let thorough = THOROUGH.iter().any(|start| field.starts_with(start));
    for text in [TAKEN, AT_AND_BEYOND_THE_BOUNDS, NO_QUANTITIES].concat() {
        if thorough || SELECTION.contains(&text) {
            add(&class(text), json!(text));
        }
    }
    // 64 characters are the most.
    add("longest", json!(format!("{}1", "0".repeat(63))));
    add("too-long", json!(format!("{}1", "0".repeat(64))));
    for number in [0, 1, -1, i64::MAX] {
        add(&format!("number:{number}"), json!(number));
    }
    add("number:2^63", json!(9_223_372_036_854_775_808_u64));
    for (class, wrong) in [("a-fraction", json!(1.5)), ("a-boolean", json!(true)), ("a-list", json!([1]))] {
        add(class, wrong);
    }
    add("an-object", json!({}));
}

/// The text, such that it is one word of ASCII.
fn class(text: &str) -> String {
    let word = |c: char| if c.is_ascii_graphic() { c.to_string() } else { format!("<{:04X}>", c as u32) };
    format!("text:{}", text.chars().map(word).collect::<String>())
}
