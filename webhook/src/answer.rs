//! What is said about a request, and how kubectl comes to show it like a built-in kind's error (spec B4).

use ayatori_crds::rules::{FieldError, field_error::cut};
use json_patch::Patch;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::envelope::Types;
use crate::{Request, Warnings};

/// The verdict on one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It may pass, changed by the patch if there is one.
    Allowed {
        /// What defaulting adds.
        patch: Option<Patch>,
        /// What the sender should know.
        warnings: Warnings,
    },
    /// It may not. A refusal carries no warnings: its causes say it all.
    Refused(Box<Status>),
}

impl Answer {
    /// Passes without a word.
    #[must_use]
    pub fn allowed() -> Self {
        Self::Allowed { patch: None, warnings: Warnings::default() }
    }

    /// Passes with a patch; an empty one is none.
    #[must_use]
    pub fn patched(patch: Patch, warnings: Warnings) -> Self {
        Self::Allowed { patch: Some(patch).filter(|patch| !patch.is_empty()), warnings }
    }

    /// 422 `Invalid`: one cause a fault, all of them at once as far as they fit into an answer. Never call it without
    /// faults: kubectl would show no reason at all.
    #[must_use]
    pub fn invalid(subject: &Subject, faults: &[FieldError]) -> Self {
        let faults = &told(faults);
        let told = match faults.as_slice() {
            [only] => only.to_string(),
            all => format!("[{}]", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{}.{} \"{}\" is invalid: {told}", subject.kind, subject.group, subject.name);
        Self::refused(422, "Invalid", message, Some(subject.details(faults)))
    }

    /// 403 `Forbidden`, for which kubectl shows the message and no causes.
    #[must_use]
    pub fn forbidden(subject: &Subject, why: &str) -> Self {
        let message = format!("{}.{} \"{}\" is forbidden: {why}", subject.resource, subject.group, subject.name);
        Self::refused(403, "Forbidden", message, Some(subject.details(&[])))
    }

    /// 400: the request itself makes no sense to us.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::refused(400, "BadRequest", cut(message.into(), MESSAGE_LENGTH), None)
    }

    /// 500: we failed. The same request may pass later.
    #[must_use]
    pub fn internal_error(message: impl Into<String>) -> Self {
        Self::refused(500, "InternalError", cut(message.into(), MESSAGE_LENGTH), None)
    }

    /// 504: no verdict within the time that the request allows.
    #[must_use]
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::refused(504, "Timeout", message.into(), None)
    }

    fn refused(code: i32, reason: &str, message: String, details: Option<StatusDetails>) -> Self {
        Self::Refused(Box::new(Status {
            status: Some("Failure".to_owned()),
            code: Some(code),
            reason: Some(reason.to_owned()),
            message: Some(message),
            details,
            ..Status::default()
        }))
    }

    /// The answering `AdmissionReview` as JSON.
    pub(crate) fn into_review(self, types: &Types, uid: &str) -> serde_json::Result<Vec<u8>> {
        let mut response = Response { uid, allowed: false, patch: None, patch_type: None, warnings: &[], status: None };
        let said;
        match self {
            Self::Allowed { patch, warnings } => {
                response.allowed = true;
                response.patch = patch.map(|patch| serde_json::to_vec(&patch).map(ByteString)).transpose()?;
                response.patch_type = response.patch.as_ref().map(|_| "JSONPatch");
                said = warnings;
                response.warnings = said.texts();
            }
            Self::Refused(status) => response.status = Some(status),
        }
        serde_json::to_vec(&Review { types, response })
    }
}

/// What a refusal is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The API group.
    pub group: String,
    /// The kind, such as `Job`.
    pub kind: String,
    /// The resource, such as `jobs`.
    pub resource: String,
    /// The object's name, or its `generateName` where it has no name yet.
    pub name: String,
}

impl Subject {
    /// The object of `request`.
    #[must_use]
    pub fn of(request: &Request<'_>) -> Self {
        let named = |raw: &RawValue| serde_json::from_str::<Named>(raw.get()).ok();
        let name = if request.name.is_empty() {
            let metadata = request.object.or(request.old_object).and_then(named).unwrap_or_default().metadata;
            if metadata.name.is_empty() { metadata.generate_name } else { metadata.name }
        } else {
            request.name.clone()
        };
        Self {
            group: named_within_bounds(&request.kind.group),
            kind: named_within_bounds(&request.kind.kind),
            resource: named_within_bounds(&request.resource.resource),
            name: named_within_bounds(&name),
        }
    }

    fn details(&self, faults: &[FieldError]) -> StatusDetails {
        let causes: Vec<StatusCause> = faults.iter().map(cause).collect();
        StatusDetails {
            group: Some(self.group.clone()),
            kind: Some(self.kind.clone()),
            name: Some(self.name.clone()),
            causes: Some(causes).filter(|causes| !causes.is_empty()),
            ..StatusDetails::default()
        }
    }
}

/// Causes of one answer, at most.
const CAUSES: usize = 64;
/// Bytes of them, at most. The message repeats them, so an answer takes about twice as much; JSON may escape.
const CAUSES_BYTES: usize = 10 * 1024;
/// Characters of a name, at most: the longest that the API takes.
const NAME_LENGTH: usize = 253;

/// A name as far as a name may go: whoever reaches us can send any text as one, and an answer says it more than once.
fn named_within_bounds(name: &str) -> String {
    name.chars().take(NAME_LENGTH).collect()
}

/// The faults that fit into an answer; where some do not, the last one counts them.
fn told(faults: &[FieldError]) -> Vec<FieldError> {
    let mut bytes = 0;
    let fits = |fault: &&FieldError| {
        bytes += escaped_length(&fault.to_string());
        bytes <= CAUSES_BYTES
    };
    let fitting = faults.iter().take_while(fits).count();
    if fitting == faults.len() && fitting <= CAUSES {
        return faults.to_vec();
    }
    let fitting = fitting.min(CAUSES - 1);
    let rest = faults.len() - fitting;
    let more = FieldError::forbidden("spec", format!("has {rest} more faults that do not fit into this answer"));
    faults[..fitting].iter().cloned().chain([more]).collect()
}

/// Characters of a message that may repeat what was sent, at most: a decoder tells of a wrong word by saying it again,
/// however long it is.
const MESSAGE_LENGTH: usize = 1024;

/// Bytes of a text in JSON.
fn escaped_length(text: &str) -> usize {
    text.chars()
        .map(|c| if c.is_ascii_control() { 6 } else { c.len_utf8() + usize::from(matches!(c, '"' | '\\')) })
        .sum()
}

fn cause(fault: &FieldError) -> StatusCause {
    StatusCause {
        field: Some(fault.field.clone()),
        message: Some(fault.message()),
        reason: Some(fault.kind.cause().to_owned()),
    }
}

#[derive(Default, serde::Deserialize)]
struct Named {
    #[serde(default)]
    metadata: NamedMetadata,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NamedMetadata {
    name: String,
    generate_name: String,
}

#[derive(Serialize)]
struct Review<'a> {
    #[serde(flatten)]
    types: &'a Types,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Box<Status>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::envelope::{API_VERSION, KIND};
    use crate::testing::review_body;

    fn subject() -> Subject {
        let [group, kind, resource, name] = ["execution.ayatori.ddupan.top", "Job", "jobs", "x"].map(str::to_owned);
        Subject { group, kind, resource, name }
    }

    fn sent(answer: Answer) -> Value {
        let types = Types { api_version: API_VERSION.to_owned(), kind: KIND.to_owned() };
        serde_json::from_slice(&answer.into_review(&types, "u-1").unwrap()).unwrap()
    }

    #[test]
    fn a_message_does_not_repeat_whatever_was_sent() {
        let Answer::Refused(status) = Answer::bad_request("é".repeat(100_000)) else { panic!("not refused") };
        assert_eq!(status.message.map(|message| message.chars().count()), Some(1025));
    }

    #[test]
    fn a_refusal_repeats_no_name_longer_than_a_name_may_be() {
        let mut request = review_body()["request"].take();
        let long = json!("\0".repeat(100_000));
        for field in ["/kind/group", "/kind/kind", "/resource/resource", "/name"] {
            *request.pointer_mut(field).unwrap() = long.clone();
        }
        let request = request.to_string();
        let subject = Subject::of(&serde_json::from_str(&request).unwrap());
        assert_eq!(
            [&subject.group, &subject.kind, &subject.resource, &subject.name].map(|name| name.len()),
            [NAME_LENGTH; 4]
        );
        let faults: Vec<_> =
            (0..100).map(|_| FieldError::invalid("spec.a", "\"".repeat(128), "x".repeat(500))).collect();
        let status = sent(Answer::invalid(&subject, &faults))["response"]["status"].to_string();
        assert!(status.len() <= 32 * 1024, "{}", status.len());
    }

    #[test]
    fn an_allowed_request_is_answered_with_its_uid_and_nothing_else() {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                            "response": {"uid": "u-1", "allowed": true}});
        assert_eq!(sent(Answer::allowed()), review);
        assert_eq!(sent(Answer::patched(Patch(Vec::new()), Warnings::default())), review);
    }

    #[test]
    fn a_patch_is_sent_as_base64_with_its_type() {
        let patch: Patch = serde_json::from_value(json!([{"op": "add", "path": "/a", "value": 1}])).unwrap();
        let mut warnings = Warnings::default();
        warnings.add("careful");
        let response = &sent(Answer::patched(patch, warnings))["response"];
        assert_eq!(response["patch"], "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d");
        assert_eq!(response["patchType"], "JSONPatch");
        assert_eq!(response["warnings"], json!(["careful"]));
    }

    #[test]
    fn one_fault_is_told_as_the_built_in_kinds_tell_it() {
        let answer = Answer::invalid(&subject(), &[FieldError::invalid("spec.a", "v", "msg")]);
        let response = &sent(answer)["response"];
        assert_eq!(response["allowed"], false);
        assert_eq!(
            response["status"],
            json!({
                "apiVersion": "v1", "kind": "Status", "metadata": {},
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": "Job.execution.ayatori.ddupan.top \"x\" is invalid: spec.a: Invalid value: \"v\": msg",
                "details": {
                    "group": "execution.ayatori.ddupan.top", "kind": "Job", "name": "x",
                    "causes": [{"field": "spec.a", "message": "Invalid value: \"v\": msg", "reason": "FieldValueInvalid"}]
                }
            })
        );
    }

    #[test]
    fn several_faults_stand_in_brackets_and_each_is_a_cause() {
        let faults = [FieldError::required("spec.a", "give one"), FieldError::forbidden("spec.b", "no")];
        let status = sent(Answer::invalid(&subject(), &faults))["response"]["status"].clone();
        let message = "Job.execution.ayatori.ddupan.top \"x\" is invalid: [spec.a: Required value: give one, spec.b: Forbidden: no]";
        assert_eq!(status["message"], message);
        assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn more_faults_than_fit_are_counted() {
        let status = |faults: &[FieldError]| sent(Answer::invalid(&subject(), faults))["response"]["status"].clone();
        let short: Vec<_> = (0..100).map(|n| FieldError::forbidden(format!("spec.a[{n}]"), "no")).collect();
        let exact = status(&short[..64]);
        assert_eq!(exact["details"]["causes"].as_array().unwrap().len(), 64);
        assert_eq!(exact["details"]["causes"][63]["field"], "spec.a[63]");

        let told = status(&short);
        let causes = told["details"]["causes"].as_array().unwrap();
        assert_eq!((causes.len(), &causes[62]["field"]), (64, &json!("spec.a[62]")));
        assert_eq!(causes[63]["message"], "Forbidden: has 37 more faults that do not fit into this answer");

        let long: Vec<_> = (0..100).map(|_| FieldError::invalid("spec.a", "\"".repeat(128), "x".repeat(500))).collect();
        let told = status(&long);
        assert!(told.to_string().len() <= 32 * 1024, "{}", told.to_string().len());
        assert!(told["details"]["causes"].as_array().unwrap().len() > 5);
    }

    #[test]
    fn a_forbidden_request_is_told_in_the_message_alone() {
        let status = sent(Answer::forbidden(&subject(), "not here"))["response"]["status"].clone();
        assert_eq!(status["code"], 403);
        assert_eq!(status["reason"], "Forbidden");
        assert_eq!(status["message"], "jobs.execution.ayatori.ddupan.top \"x\" is forbidden: not here");
        assert_eq!(status["details"]["causes"], Value::Null);
    }

    #[test]
    fn our_own_failures_have_their_codes_and_reasons() {
        for (answer, code, reason) in [
            (Answer::bad_request("m"), 400, "BadRequest"),
            (Answer::internal_error("m"), 500, "InternalError"),
            (Answer::timeout("m"), 504, "Timeout"),
        ] {
            let status = sent(answer)["response"]["status"].clone();
            assert_eq!((&status["code"], &status["reason"]), (&json!(code), &json!(reason)));
        }
    }
}
