//! Plain requests to an API server, with bodies that may be wrong on purpose.

use anyhow::{Context, ensure};
use http::{HeaderMap, Request, Response};
use serde_json::Value;

/// An API server.
#[derive(Clone)]
pub struct Server {
    client: kube::Client,
}

/// What it said to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The texts of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The object, or the `Status` that says why not.
    pub body: Value,
}

/// The kind of write. Dry runs go through the whole validation and store nothing.
#[derive(Debug, Clone, Copy)]
pub enum Verb {
    /// POST
    Create,
    /// PUT
    Replace,
    /// PATCH with a merge patch
    MergePatch,
    /// PATCH with a JSON patch
    JsonPatch,
    /// DELETE
    Delete,
    /// GET
    Get,
}

impl Verb {
    fn method_and_content(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("POST", "application/json"),
            Self::Replace => ("PUT", "application/json"),
            Self::MergePatch => ("PATCH", "application/merge-patch+json"),
            Self::JsonPatch => ("PATCH", "application/json-patch+json"),
            Self::Delete => ("DELETE", "application/json"),
            Self::Get => ("GET", "application/json"),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// The API server that the client speaks to.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// One request. An answer of 5xx is an error: it says nothing about the object.
    pub async fn send(&self, verb: Verb, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send_bytes(verb, path, serde_json::to_vec(body)?).await
    }

    /// As [`Self::send`], with a body that may be no JSON at all.
    pub async fn send_bytes(&self, verb: Verb, path: &str, body: Vec<u8>) -> anyhow::Result<Answer> {
        let (method, content) = verb.method_and_content();
        let answer = self.exchange(method, path, content, body).await?;
        let (code, warnings) = (answer.status().as_u16(), warnings(answer.headers()));
        let bytes = answer.into_body();
        let body = serde_json::from_slice(&bytes).with_context(|| String::from_utf8_lossy(&bytes).into_owned())?;
        ensure!(code < 500, "{method} {path}: {code} {body}");
        Ok(Answer { code, warnings, body })
    }

    /// One request and its whole answer, whatever it is.
    pub async fn exchange(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<Response<Vec<u8>>> {
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(kube::client::Body::from(body))?;
        let (parts, body) = self.client.send(request).await.with_context(|| format!("{method} {path}"))?.into_parts();
        Ok(Response::from_parts(parts, body.collect_bytes().await?.to_vec()))
    }
}

/// The texts of `Warning: 299 - "text"` (RFC 7234 section 5.5): quotes and backslashes in a text are escaped.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let text = |value: &http::HeaderValue| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let quoted = value.split_once('"')?.1.strip_suffix('"')?.to_owned();
        let mut text = String::new();
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            text.extend(if character == '\\' { characters.next() } else { Some(character) });
        }
        Some(text)
    };
    headers.get_all("warning").iter().filter_map(text).collect()
}

impl Answer {
    /// Whether the object is taken.
    pub fn is_accepted(&self) -> bool {
        self.code < 300
    }

    /// The faults, each as (field, message), with `[]` for any index in the field.
    pub fn causes(&self) -> Vec<(String, String)> {
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        causes.iter().map(|cause| (without_indices(&text(&cause["field"])), text(&cause["message"]))).collect()
    }

    /// The answer as one short text.
    pub fn summary(&self) -> String {
        let message = self.body["message"].as_str().unwrap_or_default();
        format!("{} {}", self.code, message.chars().take(400).collect::<String>())
    }
}

/// `spec.task.env[2]` as `spec.task.env[]`.
fn without_indices(field: &str) -> String {
    let mut parts = field.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("[]");
        text.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_read_without_its_quotes() {
        let mut headers = HeaderMap::new();
        headers.append("warning", r#"299 - "JobClass \"x\" does not exist""#.parse().unwrap());
        headers.append("warning", r#"299 - "a \\ b""#.parse().unwrap());
        assert_eq!(warnings(&headers), ["JobClass \"x\" does not exist", "a \\ b"]);
    }

    #[test]
    fn a_cause_is_told_whatever_its_index() {
        assert_eq!(without_indices("spec.task.env[2].name"), "spec.task.env[].name");
        assert_eq!(without_indices("spec.task"), "spec.task");
    }
}
