//! What an answer must be, exactly: code, reason, message, causes, warnings.

use ayatori_crds::names::GROUP;
use ayatori_tests::api::{kinds::Kind, requests::Answer, usable_classes::unnamed};
use serde::Deserialize;
use serde_json::Value;

/// What is expected of an answer. One of `allowed`, `refused`, `forbidden` and `error` is said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Expected {
    /// It is taken, and what is answered has this; null means that it is not there.
    pub(crate) allowed: Option<Value>,
    /// 422, with these causes in this order, each as `field: message`.
    pub(crate) refused: Vec<String>,
    /// 403, for this reason.
    pub(crate) forbidden: Option<String>,
    /// Another refusal.
    pub(crate) error: Option<Other>,
    /// Who refuses.
    pub(crate) by: By,
    /// All warnings, in this order.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Other {
    code: u16,
    reason: String,
    message: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// Our validating webhook.
    #[default]
    Webhook,
    /// The API server itself, by schema and CEL.
    Schema,
}

/// What the API server adds to some faults of the schema: CEL was not asked. It is left out of the files.
const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was \
                         invalid; correct the existing errors to complete validation";

impl Expected {
    /// Whether our webhook refuses.
    pub(crate) fn is_refused_by_webhook(&self) -> bool {
        self.by == By::Webhook && (!self.refused.is_empty() || self.forbidden.is_some())
    }

    /// Where an answer differs, in words.
    pub(crate) fn faults(&self, kind: Kind, name: &str, answer: &Answer) -> Vec<String> {
        let mut faults = vec![];
        let mut differ = |what: &str, wanted: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug| {
            let (wanted, got) = (format!("{wanted:?}"), format!("{got:?}"));
            if wanted != got {
                faults.push(format!("{what}:\n  wanted {wanted}\n  got    {got}"));
            }
        };
        differ("warnings", &self.warnings, &answer.warnings);
        let body = &answer.body;
        let (message, reason) = (unnamed(text(&body["message"])), text(&body["reason"]));
        let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let told: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", text(&cause["field"]), unnamed(text(&cause["message"]))))
            .collect();
        let reasons: Vec<&str> = causes.iter().map(|cause| text(&cause["reason"])).collect();
        if let Some(wanted) = &self.allowed {
            differ("code", &true, &answer.is_accepted());
            if answer.is_accepted() {
                let mut missing = vec![];
                contains(body, wanted, "", &mut missing);
                differ("the object", &Vec::<String>::new(), &missing);
            } else {
                differ("message", &"", &message);
                differ("causes", &Vec::<String>::new(), &told);
            }
            return faults;
        }
        let refused = if self.by == By::Schema { self.as_the_schema_tells(&told) } else { self.refused.clone() };
        let (code, wanted_reason, wanted_message) = self.refusal(kind, name, &refused);
        differ("code", &code, &answer.code);
        differ("reason", &wanted_reason, &reason);
        differ("message", &wanted_message, &message);
        differ("causes", &refused, &told);
        differ("their reasons", &refused.iter().map(|cause| reason_of(cause)).collect::<Vec<_>>(), &reasons);
        if self.error.is_none() {
            // For a Forbidden, the API's own kinds say the resource here, and so do we by B4 the kind.
            let details = &body["details"];
            let wanted = [GROUP, kind.name(), name];
            let got = ["group", "kind", "name"].map(|field| text(&details[field]));
            differ("details", &wanted, &got);
        }
        faults
    }

    /// The causes as the API server tells faults of the schema: in no order, and perhaps with a note. Where they are
    /// not the same ones, as they stand in the file.
    fn as_the_schema_tells(&self, told: &[String]) -> Vec<String> {
        let sorted = |causes: &[String]| {
            let mut causes: Vec<_> = causes.iter().filter(|cause| *cause != UNCHECKED).cloned().collect();
            causes.sort_unstable();
            causes
        };
        if sorted(told) == sorted(&self.refused) { told.to_vec() } else { self.refused.clone() }
    }

    /// Code, reason and message of the refusal.
    fn refusal(&self, kind: Kind, name: &str, refused: &[String]) -> (u16, &str, String) {
        let resource = kind.file().trim_end_matches(".yaml");
        let by = match self.by {
            By::Webhook => format!("admission webhook \"validate.{resource}.{GROUP}\" denied the request: "),
            By::Schema => String::new(),
        };
        if let Some(why) = &self.forbidden {
            return (403, "Forbidden", format!("{by}{resource}.{GROUP} \"{name}\" is forbidden: {why}"));
        }
        if let Some(other) = &self.error {
            return (other.code, &other.reason, other.message.clone());
        }
        let told = match refused {
            [only] => only.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        // The API server escapes what is odd in a name; ours passed its check before we are asked.
        let name: String = name.chars().map(escaped).collect();
        (422, "Invalid", format!("{by}{}.{GROUP} \"{name}\" is invalid: {told}", kind.name()))
    }
}

/// The reason of a cause, by the first words of its message (Kubernetes' `field.Error`).
fn reason_of(cause: &str) -> &'static str {
    let message = cause.split_once(": ").map_or("", |(_, message)| message);
    if message.contains(" in body must be of type ") {
        return "FieldValueTypeInvalid";
    }
    let known = [
        ("Invalid value", "FieldValueInvalid"),
        ("Required value", "FieldValueRequired"),
        ("Forbidden", "FieldValueForbidden"),
        ("Unsupported value", "FieldValueNotSupported"),
        ("Duplicate value", "FieldValueDuplicate"),
        ("Too long", "FieldValueTooLong"),
        ("Too many", "FieldValueTooMany"),
    ];
    known.into_iter().find(|(words, _)| message.starts_with(words)).map_or("a reason of no known cause", |(_, one)| one)
}

/// A character as Go's `%q` writes it.
fn escaped(character: char) -> String {
    match character {
        '\n' => "\\n".to_owned(),
        control if control.is_control() => format!("\\x{:02x}", u32::from(control)),
        other => other.to_string(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Notes where `whole` lacks what is wanted of it. Objects may have more, lists may not; null is absence.
fn contains(whole: &Value, wanted: &Value, at: &str, missing: &mut Vec<String>) {
    match wanted {
        Value::Object(fields) => {
            for (name, wanted) in fields {
                contains(&whole[name.as_str()], wanted, &format!("{at}.{name}"), missing);
            }
        }
        _ if whole == wanted => {}
        _ => missing.push(format!("{at} is {whole}, not {wanted}")),
    }
}

#[test]
fn a_verdict_that_differs_in_anything_is_a_fault() {
    let answer = |code, message: &str, cause: &str| Answer {
        code,
        warnings: vec![],
        body: serde_json::json!({"code": code, "reason": "Invalid", "message": message, "details": {
            "group": GROUP, "kind": "Job", "name": "x",
            "causes": [{"field": "spec.a", "message": cause, "reason": "FieldValueInvalid"}]}}),
    };
    let expected = Expected { refused: vec!["spec.a: Invalid value: 1: no".into()], ..Expected::default() };
    let told = "admission webhook \"validate.jobs.execution.ayatori.ddupan.top\" denied the request: \
                Job.execution.ayatori.ddupan.top \"x\" is invalid: spec.a: Invalid value: 1: no";
    let faults = |answer: &Answer| expected.faults(Kind::Job, "x", answer);
    let right = answer(422, told, "Invalid value: 1: no");
    assert_eq!(faults(&right), Vec::<String>::new());
    assert_eq!(faults(&answer(400, told, "Invalid value: 1: no")).len(), 1);
    assert_eq!(faults(&answer(422, "x", "Invalid value: 1: no")).len(), 1);
    assert_eq!(faults(&answer(422, told, "Forbidden: no")).len(), 1);
    assert_eq!(faults(&Answer { warnings: vec!["w".into()], ..right.clone() }).len(), 1);
    assert_eq!(expected.faults(Kind::Job, "y", &right).len(), 2);
    let allowed = Expected { allowed: Some(serde_json::json!({"code": 200})), ..Expected::default() };
    assert!(!allowed.faults(Kind::Job, "x", &right).is_empty());
    let taken = Answer { code: 201, warnings: vec![], body: serde_json::json!({"code": 201}) };
    assert_eq!(allowed.faults(Kind::Job, "x", &taken).len(), 1);
}
