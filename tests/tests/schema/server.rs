//! The two API servers, and plain requests to them.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use ayatori_tests::{Cluster, Options, suite, tools};
use http::Request;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::kinds::Kind;

/// Usually a second.
const PUBLISHED: Duration = Duration::from_secs(30);

/// An API server that serves the four kinds.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
}

/// What it said to a request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

/// The kind of write. Dry runs go through the whole validation and store nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Create,
    Replace,
    MergePatch,
    JsonPatch,
    Delete,
}

/// The shared cluster of this binary with our definitions.
pub(crate) async fn our_cluster() -> anyhow::Result<&'static Cluster> {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let cluster = suite::shared_cluster(Options::default()).await?;
    let apply = async || {
        let definitions = ayatori_crds::definitions::all()?;
        let manifests: Vec<String> = definitions.iter().map(|definition| definition.object.to_string()).collect();
        cluster.add_crds(&manifests.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        published(&cluster.client().await?).await
    };
    APPLIED.get_or_try_init(apply).await?;
    Ok(cluster)
}

/// Waits until what kubectl asks first (which resources there are, and their fields) tells of all four kinds: that
/// comes a little later than the resources themselves.
async fn published(client: &kube::Client) -> anyhow::Result<()> {
    let group = format!("apis/{}/v1alpha1", ayatori_crds::names::GROUP);
    let deadline = Instant::now() + PUBLISHED;
    for path in [format!("/{group}"), format!("/openapi/v3/{group}")] {
        while {
            let text = client.request_text(Request::get(&path).body(Vec::new())?).await.unwrap_or_default();
            !Kind::ALL.iter().all(|kind| text.contains(&format!(r#""kind":"{}""#, kind.name())))
        } {
            ensure!(Instant::now() < deadline, "{path} does not tell of all kinds");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// The API server with our definitions.
pub(crate) async fn ours() -> anyhow::Result<Server> {
    Ok(Server { client: our_cluster().await?.client().await? })
}

/// The definitions that the project started from; they are beside the project's folder, and not everywhere.
pub(crate) fn reference_definitions() -> anyhow::Result<Option<Vec<String>>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/crds");
    if !folder.is_dir() {
        tools::say("there is no ../shared/reference/crds: our definitions are compared with their own record only");
        return Ok(None);
    }
    let mut manifests = Vec::new();
    for kind in Kind::ALL {
        let file = folder.join(kind.file());
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        manifests.push(text.trim_start().trim_start_matches("---").to_owned());
    }
    Ok(Some(manifests))
}

/// The API server with the reference definitions, where these are.
pub(crate) async fn reference() -> anyhow::Result<Option<Server>> {
    static SECOND: OnceCell<Cluster> = OnceCell::const_new();
    let Some(manifests) = reference_definitions()? else { return Ok(None) };
    let start = async || {
        let cluster = Cluster::start(Options::default()).await?;
        cluster.add_crds(&manifests.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        anyhow::Ok(cluster)
    };
    Ok(Some(Server { client: SECOND.get_or_try_init(start).await?.client().await? }))
}

impl Server {
    /// One request. An answer of 5xx is an error: it says nothing about the object.
    pub(crate) async fn send(&self, verb: Verb, path: &str, body: &Value) -> anyhow::Result<Answer> {
        let (method, content) = match verb {
            Verb::Create => ("POST", "application/json"),
            Verb::Replace => ("PUT", "application/json"),
            Verb::MergePatch => ("PATCH", "application/merge-patch+json"),
            Verb::JsonPatch => ("PATCH", "application/json-patch+json"),
            Verb::Delete => ("DELETE", "application/json"),
        };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(kube::client::Body::from(serde_json::to_vec(body)?))?;
        let answer = self.client.send(request).await.with_context(|| format!("{method} {path}"))?;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect_bytes().await?;
        let body = serde_json::from_slice(&bytes).with_context(|| String::from_utf8_lossy(&bytes).into_owned())?;
        ensure!(code < 500, "{method} {path}: {code} {body}");
        Ok(Answer { code, body })
    }
}

impl Answer {
    pub(crate) fn is_accepted(&self) -> bool {
        self.code < 300
    }

    /// The faults, each as (field, message), with `[]` for any index in the field.
    pub(crate) fn causes(&self) -> Vec<(String, String)> {
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        causes.iter().map(|cause| (without_indices(&text(&cause["field"])), text(&cause["message"]))).collect()
    }

    /// The answer as one short text.
    pub(crate) fn summary(&self) -> String {
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
