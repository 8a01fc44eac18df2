//! Each fault as a client and the server behind see it, on loopback.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, channel::mpsc};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;

use super::*;

const BOUND: Duration = Duration::from_secs(10);

/// A server that counts its writes, and whose watches send what the test sends.
#[derive(Default)]
struct Server {
    writes: AtomicUsize,
    refuses: AtomicUsize,
    events: Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>,
}

impl Server {
    async fn start(self: &Arc<Self>) -> Uri {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = Arc::clone(&server);
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = server.answer(&request);
                    async { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        format!("http://{address}").parse().unwrap()
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        assert_eq!(request.headers()["authorization"], "Bearer token");
        if request.uri().query() == Some("watch=true") {
            let events = self.events.lock().unwrap().take().unwrap();
            return Response::new(BodyExt::boxed(StreamBody::new(events.map(|event| Ok(Frame::data(event))))));
        }
        let refused = self.refuses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if refused {
            return Response::builder().status(StatusCode::CONFLICT).body(full(Bytes::new())).unwrap();
        }
        let before = self.writes.fetch_add(1, Ordering::SeqCst);
        Response::new(full(format!("write {}", before + 1).into()))
    }
}

/// A proxy before a server; the first door's address.
async fn proxy(server: &Arc<Server>) -> (Arc<Shared>, SocketAddr) {
    let shared = Arc::<Shared>::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client: Client<HttpConnector, _> = Client::builder(TokioExecutor::new()).build_http();
    tokio::spawn(Arc::clone(&shared).serve(vec![listener], client, server.start().await));
    (shared, address)
}

fn inject(shared: &Shared, fault: Fault) -> Injected {
    let injected = Injected::new(fault, 1, Asked::is_write);
    locked(&shared.injected).push(injected.clone());
    injected
}

/// What a client gets: the code and the body, or an error.
async fn patch(address: SocketAddr) -> Result<(u16, String), hyper_util::client::legacy::Error> {
    let client: Client<HttpConnector, _> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::patch(format!("http://{address}/api/v1/namespaces/ns/pods/p"));
    let request = request.header("authorization", "Bearer token").body(Full::new(Bytes::from("{}"))).unwrap();
    let answer = client.request(request).await?;
    let code = answer.status().as_u16();
    Ok((code, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()))
}

#[tokio::test]
async fn what_is_cut_before_is_not_carried_out_and_what_is_cut_after_is() {
    let server = Arc::<Server>::default();
    let (shared, address) = proxy(&server).await;
    for (fault, writes) in [(Fault::Cut, 0), (Fault::CutAnswer, 1)] {
        let injected = inject(&shared, fault);
        assert!(patch(address).await.is_err(), "{fault}");
        assert_eq!(injected.struck(BOUND).await.unwrap(), 0);
        assert_eq!(server.writes.load(Ordering::SeqCst), writes, "{fault}");
    }
    // Once.
    assert_eq!(patch(address).await.unwrap(), (200, "write 2".to_owned()));
    let answers: Vec<_> = locked(&shared.log).all().iter().map(|relayed| relayed.answered).collect();
    assert_eq!(answers, [None, Some(StatusCode::OK), Some(StatusCode::OK)]);
}

#[tokio::test]
async fn a_refusal_is_worded_as_the_api_server_does_and_a_denial_hides_a_commit() {
    let server = Arc::<Server>::default();
    let (shared, address) = proxy(&server).await;
    inject(&shared, Fault::Refuse(StatusCode::TOO_MANY_REQUESTS));
    let (code, body) = patch(address).await.unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &body["reason"], &body["code"]), (429, &json!("TooManyRequests"), &json!(429)));
    assert_eq!(server.writes.load(Ordering::SeqCst), 0);
    inject(&shared, Fault::Deny(StatusCode::GATEWAY_TIMEOUT));
    assert_eq!(patch(address).await.unwrap().0, 504);
    assert_eq!(server.writes.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_that_fails_by_itself_is_spared_and_the_next_one_is_struck() {
    let server = Arc::new(Server { refuses: AtomicUsize::new(1), ..Server::default() });
    let (shared, address) = proxy(&server).await;
    let injected = inject(&shared, Fault::CutAnswer);
    assert_eq!(patch(address).await.unwrap().0, 409);
    assert!(!injected.is_done());
    assert!(patch(address).await.is_err());
    assert!(injected.is_done());
}

#[tokio::test]
async fn a_program_that_gets_no_answer_waits_for_as_long_as_it_lives() {
    let server = Arc::<Server>::default();
    let (shared, address) = proxy(&server).await;
    let injected = inject(&shared, Fault::NoAnswer);
    let waiting = tokio::spawn(patch(address));
    injected.struck(BOUND).await.unwrap();
    assert_eq!(server.writes.load(Ordering::SeqCst), 1);
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn what_is_held_is_carried_out_late_whether_or_not_somebody_waits() {
    let server = Arc::<Server>::default();
    let (shared, address) = proxy(&server).await;
    let injected = inject(&shared, Fault::Hold);
    assert!(timeout(Duration::from_millis(100), patch(address)).await.is_err(), "it was answered");
    injected.struck(BOUND).await.unwrap();
    assert_eq!(server.writes.load(Ordering::SeqCst), 0);
    assert_eq!(patch(address).await.unwrap().1, "write 1", "others go by");
    assert_eq!(injected.release(BOUND).await.unwrap(), StatusCode::OK);
    assert_eq!(server.writes.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_watch_streams_through() {
    let server = Arc::<Server>::default();
    let (events, receiver) = mpsc::unbounded();
    *server.events.lock().unwrap() = Some(receiver);
    let (_shared, address) = proxy(&server).await;
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::get(format!("http://{address}/api/v1/pods?watch=true"));
    let request = request.header("authorization", "Bearer token").body(Full::default()).unwrap();
    let mut body = client.request(request).await.unwrap().into_body();
    // Each event arrives before the next is sent.
    for event in ["one", "two"] {
        events.unbounded_send(Bytes::from(event)).unwrap();
        let frame = timeout(BOUND, body.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event);
    }
}
