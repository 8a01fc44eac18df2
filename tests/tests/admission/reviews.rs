//! What is posted to the webhook itself: good and malformed AdmissionReviews, each with the answer, by `reviews.yaml`.
//!
//! The API server passes them on, as to any Service: so they cross the cluster's network and the webhook's TLS, and
//! reach the running process.

use anyhow::{Context, ensure};
use ayatori_tests::{
    api::{kinds::Kind, requests::Verb},
    eventually,
    tools::say,
};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    theme,
    world::{AT_ONCE, BOUND, NAMESPACE, World, alone},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    say: String,
    /// Where to; all three where nothing is said.
    #[serde(default = "everywhere")]
    to: Vec<String>,
    #[serde(default = "json")]
    content: String,
    /// What is changed in a good review, by a merge patch.
    #[serde(default)]
    change: Value,
    /// What is done to its text.
    #[serde(default)]
    body: Option<Body>,
    /// The HTTP status, and how its text begins where it is not 200.
    #[serde(default = "ok")]
    http: u16,
    #[serde(default)]
    text: String,
    /// Whether the review allows, with a patch or without.
    #[serde(default)]
    allowed: Option<Allowed>,
    /// Code and how the message begins, where it refuses.
    #[serde(default)]
    refused: Option<(u16, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allowed {
    Patched,
    Unchanged,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Body {
    Before(String),
    After(String),
    Instead(String),
    /// Only the first part of it.
    Cut(usize),
    /// The first text is replaced by the second: keys that stand twice.
    With(String, String),
    Utf16,
    /// Objects within each other, as the object's spec.
    Deep(usize),
}

fn everywhere() -> Vec<String> {
    ["/mutate-jobs", "/validate-jobs", "/validate-jobclasses"].map(str::to_owned).into()
}

fn json() -> String {
    "application/json".to_owned()
}

fn ok() -> u16 {
    200
}

/// The uid of the good review.
const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// A good review of a creation, as this path is sent them.
fn good(path: &str) -> Value {
    let (kind, resource) = if path.ends_with("jobs") { (Kind::Job, "jobs") } else { (Kind::JobClass, "jobclasses") };
    let group = ayatori_crds::names::GROUP;
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": UID, "operation": "CREATE", "name": "posted", "namespace": "admission", "dryRun": false,
            "kind": {"group": group, "version": "v1alpha1", "kind": kind.name()},
            "resource": {"group": group, "version": "v1alpha1", "resource": resource},
            "userInfo": {"username": "someone", "groups": ["system:authenticated"]},
            "object": kind.object("posted"), "oldObject": null,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
}

impl Posted {
    fn bytes(&self, path: &str) -> Vec<u8> {
        let mut review = good(path);
        if self.change.is_object() {
            json_patch::merge(&mut review, &self.change);
        }
        if let Some(Body::Deep(_)) = &self.body {
            review["request"]["object"]["spec"] = json!("deep");
        }
        let text = review.to_string();
        let text = match &self.body {
            None => text,
            Some(Body::Before(before)) => format!("{before}{text}"),
            Some(Body::After(after)) => format!("{text}{after}"),
            Some(Body::Instead(body)) => body.clone(),
            Some(Body::Cut(bytes)) => text[..*bytes].to_owned(),
            Some(Body::With(old, new)) => text.replacen(old, new, 1),
            Some(Body::Utf16) => return text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Some(Body::Deep(depth)) => {
                text.replace("\"deep\"", &("{\"a\":".repeat(*depth) + "1" + &"}".repeat(*depth)))
            }
        };
        text.into_bytes()
    }

    /// What is wrong with the answer.
    fn check(&self, code: u16, body: &[u8]) -> anyhow::Result<()> {
        let text = String::from_utf8_lossy(body);
        ensure!(code == self.http, "HTTP {code}: {text}");
        if code != 200 {
            ensure!(!self.text.is_empty() && text.starts_with(&self.text), "it says {text:?}");
            return Ok(());
        }
        let answer: Value = serde_json::from_slice(body)?;
        let response = &answer["response"];
        let uid = self.change.pointer("/request/uid").cloned().unwrap_or_else(|| json!(UID));
        ensure!(response["uid"] == uid, "the uid is {}", response["uid"]);
        match (self.allowed, &self.refused) {
            (Some(allowed), None) => {
                ensure!(response["allowed"] == true, "{answer}");
                ensure!(response["patch"].is_string() == (allowed == Allowed::Patched), "{answer}");
                ensure!(response["patchType"].is_string() == response["patch"].is_string(), "{answer}");
            }
            (None, Some((code, message))) => {
                ensure!(response["allowed"] == false && response["status"]["code"] == *code, "{answer}");
                let said = response["status"]["message"].as_str().unwrap_or_default();
                ensure!(said.starts_with(message), "it says {said:?}");
                ensure!(response["patch"].is_null() && response["warnings"].is_null(), "{answer}");
            }
            other => anyhow::bail!("it must be said whether it is allowed: {other:?}"),
        }
        Ok(())
    }
}

/// Lets the API server pass requests on to the webhook, which listens at every address of the cluster's network: it
/// takes the process for a pod. Returns the path in front of the webhook's own.
async fn offer(world: &World) -> anyhow::Result<String> {
    let own = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let own = world.server.send(Verb::Get, own, &Value::Null).await?.body;
    let address = own["endpoints"][0]["addresses"][0].as_str().context("the API server's own address")?;
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "posted"},
        "spec": {"containers": [{"name": "webhook", "image": "none"}]}});
    eventually("a pod can be made", BOUND, async || {
        let answer = world.server.send(Verb::Create, &pods, &pod).await?;
        // It needs the ServiceAccount of the namespace, which comes a moment later.
        ensure!(answer.is_accepted(), "{}", answer.summary());
        Ok(())
    })
    .await?;
    let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}});
    let answer = world.server.send(Verb::MergePatch, &format!("{pods}/posted/status"), &status).await?;
    ensure!(answer.is_accepted(), "{}", answer.summary());
    Ok(format!("{pods}/https:posted:9443/proxy"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_review_that_is_posted_to_the_webhook_gets_its_answer() -> anyhow::Result<()> {
    let posted: Vec<Posted> = theme::read("reviews.yaml")?;
    let requests: Vec<(&Posted, &String)> =
        posted.iter().flat_map(|one| one.to.iter().map(move |to| (one, to))).collect();
    say(&format!("reviews: {} posted to the webhook, {} requests", posted.len(), requests.len()));
    alone(async |world| {
        let proxy = offer(world).await?;
        let post = stream::iter(&requests).map(|(one, to)| {
            let (path, server) = (format!("{proxy}{to}?timeout=5s"), world.server.clone());
            async move {
                // A connection whose body was not read is cut, and the API server may just have taken it again.
                let answer = eventually("an answer of the webhook", BOUND, async || {
                    let answer = server.exchange("POST", &path, &one.content, one.bytes(to)).await?;
                    ensure!(answer.status() != 503, "{}", String::from_utf8_lossy(answer.body()));
                    Ok(answer)
                })
                .await?;
                one.check(answer.status().as_u16(), answer.body()).with_context(|| format!("{:?} to {to}", one.say))
            }
        });
        let answers: Vec<anyhow::Result<()>> = post.buffered(AT_ONCE).collect().await;
        let faults: Vec<String> =
            answers.into_iter().filter_map(|one| one.err().map(|error| format!("{error:#}"))).collect();
        ensure!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        Ok(())
    })
    .await
}
