//! One connection from its accept to its end. Whatever the client does or does not do, it ends.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::{http1, http2 as hyper_http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::http2::{self, Stream, Streams};
use crate::metrics::Connections;
use crate::open_connections::Activity;
use crate::transport::HTTP_2;
use crate::{Handler, Limits};

/// Bytes that hyper buffers for one connection; a request's head must fit. 512 connections hold 32 MiB at most.
const BUFFER: usize = 64 * 1024;

/// Where the server is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serving.
    Open,
    /// Serving, and telling clients to come back elsewhere.
    Farewell,
    /// Ending what is in flight.
    Drain,
}

/// What a connection and its server know of each other.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Where the server is.
    pub(crate) phase: watch::Receiver<Phase>,
    /// Whether the connection has something to answer.
    pub(crate) activity: Arc<Activity>,
}

/// Serves one connection until it ends by itself, is overdue, or the server drains and its last answer is sent.
pub(crate) async fn serve(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<dyn Handler>,
    limits: Limits,
    known: Known,
    counted: Connections,
) {
    let _open = counted.open();
    // Answers are one small write: waiting to join it with a next one only delays it.
    let _ = socket.set_nodelay(true);
    let Some(tls) = tls else { return requests(socket, false, handler, limits, known).await };
    let stream = match timeout(limits.handshake, tls.accept(socket)).await {
        Ok(Ok(stream)) => stream,
        failed => {
            counted.handshake_failed();
            return match failed {
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                _ => tracing::debug!("TLS handshake did not end in time"),
            };
        }
    };
    let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    requests(stream, speaks_http2, handler, limits, known).await;
}

/// The requests of a connection, whatever carries them.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    speaks_http2: bool,
    handler: Arc<dyn Handler>,
    limits: Limits,
    known: Known,
) {
    let io = TokioIo::new(stream);

    // The time by which something must happen. A request puts it off to where even the longest one has been answered
    // and the connection has been idle as long as it may, so one watch covers a silent client, a slow head, an idle
    // connection and a client that never reads its answer.
    let (due, overdue) = watch::channel(Instant::now() + limits.first_request);
    let phase = known.phase.clone();
    let service = service_fn(move |request| {
        due.send_replace(Instant::now() + limits.longest_request + limits.idle);
        answer(Arc::clone(&handler), known.clone(), request)
    });
    let (executor, streams) = Streams::new();
    if speaks_http2 {
        let connection = http2::builder(executor).serve_connection(io, service);
        // HTTP/2 has a word of its own for "come back elsewhere" (GOAWAY), which spares what was sent meanwhile.
        let leave = |connection: Pin<&mut hyper_http2::Connection<_, _, _>>| connection.graceful_shutdown();
        until_its_end(connection, (Phase::Farewell, leave), phase, overdue, streams).await;
    } else {
        let connection = http1::Builder::new().max_buf_size(BUFFER).serve_connection(io, service);
        let leave = |connection: Pin<&mut http1::Connection<_, _>>| connection.graceful_shutdown();
        until_its_end(connection, (Phase::Drain, leave), phase, overdue, streams).await;
    }
}

/// One answer, which in HTTP/1.1 also says whether the connection goes on.
async fn answer(
    handler: Arc<dyn Handler>,
    known: Known,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let _in_flight = known.activity.request();
    let version = request.version();
    let mut response = handler.answer(request).await;
    if version > Version::HTTP_11 {
        // There it is forbidden.
        response.headers_mut().remove(CONNECTION);
    } else if *known.phase.borrow() != Phase::Open {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Drives a connection and its streams. `leave` asks it to end after what is in flight, from that phase on.
async fn until_its_end<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    (at, leave): (Phase, fn(Pin<&mut C>)),
    mut phase: watch::Receiver<Phase>,
    overdue: watch::Receiver<Instant>,
    mut started: mpsc::UnboundedReceiver<Stream>,
) {
    let mut connection = pin!(connection);
    let mut cut = pin!(passed(overdue));
    let mut leaving = pin!(async {
        // An error means that the server itself is gone, which is a reason to leave as well.
        let _ = phase.wait_for(|phase| *phase >= at).await;
    });
    let mut left = false;
    let mut streams = FuturesUnordered::new();
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = &mut cut => return tracing::debug!("connection cut: nothing came in time"),
            () = &mut leaving, if !left => {
                leave(connection.as_mut());
                left = true;
            }
            Some(stream) = started.recv() => streams.push(stream),
            Some(()) = streams.next() => {}
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
