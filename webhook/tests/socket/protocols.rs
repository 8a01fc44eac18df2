//! HTTP/2: not there unless it is asked for, and bounded where it is.

use std::time::Duration;

use ayatori_webhook::{Limits, Transport};
use futures::future::join_all;
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::harness::{LIMITS, Running, review, start, start_with};

const BOTH: Transport = Transport { clients: None, http2: true };

type Sender = SendRequest<Full<Bytes>>;

async fn connect(server: &Running) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let stream = server.connect_as(None, "h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

fn request(body: Vec<u8>) -> Request<Full<Bytes>> {
    let post = Request::post("https://127.0.0.1/validate-jobs?timeout=10s").header(CONTENT_TYPE, "application/json");
    post.body(Full::from(body)).unwrap()
}

async fn read(response: http::Response<Incoming>) -> (StatusCode, Value) {
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn http_2_is_not_spoken_unless_it_is_asked_for() {
    let server = start(LIMITS).await;
    let error = server.connect_as(None, "h2").await.unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    let server = start_with(BOTH, LIMITS).await;
    server.connect_as(None, "h2").await.unwrap();
    let old = server.connect_as(None, "http/1.1").await.unwrap();
    assert_eq!(old.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn many_reviews_on_one_connection_are_all_answered() {
    // Bodies share the connection, and a busy machine brings the last of them late.
    let limits = Limits { body: Duration::from_secs(20), longest_request: Duration::from_secs(30), ..LIMITS };
    let server = start_with(BOTH, limits).await;
    let (mut sender, _connection) = connect(&server).await;
    // The first answer comes after the server's settings, which say how many may be in flight.
    assert_eq!(sender.send_request(request(review("x"))).await.unwrap().status(), StatusCode::OK);
    // More than may be in flight, with bodies larger than a stream's window.
    let reviews = (0..40).map(|_| {
        let mut sender = sender.clone();
        async move {
            let mut body = review("x");
            body.resize(40 * 1024, b' ');
            sender.ready().await.unwrap();
            read(sender.send_request(request(body)).await.unwrap()).await
        }
    });
    for (status, answer) in join_all(reviews).await {
        assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &Value::Bool(true)));
    }
}

#[tokio::test]
async fn a_body_too_long_or_too_slow_is_refused_there_too() {
    let server = start_with(BOTH, LIMITS).await;
    let (mut sender, _connection) = connect(&server).await;
    let long = sender.send_request(request(vec![b' '; LIMITS.body_bytes + 1])).await.unwrap();
    assert_eq!(long.status(), StatusCode::PAYLOAD_TOO_LARGE);

    let stream = server.connect_as(None, "h2").await.unwrap();
    let (mut sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let never =
        http_body_util::StreamBody::new(futures::stream::pending::<Result<hyper::body::Frame<Bytes>, hyper::Error>>());
    let (parts, _) = request(Vec::new()).into_parts();
    let slow = sender.send_request(Request::from_parts(parts, never)).await.unwrap();
    assert_eq!(slow.status(), StatusCode::REQUEST_TIMEOUT);
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The last word of a connection, if it was GOAWAY: its error code.
fn goaway(mut received: &[u8]) -> Option<u32> {
    let mut last = None;
    while received.len() >= 9 {
        let length = usize::from(received[0]) << 16 | usize::from(received[1]) << 8 | usize::from(received[2]);
        let payload = received.get(9..9 + length)?;
        last = (received[3] == 7).then(|| u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        received = &received[9 + length..];
    }
    last
}

#[tokio::test]
async fn a_flood_of_resets_ends_its_connection_and_nothing_else() {
    const ENHANCE_YOUR_CALM: u32 = 11;
    let server = start_with(BOTH, LIMITS).await;
    let mut attacker = server.connect_as(None, "h2").await.unwrap();
    let mut flood = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    flood.extend(frame(4, 0, 0, &[]));
    for stream in (1..2000).step_by(2) {
        // POST https /, from HPACK's static table; END_STREAM and END_HEADERS. Then RST_STREAM with CANCEL.
        flood.extend(frame(1, 5, stream, &[0x83, 0x87, 0x84]));
        flood.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    // It may be cut before all is sent.
    let _ = attacker.write_all(&flood).await;
    let _ = attacker.flush().await;
    let mut received = Vec::new();
    let _ = timeout(Duration::from_secs(20), attacker.read_to_end(&mut received)).await.expect("the flood is borne");
    assert_eq!(goaway(&received), Some(ENHANCE_YOUR_CALM));

    let (mut sender, _connection) = connect(&server).await;
    assert_eq!(sender.send_request(request(review("x"))).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn at_the_stop_a_connection_is_told_to_go_and_what_is_in_flight_is_answered() {
    let server = start_with(BOTH, LIMITS).await;
    let (mut sender, connection) = connect(&server).await;
    let mut waiting = sender.clone();
    let waiting = tokio::spawn(async move { waiting.send_request(request(review("wait"))).await });
    sleep(Duration::from_millis(100)).await;
    server.stop.notify_one();
    sleep(Duration::from_millis(100)).await;
    assert!(
        sender.ready().await.is_err() || sender.send_request(request(review("x"))).await.is_err(),
        "not told to go"
    );

    // The farewell: a new connection is served once more.
    let (mut late, _) = connect(&server).await;
    assert_eq!(late.send_request(request(review("x"))).await.unwrap().status(), StatusCode::OK);

    server.jobs.leave.notify_one();
    let (status, answer) = read(waiting.await.unwrap().unwrap()).await;
    assert_eq!((status, &answer["response"]["allowed"]), (StatusCode::OK, &Value::Bool(true)));
    timeout(Duration::from_secs(2), connection)
        .await
        .expect("the connection ends with its last answer")
        .unwrap()
        .unwrap();
    timeout(Duration::from_secs(5), server.task).await.expect("the drain ends").unwrap();
}
