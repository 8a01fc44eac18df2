//! The server over a real TLS socket on loopback: what is answered, what is cut, and how it ends.
// Tests outside of a crate are not seen as tests by clippy's allow-*-in-tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use ayatori_certs::SelfManaged;
use ayatori_webhook::{Limits, Metrics, Reviews, Server, Transport};
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::harness::{Client, LIMITS, Response, about, cut_after, head, review, send, start};

mod harness;
mod mutual_tls;
mod protocols;

#[tokio::test]
async fn good_reviews_are_answered_one_after_another_on_one_connection() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        send(&mut client, &review("x")).await;
        let response = Response::read(&mut client).await;
        assert_eq!((response.status(), response.closes()), (200, false));
        assert_eq!(response.review(), json!({"uid": "u-1", "allowed": true}));
    }
}

#[tokio::test]
async fn what_is_no_review_gets_an_answer_and_the_server_lives() {
    let server = start(LIMITS).await;
    for (content_type, body, status) in [
        ("application/json", b"{".to_vec(), 400),
        ("application/json", Vec::new(), 400),
        ("text/plain", review("x"), 415),
        ("application/json", vec![b' '; LIMITS.body_bytes + 1], 413),
    ] {
        let mut client = server.connect().await;
        client.write_all(head(content_type, body.len()).as_bytes()).await.unwrap();
        // The refusal may come, and the connection go, before the whole body is sent.
        let _ = client.write_all(&body).await;
        let _ = client.flush().await;
        assert_eq!(Response::read(&mut client).await.status(), status, "{content_type}");
    }
    let mut client = server.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert_eq!(Response::read(&mut client).await.status(), 404);
    send(&mut client, &review("x")).await;
    assert_eq!(Response::read(&mut client).await.status(), 200);
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_refused() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    let head = "POST /validate-jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    for _ in 0..3 {
        let _ = client.write_all(chunk.as_bytes()).await;
    }
    let _ = client.flush().await;
    assert_eq!(Response::read(&mut client).await.status(), 413);
}

#[tokio::test]
async fn a_panic_is_answered_counted_and_survived() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    send(&mut client, &review("panic")).await;
    let response = Response::read(&mut client).await;
    assert_eq!(response.status(), 200);
    let review_answer = response.review();
    assert_eq!((&review_answer["uid"], &review_answer["allowed"]), (&json!("u-1"), &json!(false)));
    assert_eq!(review_answer["status"]["code"], 500);
    assert_eq!(server.reviews.panics(), 1);

    send(&mut client, &review("x")).await;
    assert_eq!(Response::read(&mut client).await.review()["allowed"], true);
}

#[tokio::test]
async fn a_review_without_end_is_answered_within_its_time() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    let begin = Instant::now();
    send(&mut client, &review("wait")).await;
    let response = Response::read(&mut client).await;
    assert_eq!((response.status(), response.review()["status"]["code"].as_i64()), (200, Some(504)));
    about(LIMITS.longest_request / 10 * 9, begin.elapsed());
}

#[tokio::test]
async fn a_silent_client_is_cut_at_the_handshake_limit() {
    let server = start(LIMITS).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    about(LIMITS.handshake, cut_after(&mut silent).await);
}

#[tokio::test]
async fn a_client_that_sends_no_request_or_a_slow_head_is_cut() {
    let server = start(LIMITS).await;
    let mut idle = server.connect().await;
    let mut slow = server.connect().await;
    slow.write_all(b"POST /validate-jobs HTTP/1.1\r\nHost:").await.unwrap();
    slow.flush().await.unwrap();
    let (idle, slow) = futures::join!(cut_after(&mut idle), cut_after(&mut slow));
    about(LIMITS.first_request, idle);
    about(LIMITS.first_request, slow);
}

#[tokio::test]
async fn a_slow_body_is_answered_and_cut() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    let begin = Instant::now();
    client.write_all(head("application/json", 1000).as_bytes()).await.unwrap();
    client.write_all(b"{").await.unwrap();
    client.flush().await.unwrap();
    let response = Response::read(&mut client).await;
    assert_eq!((response.status(), response.closes()), (408, true));
    about(LIMITS.body, begin.elapsed());
    assert!(cut_after(&mut client).await < Duration::from_millis(500));
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_nobody_waiting() {
    let server = start(LIMITS).await;
    let mut slow = Vec::new();
    for _ in 0..LIMITS.connections - 1 {
        let mut client = server.connect().await;
        client.write_all(head("application/json", 1000).as_bytes()).await.unwrap();
        client.write_all(b"{").await.unwrap();
        client.flush().await.unwrap();
        slow.push(client);
    }
    assert!(slow.len() > LIMITS.requests);
    let mut client = server.connect().await;
    send(&mut client, &review("x")).await;
    // Whichever answer comes first: the slow ones are told at their limit.
    let first = tokio::select! {
        biased;
        response = Response::read(&mut slow[0]) => response,
        response = Response::read(&mut client) => response,
    };
    assert_eq!(first.status(), 200);
}

#[tokio::test]
async fn bodies_have_their_share_of_memory_and_no_more() {
    // As much time as it takes for three of them to get here, on a machine that does much else.
    let (body, request) = (Duration::from_secs(3), Duration::from_secs(20));
    let limits = Limits { bodies_bytes: 1500, body, request, longest_request: request, ..LIMITS };
    let server = start(limits).await;
    let mut greedy = Vec::new();
    // The second one finds no room, and is the one that may go on without.
    for _ in 0..2 {
        let mut client = server.connect().await;
        client.write_all(head("application/json", 2000).as_bytes()).await.unwrap();
        client.write_all(&[b' '; 1400]).await.unwrap();
        client.flush().await.unwrap();
        sleep(Duration::from_millis(50)).await;
        greedy.push(client);
    }
    let mut client = server.connect().await;
    send(&mut client, &review("x")).await;
    let early = timeout(Duration::from_millis(500), Response::read(&mut client)).await;
    assert!(early.is_err(), "it was let in beside what fills the memory");
    assert_eq!(Response::read(&mut greedy[0]).await.status(), 408);
    assert_eq!(Response::read(&mut client).await.status(), 200);
}

#[tokio::test]
async fn nothing_is_answered_with_a_redirect() {
    // An API server follows one, with its own rights in its own network (CVE-2020-8561).
    let server = start(LIMITS).await;
    for target in [
        "/",
        "//",
        "/validate-jobs/",
        "//validate-jobs",
        "/validate-jobs/..",
        "/VALIDATE-JOBS",
        "/validate%2djobs",
        "/x",
        "http://127.0.0.1/validate-jobs",
        "https://elsewhere.example/validate-jobs",
        "/validate-jobs?timeout=1s",
        "*",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "TRACE", "PROPFIND"] {
            for host in ["x", "elsewhere.example"] {
                let mut client = server.connect().await;
                let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
                client.write_all(head.as_bytes()).await.unwrap();
                let mut answer = vec![0; 4096];
                let length = client.read(&mut answer).await.unwrap();
                let answer = String::from_utf8_lossy(&answer[..length]).to_ascii_lowercase();
                let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
                assert!((400..500).contains(&status), "{method} {target}: {answer}");
                assert!(!answer.contains("location:"), "{method} {target}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_its_time_and_then_cut() {
    let server = start(LIMITS).await;
    let mut client = server.connect().await;
    send(&mut client, &review("x")).await;
    Response::read(&mut client).await;
    about(LIMITS.longest_request + LIMITS.idle, cut_after(&mut client).await);
}

#[tokio::test]
async fn a_client_over_the_bound_takes_the_place_of_one_that_asks_nothing() {
    let server = start(Limits { connections: 2, ..LIMITS }).await;
    let mut first = server.connect().await;
    // It has asked, and has its answer: it is idle for a shorter time.
    let mut second = server.connect().await;
    send(&mut second, &review("x")).await;
    Response::read(&mut second).await;
    let mut third = server.connect().await;
    let cut = timeout(LIMITS.handshake, first.read_u8()).await.expect("the first is cut at once");
    assert!(cut.is_err());
    for client in [&mut second, &mut third] {
        send(client, &review("x")).await;
        assert_eq!(Response::read(client).await.status(), 200);
    }
}

#[tokio::test]
async fn a_client_over_the_bound_waits_while_all_others_wait_for_answers() {
    let server = start(Limits { connections: 1, ..LIMITS }).await;
    let mut first = server.connect().await;
    send(&mut first, &review("wait")).await;
    sleep(Duration::from_millis(100)).await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    // Were it accepted, it would be cut at the handshake limit.
    assert!(timeout(LIMITS.handshake * 3 / 2, second.read_u8()).await.is_err());
    server.jobs.leave.notify_one();
    assert_eq!(Response::read(&mut first).await.status(), 200);
    about(LIMITS.handshake, cut_after(&mut second).await);
}

#[tokio::test]
async fn a_new_certificate_is_seen_by_the_next_handshake_and_not_by_open_connections() {
    let server = start(LIMITS).await;
    let shown = |client: &Client| client.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let mut open = server.connect().await;
    let first = server.source.served().unwrap();
    assert_eq!(shown(&open), first.certificate().der());

    server.issue();
    let second = server.source.served().unwrap();
    assert_ne!(first.certificate(), second.certificate());
    assert_eq!(shown(&server.connect().await), second.certificate().der());
    send(&mut open, &review("x")).await;
    assert_eq!(Response::read(&mut open).await.status(), 200);
}

/// What is counted of connections.
fn counted(metrics: &Metrics) -> Vec<String> {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text.lines().filter(|line| line.starts_with("webhook_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn without_a_certificate_handshakes_fail_and_nothing_else() {
    let source = SelfManaged::default();
    let reviews = Arc::new(Reviews::default());
    let metrics = reviews.metrics().clone();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), &source, Transport::default(), LIMITS, reviews);
    let server = server.await.unwrap();
    let address = server.local_addr().unwrap();
    let task = tokio::spawn(server.serve(pending()));
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"\x16\x03\x01 no hello").await.unwrap();
    assert!(cut_after(&mut socket).await < Duration::from_secs(1));
    assert!(!task.is_finished());
    let mut silent = TcpStream::connect(address).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!(counted(&metrics), ["webhook_connections 1", "webhook_failed_handshakes_total 1"]);
    cut_after(&mut silent).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(counted(&metrics), ["webhook_connections 0", "webhook_failed_handshakes_total 2"]);
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_then_lets_nobody_in() {
    let server = start(LIMITS).await;
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    for client in [&mut busy, &mut idle] {
        send(client, &review("x")).await;
        assert!(!Response::read(client).await.closes());
    }
    send(&mut busy, &review("wait")).await;
    sleep(Duration::from_millis(100)).await;
    server.stop.notify_one();
    sleep(Duration::from_millis(100)).await;

    // The farewell: the door is still open, and every answer says that it is about to close.
    let mut late = server.connect().await;
    send(&mut late, &review("x")).await;
    let response = Response::read(&mut late).await;
    assert_eq!((response.status(), response.closes()), (200, true));

    sleep(LIMITS.farewell).await;
    assert!(TcpStream::connect(server.address).await.is_err(), "the listener is closed");
    assert!(cut_after(&mut idle).await < Duration::from_millis(800), "an idle connection is closed");
    assert!(!server.task.is_finished(), "the request in flight is awaited");

    server.jobs.leave.notify_one();
    let response = Response::read(&mut busy).await;
    assert_eq!((response.status(), response.closes()), (200, true));
    assert_eq!(response.review()["allowed"], true);
    timeout(Duration::from_secs(1), server.task).await.expect("the drain ends with its last answer").unwrap();
}

#[tokio::test]
async fn a_drain_ends_at_its_deadline_whatever_is_in_flight() {
    let limits = Limits { drain: Duration::from_millis(400), longest_request: Duration::from_secs(20), ..LIMITS };
    let server = start(limits).await;
    let mut client = server.connect().await;
    send(&mut client, &review("wait")).await;
    sleep(Duration::from_millis(100)).await;
    let begin = Instant::now();
    server.stop.notify_one();
    timeout(Duration::from_secs(5), server.task).await.expect("the drain has an end").unwrap();
    about(limits.farewell + limits.drain, begin.elapsed());
    cut_after(&mut client).await;
}
