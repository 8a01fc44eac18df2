//! Whether the settings of an adapter make sense by themselves (spec A6, B8), and which classes use them.

use std::net::Ipv6Addr;

use super::{
    FieldError,
    syntax::{is_data_key, is_dns_label, is_subdomain, label_key_error, label_value_error, name_error},
};
use crate::{JobClass, KubernetesExecutionParametersSpec, OpenSandboxExecutionParametersSpec, names::GROUP};

/// Every fault of the settings of the Kubernetes adapter.
#[must_use]
pub fn kubernetes_errors(settings: &KubernetesExecutionParametersSpec) -> Vec<FieldError> {
    let runtime_class = settings.runtime_class_name.as_deref().filter(|name| !name.is_empty());
    let selector = settings.scheduling.iter().flat_map(|scheduling| scheduling.node_selector.iter().flatten());
    name_error("spec.serviceAccountName", &settings.service_account_name)
        .into_iter()
        .chain(runtime_class.and_then(|name| name_error("spec.runtimeClassName", name)))
        .chain(selector.flat_map(|(key, value)| {
            let path = format!("spec.scheduling.nodeSelector[{key}]");
            label_key_error(&path, key).into_iter().chain(label_value_error(&path, value))
        }))
        .collect()
}

/// Every fault of the settings of the OpenSandbox adapter.
#[must_use]
pub fn opensandbox_errors(settings: &OpenSandboxExecutionParametersSpec) -> Vec<FieldError> {
    let key = &settings.api_key_secret_ref;
    let namespace = (!is_dns_label(&key.namespace)).then(|| {
        let detail = "must be the name of a namespace: up to 63 lower case letters, digits or '-'";
        FieldError::invalid("spec.apiKeySecretRef.namespace", key.namespace.as_str(), detail)
    });
    let data_key = (!is_data_key(&key.key)).then(|| {
        let detail = "must be a key of a Secret: up to 253 letters, digits, '-', '_' or '.'";
        FieldError::invalid("spec.apiKeySecretRef.key", key.key.as_str(), detail)
    });
    let pool = settings.pool_ref.as_deref().filter(|name| !name.is_empty());
    endpoint_fault(&settings.endpoint, settings.allow_insecure_http == Some(true))
        // The value is not repeated: what is wrong with it may be that it holds a secret.
        .map(|detail| FieldError::invalid_unshown("spec.endpoint", detail))
        .into_iter()
        .chain(namespace)
        .chain(name_error("spec.apiKeySecretRef.name", &key.name))
        .chain(data_key)
        .chain(pool.and_then(|name| name_error("spec.poolRef", name)))
        .collect()
}

/// What would be right for a base URL; None where it is. Strict, because URL parsers disagree about the rest: lower
/// case scheme, a host, perhaps a port, perhaps a path of unreserved characters.
fn endpoint_fault(endpoint: &str, http_allowed: bool) -> Option<&'static str> {
    if endpoint.contains('@') {
        return Some("must not hold credentials: they belong into the Secret that apiKeySecretRef names");
    }
    if endpoint.contains(['?', '#']) {
        return Some("must be a base URL, without a query or fragment");
    }
    let rest = match (endpoint.strip_prefix("https://"), endpoint.strip_prefix("http://")) {
        (Some(rest), _) => rest,
        (None, Some(rest)) if http_allowed => rest,
        (None, Some(_)) => return Some("must use https:// unless allowInsecureHTTP is true"),
        (None, None) => return Some("must be a URL such as https://sandbox.example:8443/api"),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port.strip_prefix(':').ok_or(port)),
        None => match authority.split_once(':') {
            Some((host, port)) => (is_subdomain(host), Ok(port)),
            None => (is_subdomain(authority), Err("")),
        },
    };
    // Digits only: `parse` would take a sign.
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_path = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'.' | b'_' | b'~');
    if !host {
        Some("must name a host, such as https://sandbox.example:8443/api")
    } else if !port.map_or_else(str::is_empty, is_port) {
        Some("must have a port between 1 and 65535, or none")
    } else if !path.bytes().all(is_path) || path.split('/').any(|part| part == "..") {
        Some("must have a path of letters, digits, '-', '.', '_', '~' and '/'")
    } else {
        None
    }
}

/// The names of the classes that use these settings, sorted. A class that is being deleted still does: it goes once its
/// Jobs are over, and these need the settings to be stopped.
pub fn used_by<'a>(
    kind: &str,
    name: &str,
    uid: Option<&str>,
    classes: impl IntoIterator<Item = &'a JobClass>,
) -> Vec<&'a str> {
    let uses = |class: &JobClass| {
        let reference = &class.spec.parameters_ref;
        let pinned = reference.uid.as_deref().filter(|pinned| !pinned.is_empty());
        (reference.group.as_str(), reference.kind.as_str(), reference.name.as_str()) == (GROUP, kind, name)
            && pinned.is_none_or(|pinned| uid.is_none_or(|uid| pinned == uid))
    };
    let mut names: Vec<&str> =
        classes.into_iter().filter(|class| uses(class)).filter_map(|class| class.metadata.name.as_deref()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sandbox(overlay: &Value) -> OpenSandboxExecutionParametersSpec {
        let mut settings = json!({
            "endpoint": "https://sandbox.example",
            "apiKeySecretRef": {"namespace": "platform", "name": "key", "key": "api-key"},
        });
        for (key, value) in overlay.as_object().unwrap() {
            settings[key] = value.clone();
        }
        serde_json::from_value(settings).unwrap()
    }

    fn fields(errors: Vec<FieldError>) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn endpoints_that_are_right() {
        for endpoint in [
            "https://sandbox.example",
            "https://sandbox.example/",
            "https://sandbox.example:8443/api/v1",
            "https://10.0.0.1:443",
            "https://[2001:db8::1]:8443/x",
            "https://[::1]",
            "https://localhost/~team/a_b-c.d",
        ] {
            assert_eq!(opensandbox_errors(&sandbox(&json!({"endpoint": endpoint}))), [], "{endpoint}");
        }
        let plain = json!({"endpoint": "http://sandbox.svc:80", "allowInsecureHTTP": true});
        assert_eq!(opensandbox_errors(&sandbox(&plain)), []);
    }

    #[test]
    fn endpoints_that_are_wrong_are_told_without_repeating_them() {
        for (endpoint, told) in [
            ("http://sandbox.example", "must use https://"),
            ("https://user:secret@sandbox.example", "must not hold credentials"),
            ("https://secret@sandbox.example", "must not hold credentials"),
            ("https://sandbox.example/secret@x", "must not hold credentials"),
            ("https://sandbox.example?key=secret", "must be a base URL"),
            ("https://sandbox.example/#secret", "must be a base URL"),
            ("sandbox.example", "must be a URL"),
            ("HTTPS://sandbox.example", "must be a URL"),
            ("ftp://sandbox.example", "must be a URL"),
            ("https:/sandbox.example", "must be a URL"),
            ("https://", "must name a host"),
            ("https:///x", "must name a host"),
            ("https://:8443", "must name a host"),
            ("https://sand box.example", "must name a host"),
            ("https://sandbox.example\\x", "must name a host"),
            ("https://[::1", "must name a host"),
            ("https://[sandbox]", "must name a host"),
            ("https://::1", "must name a host"),
            ("https://a:b:c", "must have a port"),
            ("https://sandbox.example:", "must have a port"),
            ("https://sandbox.example:0", "must have a port"),
            ("https://sandbox.example:+1", "must have a port"),
            ("https://sandbox.example:65536", "must have a port"),
            ("https://[::1]8443", "must have a port"),
            ("https://sandbox.example/a b", "must have a path"),
            ("https://sandbox.example/a\nb", "must have a path"),
            ("https://sandbox.example/../x", "must have a path"),
            ("https://sandbox.example/%2e", "must have a path"),
        ] {
            let errors = opensandbox_errors(&sandbox(&json!({"endpoint": endpoint})));
            let [error] = errors.as_slice() else { panic!("{endpoint}: {errors:?}") };
            assert!(error.detail.starts_with(told), "{endpoint}: {error}");
            assert!(!error.to_string().contains("secret@") && !error.to_string().contains("=secret"), "{error}");
        }
    }

    #[test]
    fn every_fault_of_opensandbox_settings_is_told() {
        let settings = sandbox(&json!({
            "endpoint": "x", "poolRef": "A pool",
            "apiKeySecretRef": {"namespace": "a.b", "name": "../x", "key": "a/b"},
        }));
        assert_eq!(
            fields(opensandbox_errors(&settings)),
            [
                "spec.endpoint",
                "spec.apiKeySecretRef.namespace",
                "spec.apiKeySecretRef.name",
                "spec.apiKeySecretRef.key",
                "spec.poolRef"
            ]
        );
    }

    #[test]
    fn every_fault_of_kubernetes_settings_is_told() {
        let settings = |value: Value| serde_json::from_value::<KubernetesExecutionParametersSpec>(value).unwrap();
        let good = settings(json!({
            "serviceAccountName": "default", "runtimeClassName": "kata.v2",
            "scheduling": {"nodeSelector": {"example.com/pool": "ci", "empty": ""}},
        }));
        assert_eq!(kubernetes_errors(&good), []);
        let wrong = settings(json!({
            "serviceAccountName": "Default", "runtimeClassName": "a/b",
            "scheduling": {"nodeSelector": {"a b": "ci", "pool": "-"}},
        }));
        assert_eq!(
            fields(kubernetes_errors(&wrong)),
            [
                "spec.serviceAccountName",
                "spec.runtimeClassName",
                "spec.scheduling.nodeSelector[a b]",
                "spec.scheduling.nodeSelector[pool]"
            ]
        );
    }

    #[test]
    fn settings_are_used_by_the_classes_that_name_them() {
        let class = |name: &str, kind: &str, settings: &str, uid: Value| -> JobClass {
            serde_json::from_value(json!({
                "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass", "metadata": {"name": name},
                "spec": {"controllerName": "x", "parametersRef":
                    {"group": GROUP, "kind": kind, "name": settings, "uid": uid}},
            }))
            .unwrap()
        };
        let classes = [
            class("z", "K", "p", Value::Null),
            class("a", "K", "p", json!("u")),
            class("other-uid", "K", "p", json!("v")),
            class("other-kind", "L", "p", Value::Null),
            class("other-name", "K", "q", Value::Null),
        ];
        assert_eq!(used_by("K", "p", Some("u"), &classes), ["a", "z"]);
        assert_eq!(used_by("K", "none", Some("u"), &classes), [""; 0]);
    }
}
