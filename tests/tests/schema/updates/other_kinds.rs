//! Updates of JobClasses and parameters (A5, A6, A7).

use serde_json::{Value, json};

use super::{Row, Rule, job_spec::figures, spec_rows};
use crate::kinds::Kind;

pub(crate) fn rows() -> Vec<Row> {
    [classes(), policies(), endpoints()].concat()
}

fn classes() -> Vec<Row> {
    let rule = |field| Rule::new(Kind::JobClass, field, "is immutable");
    let (controller, parameters) = (rule("spec.controllerName"), rule("spec.parametersRef"));
    let (namespaces, uid) = ("/allowedNamespaces", "/parametersRef/uid");
    let mut rows = spec_rows(
        &controller,
        true,
        &[
            ("no change", &[], &[]),
            ("other namespaces", &[], &[(namespaces, json!({"matchLabels": {"team": "web"}}))]),
            ("all namespaces", &[], &[(namespaces, Value::Null)]),
            ("no resources", &[], &[("/resources", Value::Null)]),
        ],
    );
    rows.extend(spec_rows(&controller, false, &[("another", &[], &[("/controllerName", json!("example.com/other"))])]));
    rows.extend(spec_rows(
        &parameters,
        true,
        &[("no change", &[], &[]), ("no uid as before", &[(uid, Value::Null)], &[])],
    ));
    rows.extend(spec_rows(
        &parameters,
        false,
        &[
            ("another name", &[], &[("/parametersRef/name", json!("other"))]),
            ("another group", &[], &[("/parametersRef/group", json!("other"))]),
            ("another kind", &[], &[("/parametersRef/kind", json!("Other"))]),
            ("another uid", &[], &[(uid, json!("other"))]),
            ("no uid any more", &[], &[(uid, Value::Null)]),
            ("a uid for the first time", &[(uid, Value::Null)], &[(uid, json!("5f0a"))]),
        ],
    ));
    rows
}

/// Each of the twelve quantities of a class can be changed, but only to a quantity.
fn policies() -> Vec<Row> {
    let mut rows = Vec::new();
    for part in ["defaults", "minimum", "maximum"] {
        for (list, name, message) in figures() {
            let rule = Rule::new(Kind::JobClass, &format!("spec.resources.{part}.{list}.{name}"), message);
            let at = format!("/resources/{part}/{list}/{name}");
            rows.extend(spec_rows(
                &rule,
                true,
                &[("to another", &[], &[(&at, json!("2"))]), ("to none", &[], &[(&at, Value::Null)])],
            ));
            rows.extend(spec_rows(
                &rule,
                false,
                &[
                    ("to a negative one (of a class)", &[], &[(&at, json!("-1"))]),
                    ("to one that overflows", &[], &[(&at, json!("9Ei"))]),
                ],
            ));
        }
    }
    rows
}

fn endpoints() -> Vec<Row> {
    let kind = Kind::OpenSandboxParameters;
    let (endpoint, insecure) = ("/endpoint", "/allowInsecureHTTP");
    let https = Rule::new(kind, "spec.endpoint", "must use https:// unless allowInsecureHTTP is true");
    let bare = Rule::new(
        kind,
        "spec.endpoint",
        "must not hold credentials: they belong into the Secret that apiKeySecretRef names",
    );
    let http = || (endpoint, json!("http://other.example"));
    let mut rows = spec_rows(
        &https,
        true,
        &[
            ("to another host", &[], &[(endpoint, json!("https://other.example"))]),
            ("to http where that is allowed", &[(insecure, json!(true))], &[http()]),
            ("to http together with the permission", &[], &[http(), (insecure, json!(true))]),
            ("no permission that is not needed", &[(insecure, json!(true))], &[(insecure, Value::Null)]),
        ],
    );
    rows.extend(spec_rows(
        &https,
        false,
        &[
            ("to http", &[], &[http()]),
            ("to http without a word on it", &[(insecure, Value::Null)], &[http()]),
            ("the permission withdrawn", &[(insecure, json!(true)), http()], &[(insecure, json!(false))]),
            ("the permission removed", &[(insecure, json!(true)), http()], &[(insecure, Value::Null)]),
        ],
    ));
    rows.extend(spec_rows(
        &bare,
        true,
        &[("an @ in the path", &[], &[(endpoint, json!("https://other.example/@team"))])],
    ));
    rows.extend(spec_rows(
        &bare,
        false,
        &[
            ("to user and password", &[], &[(endpoint, json!("https://user:secret@other.example"))]),
            ("to a user", &[], &[(endpoint, json!("https://user@other.example"))]),
        ],
    ));
    rows
}
