//! One HTTP request: path, method, type, size and time. Everything that is refused here is refused in plain text, for
//! no uid was read yet.

use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::arrival::trace_of;
use crate::review::Unreadable;
use crate::time_limit::time_limit;
use crate::{Arrival, Handler, Limits, Reviews};

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Endpoint {
    reviews: Arc<Reviews>,
    limits: Limits,
    /// One permit for each byte of a body.
    bytes: Semaphore,
    /// For one body that goes on without: else bodies that are half here could all wait for each other.
    spare: Semaphore,
    /// One permit for each review that runs.
    room: Semaphore,
}

/// A body, as far as it is here, and its share of the memory for all bodies.
#[derive(Default)]
struct Held<'a> {
    body: Vec<u8>,
    share: Option<SemaphorePermit<'a>>,
    spare: Option<SemaphorePermit<'a>>,
}

/// Why a request got no review.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is nothing at this path")]
    Path,
    #[error("only POST is served here")]
    Method,
    #[error("the body must be application/json")]
    ContentType,
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    #[error("the body did not arrive in time")]
    SlowBody,
    #[error("the body could not be read")]
    BrokenBody,
    #[error("too many requests at once; try again")]
    NoRoom,
    #[error("{0}")]
    Unreadable(String),
}

impl Endpoint {
    pub(crate) fn new(reviews: Arc<Reviews>, limits: Limits) -> Self {
        let (bytes, room) = (Semaphore::new(limits.bodies_bytes), Semaphore::new(limits.requests));
        Self { reviews, limits, bytes, spare: Semaphore::new(1), room }
    }

    /// The answer to `request`, whatever it is.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let metrics = self.reviews.metrics();
        let _in_flight = metrics.in_flight();
        match self.review(request).await {
            Ok(body) => {
                let mut response = Response::new(Full::from(body));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "no review");
                metrics.unreviewed(refusal.reason());
                refusal.into_response()
            }
        }
    }

    async fn review<B>(&self, request: Request<B>) -> Result<Vec<u8>, Refusal>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let arrived = Instant::now();
        let deadline = arrived + time_limit(request.uri().query(), &self.limits);
        let arrival = Arrival { deadline: Some(deadline), trace: trace_of(request.headers()) };
        let served = self.reviews.at(request.uri().path()).ok_or(Refusal::Path)?;
        if request.method() != Method::POST {
            return Err(Refusal::Method);
        }
        if !is_json(request.headers()) {
            return Err(Refusal::ContentType);
        }
        let held = self.body(request.into_body(), deadline.min(arrived + self.limits.body)).await?;
        // After the body: a slow one must not keep a quick one waiting.
        let _room = timeout_at(deadline, self.room.acquire()).await.map_err(|_| Refusal::NoRoom)?;
        let answer = self.reviews.answer(served, &held.body, arrival).await;
        self.reviews.metrics().took(served.path, arrived.elapsed());
        answer.map_err(|Unreadable(why)| Refusal::Unreadable(why))
    }

    async fn body<B>(&self, body: B, deadline: Instant) -> Result<Held<'_>, Refusal>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        let limit = self.limits.body_bytes;
        // A body that says beforehand that it is too long is not read at all.
        if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
            return Err(Refusal::TooLong(limit));
        }
        let mut body = pin!(body);
        let mut held = Held::default();
        loop {
            let frame = match timeout_at(deadline, body.frame()).await {
                Ok(None) => return Ok(held),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => return Err(Refusal::BrokenBody),
                Err(_) => return Err(Refusal::SlowBody),
            };
            let Ok(data) = frame.into_data() else { continue };
            if held.body.len() + data.len() > limit {
                return Err(Refusal::TooLong(limit));
            }
            timeout_at(deadline, self.make_room(&mut held, data.len())).await.map_err(|_| Refusal::NoRoom)?;
            held.body.extend_from_slice(&data);
        }
    }

    /// Room for so many more bytes of one body.
    async fn make_room<'a>(&'a self, held: &mut Held<'a>, bytes: usize) {
        if held.spare.is_some() {
            return;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        // Neither semaphore is ever closed, so there is no error to tell of.
        tokio::select! {
            biased;
            share = self.bytes.acquire_many(bytes) => match (&mut held.share, share) {
                (Some(held), Ok(more)) => held.merge(more),
                (none, share) => *none = share.ok(),
            },
            spare = self.spare.acquire() => held.spare = spare.ok(),
        }
    }
}

impl Handler for Endpoint {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'_, Response<Full<Bytes>>> {
        Self::answer(self, request).boxed()
    }
}

impl Refusal {
    /// Every reason, for metrics.
    pub(crate) const REASONS: [&str; 8] =
        ["path", "method", "content_type", "too_long", "slow_body", "broken_body", "no_room", "unreadable"];

    /// One word, for metrics.
    fn reason(&self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::TooLong(_) => "too_long",
            Self::SlowBody => "slow_body",
            Self::BrokenBody => "broken_body",
            Self::NoRoom => "no_room",
            Self::Unreadable(_) => "unreadable",
        }
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::from(format!("{self}\n")));
        let (status, header) = match self {
            Self::Path => (StatusCode::NOT_FOUND, None),
            Self::Method => (StatusCode::METHOD_NOT_ALLOWED, Some((ALLOW, "POST"))),
            Self::ContentType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
            Self::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, None),
            // The rest of a body that is not awaited must not be taken for the next request.
            Self::SlowBody => (StatusCode::REQUEST_TIMEOUT, Some((CONNECTION, "close"))),
            Self::BrokenBody | Self::Unreadable(_) => (StatusCode::BAD_REQUEST, None),
            // Where it was the body that found no room, hyper ends the connection, for the rest of it was not read.
            Self::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, Some((RETRY_AFTER, "1"))),
        };
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response.headers_mut().extend(header.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}

/// `application/json`, with or without parameters such as a charset.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures::StreamExt;
    use http_body_util::{Empty, StreamBody};
    use hyper::body::Frame;
    use prometheus_client::encoding::prometheus_text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::testing::{Script, review_body};

    const LIMITS: Limits = Limits {
        connections: 1,
        requests: 1,
        body_bytes: 2000,
        bodies_bytes: 3000,
        handshake: Duration::ZERO,
        first_request: Duration::ZERO,
        idle: Duration::ZERO,
        body: Duration::from_secs(1),
        request: Duration::from_secs(10),
        longest_request: Duration::from_secs(30),
        farewell: Duration::ZERO,
        drain: Duration::ZERO,
    };

    fn endpoint(script: Script) -> Endpoint {
        Endpoint::new(Arc::new(Reviews::default().with("/p", Arc::new(script))), LIMITS)
    }

    fn post<B>(body: B) -> Request<B> {
        Request::post("/p?timeout=10s").header(CONTENT_TYPE, "application/json").body(body).unwrap()
    }

    fn good() -> Request<Full<Bytes>> {
        post(Full::from(serde_json::to_vec(&review_body()).unwrap()))
    }

    #[tokio::test]
    async fn a_good_review_is_answered_as_json() {
        let response = endpoint(Script::Allow).answer(good()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }

    #[tokio::test]
    async fn each_fault_of_a_request_has_its_status() {
        let endpoint = endpoint(Script::Allow);
        let mut elsewhere = good();
        *elsewhere.uri_mut() = "/p/q".parse().unwrap();
        assert_eq!(endpoint.answer(elsewhere).await.status(), StatusCode::NOT_FOUND);

        let mut get = good();
        *get.method_mut() = Method::GET;
        let response = endpoint.answer(get).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[ALLOW], "POST");

        assert_eq!(endpoint.answer(post(Full::from("{"))).await.status(), StatusCode::BAD_REQUEST);
        assert_eq!(endpoint.answer(post(Empty::new())).await.status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn a_request_without_a_review_is_counted_by_its_reason_and_one_with_a_review_by_its_time() {
        let endpoint = endpoint(Script::Allow);
        endpoint.answer(good()).await;
        endpoint.answer(post(Full::from("{"))).await;
        let mut elsewhere = good();
        *elsewhere.uri_mut() = "/a/path/that/the/sender/chose".parse().unwrap();
        endpoint.answer(elsewhere).await;
        let mut registry = Registry::default();
        endpoint.reviews.metrics().register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "admission_requests_total{path=\"/p\",operation=\"CREATE\",code=\"200\"} 1",
            "admission_duration_seconds_count{path=\"/p\"} 2",
            "admission_unreviewed_requests_total{reason=\"path\"} 1",
            "admission_unreviewed_requests_total{reason=\"unreadable\"} 1",
            "admission_requests_in_flight 0",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("chose"), "{text}");
    }

    #[test]
    fn every_reason_without_a_review_is_counted_from_zero() {
        let all = [
            Refusal::Path,
            Refusal::Method,
            Refusal::ContentType,
            Refusal::TooLong(1),
            Refusal::SlowBody,
            Refusal::BrokenBody,
            Refusal::NoRoom,
            Refusal::Unreadable(String::new()),
        ];
        assert_eq!(all.map(|refusal| refusal.reason()), Refusal::REASONS);
    }

    #[tokio::test]
    async fn only_json_is_read() {
        let endpoint = endpoint(Script::Allow);
        for (value, status) in [
            ("application/json; charset=utf-8", StatusCode::OK),
            ("Application/JSON", StatusCode::OK),
            ("application/yaml", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("application/jsonp", StatusCode::UNSUPPORTED_MEDIA_TYPE),
            ("", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ] {
            let mut request = good();
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(endpoint.answer(request).await.status(), status, "{value}");
        }
        let mut request = good();
        request.headers_mut().clear();
        assert_eq!(endpoint.answer(request).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused_whether_or_not_it_says_its_length() {
        let endpoint = endpoint(Script::Allow);
        let said = post(Full::from(vec![b' '; 2001]));
        assert_eq!(endpoint.answer(said).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let chunks = (0..3).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; 1000]))));
        let unsaid = post(StreamBody::new(futures::stream::iter(chunks)));
        assert_eq!(endpoint.answer(unsaid).await.status(), StatusCode::PAYLOAD_TOO_LARGE);

        let mut padded = serde_json::to_vec(&review_body()).unwrap();
        padded.resize(2000, b' ');
        assert_eq!(endpoint.answer(post(Full::from(padded))).await.status(), StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_awaited_for_ever() {
        let begin = Instant::now();
        let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let response = endpoint(Script::Allow).answer(post(never)).await;
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(response.headers()[CONNECTION], "close");
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test]
    async fn bodies_that_need_more_room_than_there_is_for_all_of_them_come_one_after_another() {
        let endpoint = endpoint(Script::Allow);
        let chunks = || {
            let mut padded = serde_json::to_vec(&review_body()).unwrap();
            padded.resize(2000, b' ');
            let chunks: Vec<Bytes> = padded.chunks(100).map(Bytes::copy_from_slice).collect();
            // Each hands over after each chunk, so that all of them are half here at once.
            post(StreamBody::new(futures::stream::iter(chunks).then(async |chunk| {
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Frame::data(chunk))
            })))
        };
        let answers =
            futures::future::join_all((0..8).map(|_| endpoint.answer(Request::map(chunks(), Box::pin)))).await;
        const { assert!(8 * 2000 > LIMITS.bodies_bytes) };
        assert!(answers.iter().all(|answer| answer.status() == StatusCode::OK), "{answers:?}");
    }

    #[tokio::test]
    async fn a_broken_body_is_a_bad_request() {
        let broken = futures::stream::iter([Err::<Frame<Bytes>, _>(std::io::Error::other("reset"))]);
        let response = endpoint(Script::Allow).answer(post(StreamBody::new(broken))).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_room_is_told_so_in_its_own_time() {
        let endpoint = endpoint(Script::Wait(Duration::from_secs(100)));
        let (mut patient, mut hasty) = (good(), good());
        *patient.uri_mut() = "/p?timeout=30s".parse().unwrap();
        *hasty.uri_mut() = "/p?timeout=2s".parse().unwrap();
        let begin = Instant::now();
        let (first, second) = futures::join!(endpoint.answer(patient), async {
            let response = endpoint.answer(hasty).await;
            (response.status(), begin.elapsed())
        });
        assert_eq!(second.0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(second.1 < Duration::from_secs(2), "{:?}", second.1);
        assert_eq!(first.status(), StatusCode::OK, "a late review still says its uid");
    }
}
