//! From a body to an answering body: envelope, uid, the right handler, and a guard around it.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ayatori_crds::rules::syntax::is_dns_label;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::timeout_at;

use crate::envelope::{Envelope, Identified, Types};
use crate::{Answer, Arrival, Metrics, Request};

/// What one path does with the requests of one resource.
pub trait Review: Send + Sync {
    /// The resource that it knows: group, version, plural.
    fn resource(&self) -> [&str; 3];

    /// The verdict. It may wait for look-ups; the caller bounds the time and catches panics.
    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer>;
}

/// The handlers by path, and what is counted of them.
#[derive(Default)]
pub struct Reviews {
    by_path: BTreeMap<&'static str, Arc<dyn Review>>,
    metrics: Metrics,
}

/// The handler of one path.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    pub(crate) path: &'static str,
    review: &'a dyn Review,
}

/// A body in which no uid could be read: only the HTTP status can say so.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub(crate) String);

impl Reviews {
    /// Without any handler yet; what happens is counted in `metrics`.
    #[must_use]
    pub fn counted_in(metrics: Metrics) -> Self {
        Self { metrics, by_path: BTreeMap::new() }
    }

    /// Serves `review` at `path`.
    #[must_use]
    pub fn with(mut self, path: &'static str, review: Arc<dyn Review>) -> Self {
        self.metrics.serves(path);
        self.by_path.insert(path, review);
        self
    }

    /// What is counted.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How many requests ended in a panic since the start.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.metrics.panics()
    }

    /// The handler of `path`.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<Served<'_>> {
        self.by_path.get_key_value(path).map(|(path, review)| Served { path, review: &**review })
    }

    /// The answering review of `body`, before the deadline of its arrival. Once the uid is read there is an answer that
    /// carries it.
    ///
    /// # Errors
    /// Where no uid can be read.
    pub async fn answer(&self, served: Served<'_>, body: &[u8], arrival: Arrival) -> Result<Vec<u8>, Unreadable> {
        let unreadable = |error: serde_json::Error| Unreadable(format!("not an AdmissionReview: {error}"));
        let Envelope { api_version, kind, request } = serde_json::from_slice(body).map_err(unreadable)?;
        let Identified { uid } = serde_json::from_str(request.get()).map_err(unreadable)?;
        if uid.is_empty() {
            return Err(Unreadable("not an AdmissionReview: the uid is empty".to_owned()));
        }
        let types = Types { api_version, kind };
        let (operation, answer) = if types.known() {
            match serde_json::from_str::<Request<'_>>(request.get()) {
                Ok(request) => {
                    let request = Request { arrival, ..request };
                    (Some(request.operation), self.guarded(served.review, &request, &uid).await)
                }
                Err(error) => (None, Answer::bad_request(format!("cannot read the admission request: {error}"))),
            }
        } else {
            (None, Answer::bad_request(format!("{} {} is not served here", types.api_version, types.kind)))
        };
        self.metrics.answered(served.path, operation, &answer);
        answer.into_review(&types, &uid).map_err(unreadable)
    }

    async fn guarded(&self, review: &dyn Review, request: &Request<'_>, uid: &str) -> Answer {
        let asked = &request.resource;
        if [asked.group.as_str(), &asked.version, &asked.resource] != review.resource()
            || !request.sub_resource.is_empty()
        {
            let whole = format!("{}/{} {}", asked.group, asked.version, asked.resource);
            return Answer::bad_request(format!("resource {whole} {} is not reviewed here", request.sub_resource));
        }
        // It becomes part of a request's path. The API server's own are labels, but anybody may send a review.
        if !request.namespace.is_empty() && !is_dns_label(&request.namespace) {
            return Answer::bad_request("the namespace of the request is no DNS label");
        }
        let verdict = AssertUnwindSafe(async { review.review(request).await }).catch_unwind();
        let in_time = match request.arrival.deadline {
            Some(deadline) => timeout_at(deadline, verdict).await,
            None => Ok(verdict.await),
        };
        match in_time {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => {
                self.metrics.panicked();
                tracing::error!(uid, panic = panic_text(&*panic), "the review panicked");
                Answer::internal_error("the review failed for a fault of ayatori's own; its log has the details")
            }
            Err(_) => Answer::timeout("the review did not end in time; try again"),
        }
    }
}

impl fmt::Debug for Reviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviews").field("paths", &self.by_path.keys()).field("panics", &self.panics()).finish()
    }
}

impl fmt::Debug for Served<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("path", &self.path).finish_non_exhaustive()
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Script, review_body};

    fn within_a_second() -> Arrival {
        Arrival { deadline: Some(Instant::now() + Duration::from_secs(1)), ..Arrival::default() }
    }

    async fn answer(script: Script, body: &Value) -> Value {
        let reviews = Reviews::default().with("/p", Arc::new(script));
        let body = serde_json::to_vec(body).unwrap();
        let answer = reviews.answer(reviews.at("/p").unwrap(), &body, within_a_second()).await;
        serde_json::from_slice(&answer.unwrap()).unwrap()
    }

    async fn unreadable(body: &[u8]) -> Unreadable {
        let reviews = Reviews::default().with("/p", Arc::new(Script::Allow));
        reviews.answer(reviews.at("/p").unwrap(), body, within_a_second()).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_request_is_answered_in_its_own_envelope_with_its_own_uid() {
        let answer = answer(Script::Allow, &review_body()).await;
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["response"], json!({"uid": "u-1", "allowed": true}));
    }

    #[tokio::test]
    async fn where_no_uid_can_be_read_there_is_no_review() {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "{\"request\": null}",
            "{\"request\": {}}",
            "{\"request\": {\"uid\": 5}}",
            "{\"request\": {\"uid\": \"\"}}",
            "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\"}",
        ] {
            assert!(unreadable(body.as_bytes()).await.0.starts_with("not an AdmissionReview"), "{body}");
        }
        unreadable(b"\xff\xfe").await;
    }

    #[tokio::test]
    async fn whatever_else_is_wrong_is_answered_with_the_uid() {
        let wrong = [
            ("/request/operation", json!("EXPLODE"), "unknown variant `EXPLODE`"),
            ("/request/kind", json!("Job"), "invalid type: string \"Job\""),
            ("/request/resource", json!(null), "invalid type: null"),
            ("/request/resource/resource", json!("cronjobs"), "execution.ayatori.ddupan.top/v1alpha1 cronjobs"),
            ("/request/resource/version", json!("v9"), "execution.ayatori.ddupan.top/v9 jobs"),
            ("/request/subResource", json!("status"), "jobs status is not reviewed here"),
            (
                "/apiVersion",
                json!("admission.k8s.io/v1beta1"),
                "admission.k8s.io/v1beta1 AdmissionReview is not served",
            ),
            ("/kind", json!("ConversionReview"), "ConversionReview is not served"),
            ("/apiVersion", json!(["v1"]), "AdmissionReview is not served"),
            ("/kind", json!(null), "is not served"),
        ];
        for (pointer, value, told) in wrong {
            let mut body = review_body();
            *body.pointer_mut(pointer).unwrap() = value;
            let answer = answer(Script::Allow, &body).await;
            let types = [&body["apiVersion"], &body["kind"]].map(|given| given.as_str().unwrap_or_default());
            assert_eq!([&answer["apiVersion"], &answer["kind"]].map(|said| said.as_str().unwrap()), types, "{pointer}");
            let response = &answer["response"];
            assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)), "{pointer}");
            assert_eq!(response["status"]["code"], 400, "{pointer}");
            let message = response["status"]["message"].as_str().unwrap();
            assert!(message.contains(told), "{pointer}: {message}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_that_is_counted() {
        let reviews = Reviews::default().with("/p", Arc::new(Script::Panic));
        let body = serde_json::to_vec(&review_body()).unwrap();
        for count in 1..=2 {
            let answer = reviews.answer(reviews.at("/p").unwrap(), &body, within_a_second()).await.unwrap();
            let response = serde_json::from_slice::<Value>(&answer).unwrap()["response"].take();
            assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)));
            assert_eq!(response["status"]["code"], 500);
            assert_eq!(reviews.panics(), count);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_review_that_takes_too_long_is_answered_in_time() {
        let begin = Instant::now();
        let response = answer(Script::Wait(Duration::from_secs(60)), &review_body()).await["response"].take();
        assert_eq!(response["status"]["code"], 504);
        assert_eq!(response["uid"], "u-1");
        assert!(begin.elapsed() <= Duration::from_secs(2));
    }
}
