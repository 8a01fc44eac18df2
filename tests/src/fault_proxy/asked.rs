//! A request as Kubernetes reads it.

use std::fmt;

use http::Method;
use serde_json::Value;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower case where
    /// the path names no resource.
    pub verb: &'static str,
    /// As in the audit log: `batch/jobs`, `execution.ayatori.ddupan.top/jobs/status`, `/pods`. The path where it names
    /// no resource.
    pub resource: String,
    /// Empty for what is cluster-wide.
    pub namespace: String,
    /// Empty for collections. A creation's is that of the body.
    pub name: String,
    /// The body, where it is JSON; null where it is not, or where there is none.
    pub body: Value,
}

impl Asked {
    /// Reads a request.
    #[must_use]
    pub fn of(method: &Method, path: &str, query: &str, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, place) = match parts.as_slice() {
            ["api", _version, place @ ..] => ("", place),
            ["apis", group, _version, place @ ..] => (*group, place),
            _ => ("", &[][..]),
        };
        let (namespace, place) = match place {
            // A namespace itself has these two below it; everything else below it is a resource in it.
            ["namespaces", _, "status" | "finalize"] => ("", place),
            ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (*namespace, inner),
            _ => ("", place),
        };
        let (resource, name) = match place {
            [] => return Self::of_path(method, path, body),
            [resource] => (format!("{group}/{resource}"), ""),
            [resource, name] => (format!("{group}/{resource}"), *name),
            [resource, name, sub @ ..] => (format!("{group}/{resource}/{}", sub.join("/")), *name),
        };
        let watches = query.split('&').any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1"));
        let verb = match (method.as_str(), name.is_empty()) {
            ("GET", true) if watches => "watch",
            ("GET", true) => "list",
            ("GET", false) => "get",
            ("DELETE", true) => "deletecollection",
            _ => verb(method),
        };
        let sent = if verb == "create" { body["metadata"]["name"].as_str() } else { None };
        let name = if name.is_empty() { sent.unwrap_or_default() } else { name }.to_owned();
        Self { verb, resource, namespace: namespace.to_owned(), name, body }
    }

    fn of_path(method: &Method, path: &str, body: Value) -> Self {
        let verb = if method == Method::GET { "get" } else { verb(method) };
        Self { verb, resource: path.to_owned(), namespace: String::new(), name: String::new(), body }
    }

    /// Whether it changes something where it succeeds.
    #[must_use]
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "other",
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}/{}", self.verb, self.resource, self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_the_api_server_reads_them() {
        let table = [
            ("GET /api/v1/namespaces/ns/pods/p", "get /pods ns/p"),
            ("GET /api/v1/namespaces/ns/pods?labelSelector=a", "list /pods ns/"),
            ("GET /api/v1/pods?resourceVersion=0&watch=true", "watch /pods /"),
            ("GET /api/v1/namespaces", "list /namespaces /"),
            ("GET /api/v1/namespaces/ns", "get /namespaces /ns"),
            ("PUT /api/v1/namespaces/ns/finalize", "update /namespaces/finalize /ns"),
            ("PATCH /apis/example.org/v1/namespaces/ns/jobs/j/status", "patch example.org/jobs/status ns/j"),
            ("PATCH /apis/example.org/v1/namespaces/ns/jobs/j", "patch example.org/jobs ns/j"),
            ("POST /apis/batch/v1/namespaces/ns/jobs?", "create batch/jobs ns/made"),
            ("DELETE /apis/batch/v1/namespaces/ns/jobs/j", "delete batch/jobs ns/j"),
            ("DELETE /apis/batch/v1/namespaces/ns/jobs", "deletecollection batch/jobs ns/"),
            ("GET /apis/example.org/v1/classes/c", "get example.org/classes /c"),
            ("GET /version", "get /version /"),
            ("GET /apis/batch/v1", "get /apis/batch/v1 /"),
        ];
        for (request, read) in table {
            let (method, target) = request.split_once(' ').unwrap();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let asked = Asked::of(&method.parse().unwrap(), path, query, br#"{"metadata": {"name": "made"}}"#);
            assert_eq!(asked.to_string(), read, "{request}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_is_no_body() {
        let asked = Asked::of(&Method::POST, "/api/v1/namespaces/ns/pods", "", b"\x00");
        assert_eq!((asked.name.as_str(), &asked.body), ("", &Value::Null));
    }
}
