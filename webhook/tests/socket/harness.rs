//! A server on loopback, a client whose every byte the test chooses, and a watch on when it is cut.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ayatori_certs::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, SelfManaged};
use ayatori_webhook::{Answer, Limits, Request, Review, Reviews, Server, Transport};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Short enough for a test, and far enough apart to tell them from each other.
pub(crate) const LIMITS: Limits = Limits {
    connections: 8,
    requests: 4,
    body_bytes: 64 * 1024,
    bodies_bytes: 256 * 1024,
    handshake: Duration::from_millis(300),
    first_request: Duration::from_millis(600),
    idle: Duration::from_millis(1500),
    body: Duration::from_millis(400),
    request: Duration::from_secs(5),
    longest_request: Duration::from_millis(1500),
    farewell: Duration::from_millis(300),
    drain: Duration::from_secs(2),
};

/// Allows, panics at an object named `panic`, and waits for leave at one named `wait`.
#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) leave: Notify,
}

impl Review for Jobs {
    fn resource(&self) -> [&str; 3] {
        ["execution.ayatori.ddupan.top", "v1alpha1", "jobs"]
    }

    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        async move {
            match request.name.as_str() {
                "panic" => panic!("as asked"),
                "wait" => self.leave.notified().await,
                _ => {}
            }
            Answer::allowed()
        }
        .boxed()
    }
}

/// A running server and what is needed to talk to it.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) source: SelfManaged,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) stop: Arc<Notify>,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) async fn start(limits: Limits) -> Running {
    start_with(Transport::default(), limits).await
}

pub(crate) async fn start_with(transport: Transport, limits: Limits) -> Running {
    let authority = Authority::create(Timestamp::now(), AUTHORITY_LIFETIME).unwrap();
    let (source, jobs, stop) = (SelfManaged::default(), Arc::new(Jobs::default()), Arc::new(Notify::new()));
    let reviews = Arc::new(Reviews::default().with("/validate-jobs", Arc::<Jobs>::clone(&jobs)));
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(address, &source, transport, limits, Arc::clone(&reviews)).await.unwrap();
    let address = server.local_addr().unwrap();
    let stopped = Arc::clone(&stop);
    let task = tokio::spawn(server.serve(async move { stopped.notified().await }));
    let running = Running { address, authority, source, jobs, reviews, stop, task };
    running.issue();
    running
}

pub(crate) type Client = TlsStream<TcpStream>;

impl Running {
    pub(crate) fn issue(&self) {
        let leaf = self.authority.issue(&["127.0.0.1".to_owned()], Timestamp::now(), LEAF_LIFETIME).unwrap();
        self.source.serve(leaf);
    }

    pub(crate) async fn connect(&self) -> Client {
        self.connect_as(None, "http/1.1").await.unwrap()
    }

    /// With a certificate of the client's own, and what it speaks.
    pub(crate) async fn connect_as(
        &self,
        client: Option<&CertifiedKey<KeyPair>>,
        protocol: &str,
    ) -> io::Result<Client> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.authority.certificate().der())).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some(CertifiedKey { cert, signing_key }) => {
                let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
                config.with_client_auth_cert(vec![cert.der().clone()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }
}

pub(crate) fn review(name: &str) -> Vec<u8> {
    serde_json::to_vec(&json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "name": name, "namespace": "a",
            "kind": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "kind": "Job"},
            "resource": {"group": "execution.ayatori.ddupan.top", "version": "v1alpha1", "resource": "jobs"},
            "object": {"metadata": {"name": name}}
        }
    }))
    .unwrap()
}

pub(crate) fn head(content_type: &str, length: usize) -> String {
    format!(
        "POST /validate-jobs?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    )
}

pub(crate) async fn send(client: &mut Client, body: &[u8]) {
    client.write_all(head("application/json", body.len()).as_bytes()).await.unwrap();
    client.write_all(body).await.unwrap();
    client.flush().await.unwrap();
}

/// One whole response.
pub(crate) struct Response {
    head: String,
    body: Vec<u8>,
}

impl Response {
    pub(crate) async fn read(client: &mut Client) -> Self {
        let mut bytes = Vec::new();
        let end = loop {
            match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => assert_ne!(client.read_buf(&mut bytes).await.unwrap(), 0, "closed before the answer"),
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.parse().unwrap();
        while bytes.len() < end + length {
            assert_ne!(client.read_buf(&mut bytes).await.unwrap(), 0, "closed within the answer");
        }
        Self { head, body: bytes[end..].to_vec() }
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn closes(&self) -> bool {
        self.head.contains("connection: close")
    }

    pub(crate) fn review(&self) -> Value {
        serde_json::from_slice::<Value>(&self.body).unwrap()["response"].take()
    }
}

/// How long the server takes to end a connection on which nothing more is sent.
pub(crate) async fn cut_after(stream: &mut (impl AsyncReadExt + Unpin)) -> Duration {
    let begin = Instant::now();
    let mut rest = Vec::new();
    // A reset and a close without TLS farewell are ends as well.
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.expect("the connection is never cut");
    begin.elapsed()
}

pub(crate) fn about(expected: Duration, seen: Duration) {
    assert!(seen + Duration::from_millis(50) >= expected, "cut too early: {seen:?}, expected {expected:?}");
    assert!(seen < expected + Duration::from_millis(900), "cut too late: {seen:?}, expected {expected:?}");
}
