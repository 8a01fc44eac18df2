//! `/healthz` and `/readyz`, in plain HTTP on their own port: they tell nothing but a word.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use ayatori_certs::CertSource;
use ayatori_webhook::{Handler, Limits, Server};
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use jiff::Timestamp;
use tokio::sync::watch;

/// Why the process is not ready; None when it is.
pub(crate) type Readiness = watch::Receiver<Option<&'static str>>;

/// The server of the probes, bound to its address and not yet serving.
pub(crate) async fn bind(
    address: SocketAddr,
    readiness: Readiness,
    certificate: Arc<dyn CertSource>,
) -> Result<Server> {
    let probes = Arc::new(Probes { readiness, certificate });
    Server::of_handler(address, None, Limits::for_a_few(), probes).await.context("cannot serve the health probes")
}

struct Probes {
    readiness: Readiness,
    certificate: Arc<dyn CertSource>,
}

impl Probes {
    /// Code and word for a path.
    fn word(&self, path: &str) -> (StatusCode, String) {
        match path {
            "/healthz" => (StatusCode::OK, "ok".to_owned()),
            "/readyz" => ready(*self.readiness.borrow(), self.certificate.as_ref()),
            _ => (StatusCode::NOT_FOUND, "there are /healthz and /readyz".to_owned()),
        }
    }
}

impl Handler for Probes {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'_, Response<Full<Bytes>>> {
        let (status, word) = self.word(request.uri().path());
        let mut response = Response::new(Full::from(word));
        *response.status_mut() = status;
        async { response }.boxed()
    }
}

/// Ready: started, not stopping, and a certificate is served that clients can accept.
fn ready(waiting_for: Option<&'static str>, certificate: &dyn CertSource) -> (StatusCode, String) {
    match (waiting_for, certificate.healthy(Timestamp::now())) {
        (Some(why), _) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
        (None, Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        (None, Ok(())) => (StatusCode::OK, "ok".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ayatori_certs::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME, SelfManaged};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        sync::oneshot,
        time::timeout,
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    async fn probe(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        format!("{} {body}", head.split(' ').nth(1).unwrap())
    }

    #[tokio::test]
    async fn the_probes_say_what_is_awaited_and_half_a_request_keeps_nothing_from_ending() {
        let (say, readiness) = watch::channel(Some("starting"));
        let source = SelfManaged::default();
        let server = bind("127.0.0.1:0".parse().unwrap(), readiness, Arc::new(source.clone())).await.unwrap();
        let address = server.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));

        assert_eq!(probe(address, "/healthz").await, "200 ok");
        assert_eq!(probe(address, "/readyz").await, "503 starting");
        say.send_replace(None);
        assert!(probe(address, "/readyz").await.starts_with("503 "), "there is no certificate");
        let now = Timestamp::now();
        let authority = Authority::create(now, AUTHORITY_LIFETIME).unwrap();
        source.serve(authority.issue(&["x".to_owned()], now, LEAF_LIFETIME).unwrap());
        assert_eq!(probe(address, "/readyz").await, "200 ok");
        assert!(probe(address, "/metrics").await.starts_with("404 "));

        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET /he").await.unwrap();
        // It is accepted by the time that another one is answered.
        probe(address, "/healthz").await;
        stop.send(()).unwrap();
        timeout(Limits::for_a_few().drain + SOON, serving).await.unwrap().unwrap();
    }
}
