//! The points at which a life can be disturbed: a request, in words that are the same in each run.

use ayatori_tests::fault_proxy::Asked;
use serde_json::Value;

/// What a request does, without names, times and messages. A request that says the same again (another message while it
/// waits) is at the same point.
pub(crate) fn point(asked: &Asked) -> String {
    let says = match &asked.body {
        Value::Array(operations) => operations.iter().filter_map(operation).collect::<Vec<_>>().join(", "),
        body => {
            let conditions = body["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
            conditions.iter().map(condition).collect::<Vec<_>>().join(" ")
        }
    };
    format!("{} {} {says}", asked.verb, asked.resource).trim_end().to_owned()
}

/// An operation of a JSON patch, but for what protects it.
fn operation(operation: &Value) -> Option<String> {
    let (op, path) = (operation["op"].as_str()?, operation["path"].as_str()?);
    let protects = op == "test" || path == "/metadata/resourceVersion";
    (!protects).then(|| format!("{op} {}", path.trim_end_matches(|c: char| c.is_ascii_digit())))
}

fn condition(condition: &Value) -> String {
    let word = |field: &str| condition[field].as_str().unwrap_or_default();
    format!("{}={}/{}", word("type"), word("status"), word("reason"))
}

#[test]
fn a_point_has_the_words_that_stay_the_same() {
    let asked = |verb, resource: &str, body: &str| Asked {
        verb,
        resource: resource.to_owned(),
        namespace: "ns".to_owned(),
        name: "name".to_owned(),
        body: serde_json::from_str(body).unwrap(),
    };
    let body = r#"{"metadata": {"resourceVersion": "1"}, "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [
        {"type": "Accepted", "status": "True", "reason": "Valid", "message": "by class x"},
        {"type": "Succeeded", "status": "Unknown", "reason": "Running", "message": ""}]}}"#;
    let status = asked("patch", "x/jobs/status", body);
    assert_eq!(point(&status), "patch x/jobs/status Accepted=True/Valid Succeeded=Unknown/Running");
    let body = r#"[{"op": "test", "path": "/metadata/uid", "value": "u"}, {"op": "replace", "path":
        "/metadata/resourceVersion", "value": "1"}, {"op": "remove", "path": "/metadata/finalizers/1"}]"#;
    assert_eq!(point(&asked("patch", "batch/jobs", body)), "patch batch/jobs remove /metadata/finalizers/");
    assert_eq!(point(&asked("get", "batch/jobs", "null")), "get batch/jobs");
}
