//! One connection from its accept to its end. Whatever the client does or does not do, it ends.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use http::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::Limits;
use crate::endpoint::Endpoint;

/// Bytes that hyper buffers for one connection; a request's head must fit. 512 connections hold 32 MiB at most.
const BUFFER: usize = 64 * 1024;

/// Where the server is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Serving.
    Open,
    /// Serving, and telling clients to come back elsewhere.
    Farewell,
    /// Ending what is in flight.
    Drain,
}

/// Serves one connection until it ends by itself, is overdue, or the server drains and its last answer is sent.
pub(crate) async fn serve(
    socket: TcpStream,
    tls: TlsAcceptor,
    endpoint: Arc<Endpoint>,
    limits: Limits,
    mut phase: watch::Receiver<Phase>,
) {
    // Answers are one small write: waiting to join it with a next one only delays it.
    let _ = socket.set_nodelay(true);
    let stream = match timeout(limits.handshake, tls.accept(socket)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake did not end in time"),
    };

    // The time by which something must happen. A request puts it off to where even the longest one has been answered
    // and the connection has been idle as long as it may, so one watch covers a silent client, a slow head, an idle
    // connection and a client that never reads its answer.
    let (due, overdue) = watch::channel(Instant::now() + limits.first_request);
    let now = phase.clone();
    let service = service_fn(|request| {
        due.send_replace(Instant::now() + limits.longest_request + limits.idle);
        let (endpoint, now) = (&endpoint, &now);
        async move {
            let mut response = endpoint.answer(request).await;
            if *now.borrow() != Phase::Open {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new().max_buf_size(BUFFER).serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut cut = pin!(passed(overdue));
    let mut drain = pin!(async {
        // An error means that the server itself is gone, which is a reason to drain as well.
        let _ = phase.wait_for(|phase| *phase == Phase::Drain).await;
    });
    let mut draining = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = &mut cut => return tracing::debug!("connection cut: nothing came in time"),
            () = &mut drain, if !draining => {
                connection.as_mut().graceful_shutdown();
                draining = true;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

/// Ends when the time in `due` has passed without being put off.
async fn passed(due: watch::Receiver<Instant>) {
    loop {
        let at = *due.borrow();
        if at <= Instant::now() {
            return;
        }
        sleep_until(at).await;
    }
}
