//! `--metrics-secure=false`: a real connection without TLS, and anybody.

use std::sync::Arc;

use ayatori_webhook::{Limits, Server};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

use crate::metrics::endpoint::Endpoint;

#[tokio::test]
async fn without_security_anybody_reads_the_page_by_http_until_the_stop() {
    let mut registry = Registry::with_prefix("ayatori");
    let counter = Counter::<u64>::default();
    counter.inc();
    registry.register("things", "Things that happened", counter);
    let endpoint = Arc::new(Endpoint::new(registry, None));
    let server = Server::of_handler("127.0.0.1:0".parse().unwrap(), None, Limits::for_a_few(), endpoint).await.unwrap();
    let address = server.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(server.serve(async { drop(stopped.await) }));

    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
    assert!(answer.ends_with("# TYPE ayatori_things_total counter\nayatori_things_total 1\n"), "{answer}");

    stop.send(()).unwrap();
    task.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
}
