//! HTTP/2 with bounds: how many streams, how much memory, how much nonsense.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper_util::rt::TokioTimer;
use tokio::sync::mpsc;

/// Requests at once on one connection.
const STREAMS: u32 = 16;
/// Bytes of a body that may arrive before they are asked for. One connection holds 16 × 16 KiB, 512 connections 128 MiB
/// at most.
const STREAM_WINDOW: u32 = 16 * 1024;
/// All streams together: not less, or a body that nobody reads yet would keep those from arriving that somebody waits for.
const CONNECTION_WINDOW: u32 = STREAMS * STREAM_WINDOW;
/// Bytes of answers that wait for a slow reader; the answer to a review is a few KiB.
const SEND_BUFFER: usize = 64 * 1024;
/// Bytes of one request's head, decompressed. The API server sends a few hundred.
const HEAD: u32 = 16 * 1024;
/// Streams that were reset before they were taken up: more, and the connection is ended (the rapid reset attack,
/// CVE-2023-44487).
const EARLY_RESETS: usize = 20;
/// Resets that a client's faults have led us to; more, and the connection is ended.
const OUR_RESETS: usize = 128;
/// Between two pings. A peer that is gone without a word is noticed by then.
const PING: Duration = Duration::from_secs(30);
/// For the answer to a ping.
const PONG: Duration = Duration::from_secs(10);

/// What runs the streams of one connection: the connection's own task, so that they end with it.
#[derive(Clone)]
pub(crate) struct Streams(mpsc::UnboundedSender<Stream>);

/// The work of one stream.
pub(crate) type Stream = BoxFuture<'static, ()>;

impl Streams {
    /// The executor, and where its streams come out. Unbounded, for [`STREAMS`] bounds it.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Stream>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        // Without a receiver the connection has ended, and the stream with it.
        let _ = self.0.send(stream.boxed());
    }
}

/// A server of HTTP/2 connections whose streams run in `streams`.
pub(crate) fn builder(streams: Streams) -> Builder<Streams> {
    let mut builder = Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEAD)
        .max_pending_accept_reset_streams(EARLY_RESETS)
        .max_local_error_reset_streams(OUR_RESETS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}
