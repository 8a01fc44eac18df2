//! One input: what is put at a place, and what becomes of it.

use ayatori_tests::api::pointer;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What it is, in a few words.
    pub(crate) say: String,
    /// The place is taken away.
    #[serde(default)]
    missing: bool,
    #[serde(default, deserialize_with = "also_null")]
    pub(crate) value: Option<Value>,
    /// JSON that no value stands for: a key twice, `1e3`.
    #[serde(default)]
    raw: Option<String>,
    #[serde(default)]
    pub(crate) long: Option<Long>,
    #[serde(default)]
    many: Option<Many>,
    /// As many objects within each other.
    #[serde(default)]
    deep: Option<usize>,
    /// The whole body is changed, not a place in it.
    #[serde(default)]
    body: Option<Body>,
    /// What schema and CEL say.
    schema: String,
    /// What is said with the webhook, where that is something else.
    #[serde(default)]
    webhook: Option<String>,
}

/// A text that is too long to be written out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Long {
    #[serde(default)]
    start: String,
    of: String,
    times: usize,
}

/// A list that is too long to be written out; `#` in a text is the index. Where `of` is an object with one field whose
/// name has a `#`, `as_object` joins them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Many {
    of: Value,
    times: usize,
    #[serde(default)]
    joined: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Body {
    Before(String),
    After(String),
    Instead(String),
    Utf16,
}

fn also_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Stands in the place of what is no JSON value; no input has it.
const MARK: &str = "\u{1}mark\u{1}";

impl Long {
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.start, self.of.repeat(self.times))
    }
}

impl Many {
    fn value(&self) -> Value {
        let items = (0..self.times).map(|index| numbered(&self.of, index));
        if !self.joined {
            return Value::Array(items.collect());
        }
        let fields = items.filter_map(|item| if let Value::Object(fields) = item { Some(fields) } else { None });
        Value::Object(fields.flatten().collect::<Map<_, _>>())
    }
}

/// With the index for each `#`.
fn numbered(value: &Value, index: usize) -> Value {
    let number = |text: &str| text.replace('#', &index.to_string());
    match value {
        Value::String(text) => json!(number(text)),
        Value::Array(items) => items.iter().map(|item| numbered(item, index)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (number(name), numbered(value, index))).collect())
        }
        other => other.clone(),
    }
}

impl Input {
    /// The verdicts: of the schema alone, with the webhook.
    pub(crate) fn verdicts(&self) -> (String, String) {
        (self.schema.clone(), self.webhook.clone().unwrap_or_else(|| self.schema.clone()))
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.missing
    }

    /// The object with the input at a place, as it is sent.
    pub(crate) fn body(&self, object: &Value, at: &str) -> anyhow::Result<Vec<u8>> {
        let mut object = object.clone();
        let raw =
            self.raw.clone().or_else(|| self.deep.map(|depth| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)));
        let put = match (&self.value, &self.long, &self.many, &raw) {
            (Some(value), ..) => Some(value.clone()),
            (_, Some(long), ..) => Some(json!(long.text())),
            (.., Some(many), _) => Some(many.value()),
            (.., Some(_)) => Some(json!(MARK)),
            _ => None,
        };
        let changes = put.is_some() || self.missing;
        anyhow::ensure!(changes != self.body.is_some(), "it says neither what to put nor what to change");
        if changes {
            pointer::set(&mut object, at, put)?;
        }
        let text = object.to_string().replace(&json!(MARK).to_string(), raw.as_deref().unwrap_or_default());
        Ok(match &self.body {
            None => text.into_bytes(),
            Some(Body::Before(before)) => format!("{before}{text}").into_bytes(),
            Some(Body::After(after)) => format!("{text}{after}").into_bytes(),
            Some(Body::Instead(body)) => body.clone().into_bytes(),
            Some(Body::Utf16) => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        })
    }
}

#[test]
fn an_input_is_put_at_its_place() {
    let object = json!({"a": {"b": [1, 2]}});
    let body = |text: &str, at: &str| {
        let input: Input = serde_saphyr::from_str(text).unwrap();
        String::from_utf8(input.body(&object, at).unwrap()).unwrap()
    };
    assert_eq!(body("{say: x, value: null, schema: ok}", "/a/b"), r#"{"a":{"b":null}}"#);
    assert_eq!(body("{say: x, missing: true, schema: ok}", "/a/b/0"), r#"{"a":{"b":[2]}}"#);
    assert_eq!(body("{say: x, raw: '1e3', schema: ok}", "/a/b/1"), r#"{"a":{"b":[1,1e3]}}"#);
    assert_eq!(body("{say: x, deep: 2, schema: ok}", "/a"), r#"{"a":{"a":{"a":1}}}"#);
    assert_eq!(body("{say: x, long: {start: 'x:', of: y, times: 2}, schema: ok}", "/a"), r#"{"a":"x:yy"}"#);
    assert_eq!(body("{say: x, many: {of: {n: 'v#'}, times: 2}, schema: ok}", "/a"), r#"{"a":[{"n":"v0"},{"n":"v1"}]}"#);
    assert_eq!(
        body("{say: x, many: {of: {'k#': v}, times: 2, joined: true}, schema: ok}", "/a"),
        r#"{"a":{"k0":"v","k1":"v"}}"#
    );
    assert_eq!(body("{say: x, body: {after: ']'}, schema: ok}", "/"), r#"{"a":{"b":[1,2]}}]"#);
    let nothing: Input = serde_saphyr::from_str("{say: x, schema: ok}").unwrap();
    assert!(nothing.body(&object, "/a").is_err());
}
