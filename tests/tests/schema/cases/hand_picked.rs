//! Objects that people thought of: (place, class, value).

use serde_json::{Value, json};

use crate::kinds::{Kind, condition};

type HandPicked = Vec<(&'static str, &'static str, Value)>;

pub(crate) fn of(kind: Kind) -> HandPicked {
    match kind {
        Kind::Job => [environment(), tasks(), job_statuses()].concat(),
        Kind::JobClass => classes(),
        Kind::KubernetesParameters => kubernetes(),
        Kind::OpenSandboxParameters => open_sandbox(),
    }
}

fn environment() -> HandPicked {
    let key = json!({"name": "store", "key": "entry"});
    let from = json!({"secretKeyRef": key});
    let mut cases = vec![
        ("/spec/task/env", "value-and-valueFrom", json!([{"name": "A", "value": "x", "valueFrom": from}])),
        ("/spec/task/env", "empty-value-and-valueFrom", json!([{"name": "A", "value": "", "valueFrom": from}])),
        ("/spec/task/env", "neither-value-nor-valueFrom", json!([{"name": "A"}])),
        ("/spec/task/env", "null-value-and-valueFrom", json!([{"name": "A", "value": null, "valueFrom": from}])),
        ("/spec/task/env", "empty-valueFrom", json!([{"name": "A", "valueFrom": {}}])),
        (
            "/spec/task/env",
            "both-keys",
            json!([{"name": "A", "valueFrom": {"secretKeyRef": key, "configMapKeyRef": key}}]),
        ),
        (
            "/spec/task/env",
            "fieldRef",
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        ),
        (
            "/spec/task/env",
            "fieldRef-besides",
            json!([{"name": "A",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": key}}]),
        ),
        ("/spec/task/env", "one-name-twice", json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
        (
            "/spec/task/env",
            "names-that-differ-in-case",
            json!([{"name": "A", "value": "1"}, {"name": "a", "value": "2"}]),
        ),
        ("/spec/task/env", "empty-value", json!([{"name": "A", "value": ""}])),
        ("/spec/task/env", "a-number-as-value", json!([{"name": "A", "value": 5}])),
        ("/spec/task/env", "name-of-the-platform", json!([{"name": "AYATORI_X", "value": "1"}])),
        (
            "/spec/task/env",
            "empty-name-of-a-secret",
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "", "key": "k"}}}]),
        ),
        ("/spec/task/env", "no-name-of-a-secret", json!([{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}])),
    ];
    for (class, name) in [
        ("name-with-a-digit-first", "1A"),
        ("name-with-a-dash", "A-B"),
        ("name-with-a-dot", "A.B"),
        ("name-with-a-blank", "A B"),
        ("name-with-an-equals-sign", "A=B"),
        ("name-of-an-underscore", "_"),
        ("name-with-a-line-break", "A\n"),
        ("name-after-a-line-break", "\nA"),
        ("name-with-an-umlaut", "Ä"),
        ("name-with-a-wide-letter", "Ａ"),
    ] {
        cases.push(("/spec/task/env", class, json!([{"name": name, "value": "x"}])));
    }
    cases
}

fn tasks() -> HandPicked {
    vec![
        ("/spec", "only-an-image", json!({"task": {"image": "app"}})),
        ("/spec", "only-a-blank-as-image", json!({"task": {"image": " "}})),
        ("/spec/task", "only-an-image", json!({"image": "app"})),
        ("/spec/task", "no-image", json!({"command": ["/bin/app"]})),
        ("/spec/task/imagePullSecrets", "no-name", json!([{}])),
        ("/spec/task/imagePullSecrets", "strings", json!(["pull"])),
        ("/spec/task/command", "a-string-with-blanks", json!("sh -c true")),
        ("/spec/task/command", "an-empty-string", json!([""])),
        ("/spec/task/command", "nul", json!(["a\u{0}b"])),
        ("/spec/resources", "empty-lists", json!({"requests": {}, "limits": {}})),
        ("/spec/resources", "null-lists", json!({"requests": null, "limits": null})),
        ("/spec/resources", "request-over-limit", json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
        ("/spec/resources", "another-resource", json!({"requests": {"nvidia.com/gpu": "1"}})),
        ("/spec/resources", "claims", json!({"claims": [{"name": "gpu"}]})),
        ("/spec/desiredState", "another-word", json!("Suspended")),
        ("/spec/desiredState", "two-words", json!("Running,Cancelled")),
        ("/spec/suspend", "a-field-of-native-jobs", json!(true)),
    ]
}

/// The rules of A4 that look at one status, without an older one.
fn job_statuses() -> HandPicked {
    let (accepted, scheduled) =
        (condition("Accepted", "True", "Valid"), condition("Scheduled", "True", "BackendCreated"));
    let succeeded = |status| condition("Succeeded", status, "Completed");
    vec![
        (
            "/status",
            "waiting",
            json!({"observedGeneration": 1, "conditions": [condition("Succeeded", "Unknown", "Pending")]}),
        ),
        (
            "/status",
            "cancelled-before-acceptance",
            json!({"conditions": [condition("Succeeded", "False", "Cancelled")],
            "completionTime": "2030-01-01T10:00:00Z", "result": {"reason": "Cancelled"}}),
        ),
        ("/status", "only-an-exit-code", json!({"result": {"exitCode": 0}})),
        ("/status", "only-startTime", json!({"startTime": "2030-01-01T10:00:00Z"})),
        ("/status", "only-completionTime", json!({"completionTime": "2030-01-01T10:00:00Z"})),
        ("/status", "phase", json!({"phase": "Running"})),
        ("/status/conditions", "terminal-is-unknown", json!([accepted, scheduled, succeeded("Unknown")])),
        ("/status/conditions", "no-outcome", json!([accepted, scheduled])),
        ("/status/conditions", "not-scheduled", json!([accepted, succeeded("True")])),
        ("/status/conditions", "not-accepted", json!([scheduled, succeeded("True")])),
        ("/status/conditions", "failed", json!([accepted, scheduled, succeeded("False")])),
        ("/status/conditions", "one-type-twice", json!([accepted, scheduled, succeeded("True"), succeeded("False")])),
        ("/status/completionTime", "before-startTime", json!("2030-01-01T09:59:59Z")),
        ("/status/completionTime", "at-startTime", json!("2030-01-01T10:00:00Z")),
        ("/status/completionTime", "at-startTime-in-another-zone", json!("2030-01-01T12:00:00+02:00")),
        (
            "/status/execution/references",
            "one-type-twice",
            json!([{"type": "Job", "id": "a"}, {"type": "Job", "id": "b"}]),
        ),
        ("/status/conditions/0/type", "with-a-domain", json!("example.com/Checked")),
        ("/status/conditions/0/type", "with-a-slash-only", json!("/")),
        ("/status/conditions/0/type", "317-characters", json!("a".repeat(317))),
        ("/status/conditions/0/reason", "a-dash", json!("Not-Valid")),
        ("/status/conditions/0/reason", "a-digit-first", json!("1st")),
        ("/status/conditions/0/reason", "a-colon-last", json!("Valid:")),
        ("/status/conditions/0/reason", "two-words", json!("Not valid")),
    ]
}

fn classes() -> HandPicked {
    let reference = json!({"group": "g", "kind": "k", "name": "n"});
    vec![
        ("/spec", "only-what-is-required", json!({"controllerName": "example.com/other", "parametersRef": reference})),
        ("/spec/parametersRef", "without-uid", reference),
        ("/spec/parametersRef", "with-a-namespace", json!({"group": "g", "kind": "k", "name": "n", "namespace": "x"})),
        ("/spec/parametersRef", "empty-words", json!({"group": "", "kind": "", "name": ""})),
        ("/spec/allowedNamespaces", "empty-labels", json!({"matchLabels": {}})),
        ("/spec/allowedNamespaces", "null-labels", json!({"matchLabels": null})),
        ("/spec/allowedNamespaces", "an-impossible-label", json!({"matchLabels": {"a b/c/d": "e f"}})),
        ("/spec/allowedNamespaces", "names", json!(["default"])),
        ("/spec/allowedNamespaces/matchExpressions", "unknown-operator", json!([{"key": "a", "operator": "Near"}])),
        (
            "/spec/allowedNamespaces/matchExpressions",
            "in-nothing",
            json!([{"key": "a", "operator": "In", "values": []}]),
        ),
        ("/spec/allowedNamespaces/matchExpressions", "no-operator", json!([{"key": "a"}])),
        (
            "/spec/resources",
            "minimum-over-maximum",
            json!({"minimum": {"requests": {"cpu": "2"}}, "maximum": {"requests": {"cpu": "1"}}}),
        ),
        ("/spec/resources", "a-list-of-one-kind", json!({"maximum": {"limits": {"memory": "1Gi"}}})),
        ("/spec/resources", "null-parts", json!({"defaults": null, "minimum": null, "maximum": null})),
        ("/spec/isDefault", "a-field-that-is-none", json!(true)),
        (
            "/status/conditions",
            "one-type-twice",
            json!([condition("Ready", "True", "A"), condition("Ready", "False", "B")]),
        ),
        ("/status/conditions/0/type", "317-characters", json!("a".repeat(317))),
    ]
}

fn kubernetes() -> HandPicked {
    vec![
        ("/spec", "only-what-is-required", json!({"serviceAccountName": "runner"})),
        ("/spec/serviceAccountName", "no-name-of-kubernetes", json!("No Name!")),
        ("/spec/scheduling", "affinity", json!({"affinity": {}})),
        (
            "/spec/scheduling/nodeSelector",
            "many",
            json!((0..64).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>()),
        ),
        (
            "/spec/scheduling/nodeSelector",
            "too-many",
            json!((0..65).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>()),
        ),
        ("/spec/scheduling/nodeSelector", "a-number", json!({"disk": 5})),
        ("/spec/scheduling/nodeSelector", "a-null-label", json!({"disk": null})),
        ("/spec/scheduling/nodeSelector", "an-empty-key", json!({"": "x"})),
        ("/spec/scheduling/tolerations", "all", json!([{"operator": "Exists"}])),
        ("/spec/scheduling/tolerations", "unknown-effect", json!([{"effect": "Sometimes"}])),
        ("/spec/podSecurityContext", "only-non-root", json!({"runAsNonRoot": true})),
        ("/spec/podSecurityContext", "a-field-of-containers", json!({"privileged": true})),
        ("/spec/podSecurityContext/seccompProfile", "no-type-word", json!({"localhostProfile": "x"})),
        ("/spec/podSecurityContext/sysctls", "no-value", json!([{"name": "a"}])),
    ]
}

fn open_sandbox() -> HandPicked {
    let mut cases = vec![];
    // The valid object has allowInsecureHTTP: false; these bring their own.
    let spec = |endpoint: &str, insecure: Option<bool>| {
        let mut spec = json!({"endpoint": endpoint, "apiKeySecretRef": {"namespace": "a", "name": "b", "key": "c"}});
        if let Some(insecure) = insecure {
            spec["allowInsecureHTTP"] = json!(insecure);
        }
        spec
    };
    for (class, endpoint, insecure) in [
        ("https", "https://sandbox.example/base?x=1", None),
        ("https-though-http-is-allowed", "https://sandbox.example", Some(true)),
        ("http-absent", "http://sandbox.example", None),
        ("http-not-allowed", "http://sandbox.example", Some(false)),
        ("http-allowed", "http://sandbox.example", Some(true)),
        ("large-letters", "HTTPS://sandbox.example", None),
        ("no-host", "https://", None),
        ("a-host-only", "sandbox.example", None),
        ("a-blank-before", " https://sandbox.example", None),
        ("another-scheme-allowed", "ftp://sandbox.example", Some(true)),
        ("at-sign-in-the-path", "https://sandbox.example/@team", None),
        ("at-sign-in-the-query", "https://sandbox.example?mail=a@b", None),
        ("at-sign-in-the-fragment", "https://sandbox.example#a@b", None),
        ("credentials", "https://user:secret@sandbox.example", None),
        ("a-user", "https://user@sandbox.example", None),
        ("an-empty-user", "https://@sandbox.example", None),
        ("credentials-over-http", "http://user:secret@sandbox.example", Some(true)),
        ("credentials-after-three-slashes", "https:///user:secret@sandbox.example", None),
        ("credentials-after-a-backslash", "https://\\user:secret@sandbox.example", None),
        ("credentials-after-backslashes", "http:\\\\user:secret@sandbox.example", Some(true)),
        ("credentials-after-one-slash", "http:/user:secret@sandbox.example", Some(true)),
        ("credentials-without-slashes", "http:user:secret@sandbox.example", Some(true)),
        ("credentials-without-scheme", "user:secret@sandbox.example", Some(true)),
        ("credentials-with-a-line-break", "https://user:\nsecret@sandbox.example", None),
        ("credentials-before-two-at-signs", "https://user:se@cret@sandbox.example", None),
        ("percent-signs", "https://sandbox.example/%40", None),
    ] {
        cases.push(("/spec", class, spec(endpoint, insecure)));
    }
    cases.push(("/spec/apiKeySecretRef", "only-a-name", json!({"name": "sandbox"})));
    cases.push(("/spec/apiKeySecretRef", "the-key-itself", json!("secret")));
    cases.push(("/spec/requestMapping", "another-word", json!("Lowered")));
    cases.push(("/spec/apiKey", "a-field-that-is-none", json!("secret")));
    cases
}
