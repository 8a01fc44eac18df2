//! Who gets the page: each row of 401, 403, 200 and 503.

use std::{
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::{Client, client::Body};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use tower::service_fn;

use crate::metrics::{access::Access, endpoint::Endpoint};

/// What becomes of the API server's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answers,
    /// The connection is refused.
    Away,
    /// No answer ever comes.
    Silent,
    /// It does not let us ask.
    Forbids,
}

/// A cluster that knows two tokens: `reader`, who is in the group that may, and `other`, who is not. Everything that an
/// authenticator told of a bearer must arrive with the question, or nobody may.
fn client(fate: Fate, asked: &Arc<AtomicUsize>) -> Client {
    let asked = Arc::clone(asked);
    let service = service_fn(move |request: Request<Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        async move {
            match fate {
                Fate::Answers => {}
                Fate::Away => return Err(io::Error::other("connection refused")),
                Fate::Silent => pending().await,
                Fate::Forbids => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                        "reason": "Forbidden", "message": "tokenreviews is forbidden"});
                    return Ok(respond(StatusCode::FORBIDDEN, &status));
                }
            }
            assert_eq!(request.method(), Method::POST);
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect_bytes().await.map_err(io::Error::other)?;
            let mut review: Value = serde_json::from_slice(&body)?;
            review["status"] = match path.as_str() {
                "/apis/authentication.k8s.io/v1/tokenreviews" => bearer(&review["spec"]["token"]),
                "/apis/authorization.k8s.io/v1/subjectaccessreviews" => may(&review["spec"]),
                other => panic!("asked at {other}"),
            };
            Ok(respond(StatusCode::CREATED, &review))
        }
    });
    Client::new(service, "default")
}

fn respond(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::from(body.to_string())).unwrap()
}

fn bearer(token: &Value) -> Value {
    let user = |name: &str, group: &str| json!({"authenticated": true, "user": {"username": name, "uid": "u", "groups": [group], "extra": {"k": ["v"]}}});
    match token.as_str() {
        Some("reader") => user("r", "scrapers"),
        Some("other") => user("o", "people"),
        // An authenticator may name a user whom it does not vouch for.
        Some("doubtful") => json!({"authenticated": false, "user": {"username": "r", "groups": ["scrapers"]}}),
        _ => json!({"error": "invalid bearer token"}),
    }
}

fn may(spec: &Value) -> Value {
    let asked = json!({
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        "user": "r", "uid": "u", "groups": ["scrapers"], "extra": {"k": ["v"]},
    });
    json!({"allowed": *spec == asked})
}

/// A client of no API server.
pub(super) fn nobody() -> Client {
    client(Fate::Away, &Arc::default())
}

fn endpoint(fate: Fate) -> (Endpoint, Arc<AtomicUsize>) {
    let asked = Arc::default();
    (Endpoint::new(Registry::default(), Some(Access::new(client(fate, &asked)))), asked)
}

fn get(authorization: &str) -> Request<()> {
    let request = Request::get("/metrics");
    let request = if authorization.is_empty() { request } else { request.header(header::AUTHORIZATION, authorization) };
    request.body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_page_is_given_to_whom_the_cluster_allows_it_and_to_nobody_else() {
    for (authorization, fate, status) in [
        ("", Fate::Answers, 401),
        ("Basic cmVhZGVyOg==", Fate::Answers, 401),
        ("reader", Fate::Answers, 401),
        ("Bearer ", Fate::Answers, 401),
        ("Bearer nobody", Fate::Answers, 401),
        ("Bearer doubtful", Fate::Answers, 401),
        ("Bearer other", Fate::Answers, 403),
        ("Bearer reader", Fate::Answers, 200),
        ("bearer reader", Fate::Answers, 200),
        ("Bearer reader", Fate::Away, 503),
        ("Bearer reader", Fate::Silent, 503),
        ("Bearer reader", Fate::Forbids, 503),
        ("", Fate::Away, 401),
    ] {
        let (endpoint, _) = endpoint(fate);
        let begin = Instant::now();
        let response = endpoint.answer_to(&get(authorization)).await;
        assert_eq!(response.status(), status, "{authorization:?} where the API server {fate:?}");
        assert_eq!(response.headers().contains_key(header::WWW_AUTHENTICATE), status == 401, "{authorization:?}");
        assert!(begin.elapsed() < Duration::from_secs(6), "Prometheus gives up after 10 s");
    }
}

#[tokio::test]
async fn the_cluster_is_asked_once_for_many_scrapes_and_a_failure_is_asked_again() {
    let (working, asked) = endpoint(Fate::Answers);
    for _ in 0..5 {
        assert_eq!(working.answer_to(&get("Bearer reader")).await.status(), 200);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "whose token it is, and whether he may");
    assert_eq!(working.answer_to(&get("Bearer other")).await.status(), 403, "another token is another question");
    let (failing, asked) = endpoint(Fate::Away);
    for _ in 0..3 {
        assert_eq!(failing.answer_to(&get("Bearer reader")).await.status(), 503);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn nothing_is_asked_for_what_is_not_there() {
    let (endpoint, asked) = endpoint(Fate::Answers);
    let of = |method: Method, path: &str| {
        Request::builder().method(method).uri(path).header(header::AUTHORIZATION, "Bearer reader").body(()).unwrap()
    };
    for path in ["/", "/metrics/", "/debug/state"] {
        assert_eq!(endpoint.answer_to(&of(Method::GET, path)).await.status(), 404, "{path}");
    }
    let response = endpoint.answer_to(&of(Method::POST, "/metrics")).await;
    assert_eq!((response.status().as_u16(), response.headers()[header::ALLOW].as_bytes()), (405, &b"GET"[..]));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}
