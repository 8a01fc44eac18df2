//! The listener: accepts, bounds, and at the end drains.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ayatori_certs::CertSource;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::connection::{self, Known, Phase};
use crate::endpoint::Endpoint;
use crate::metrics::Connections;
use crate::open_connections::OpenConnections;
use crate::{Limits, Reviews, Transport};

/// After an accept that failed for want of file descriptors or memory: at once would be a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// At the bound, with all connections waiting for answers: until one of them may have its own.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// What answers the requests of a [`Server`].
pub trait Handler: Send + Sync {
    /// The answer. How long it takes is bounded here: the server bounds only what its client does.
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'_, Response<Full<Bytes>>>;
}

/// A server, bound to its address and not yet accepting.
pub struct Server {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    handler: Arc<dyn Handler>,
    limits: Limits,
    connections: Connections,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The crypto provider offers nothing that TLS could use.
    #[error("cannot configure TLS")]
    Tls(#[source] rustls::Error),
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Server {
    /// The admission server: listens on `address`, with the certificate that `source` has at each handshake.
    ///
    /// # Errors
    /// When the address is taken or not ours, or TLS cannot be configured.
    pub async fn bind(
        address: SocketAddr,
        source: &dyn CertSource,
        transport: Transport,
        limits: Limits,
        reviews: Arc<Reviews>,
    ) -> Result<Self, ServerError> {
        let tls = transport.tls(source).map_err(ServerError::Tls)?;
        let connections = reviews.metrics().connections.clone();
        let listener = listen(address).await?;
        let handler = Arc::new(Endpoint::new(reviews, limits));
        Ok(Self { listener, tls: Some(Arc::new(tls)), handler, limits, connections })
    }

    /// Something else behind the same bounds. Without a source it speaks plain HTTP.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub async fn of_handler(
        address: SocketAddr,
        source: Option<&dyn CertSource>,
        limits: Limits,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, ServerError> {
        let tls = source.map(|source| Transport::default().tls(source)).transpose().map_err(ServerError::Tls)?;
        let listener = listen(address).await?;
        Ok(Self { listener, tls: tls.map(Arc::new), handler, limits, connections: Connections::default() })
    }

    /// The address that is listened on, with the port that the system chose where 0 was asked for.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` ends. Then it goes on accepting for [`Limits::farewell`] with `Connection: close` on every
    /// answer, stops accepting, answers what is in flight, and cuts what is left after [`Limits::drain`]. When this
    /// returns no connection is open.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, tls, handler, limits, connections } = self;
        let (phase, phases) = watch::channel(Phase::Open);
        let mut acceptor = Acceptor {
            listener,
            tls: tls.map(TlsAcceptor::from),
            handler,
            limits,
            phases,
            counted: connections,
            connections: OpenConnections::default(),
            waiting: None,
        };
        acceptor.accept_until(shutdown).await;

        phase.send_replace(Phase::Farewell);
        acceptor.accept_until(sleep(limits.farewell)).await;

        phase.send_replace(Phase::Drain);
        let Acceptor { listener, mut connections, .. } = acceptor;
        drop(listener);
        let all_ended = timeout(limits.drain, async { while connections.ended().await.is_some() {} });
        if all_ended.await.is_err() {
            tracing::warn!(connections = connections.len(), "requests in flight were cut at the end of the drain");
        }
        connections.shutdown().await;
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(|source| ServerError::Bind { address, source })
}

/// The accept loop and the connections that came of it.
struct Acceptor {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<dyn Handler>,
    limits: Limits,
    phases: watch::Receiver<Phase>,
    counted: Connections,
    connections: OpenConnections,
    /// Accepted, and without a place: all others wait for answers. Those after it wait in the kernel's queue.
    waiting: Option<TcpStream>,
}

impl Acceptor {
    async fn accept_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            if let Some(socket) = self.waiting.take_if(|_| self.connections.make_room(self.limits.connections)) {
                self.spawn(socket);
            }
            tokio::select! {
                biased;
                () = &mut end => return,
                Some(()) = self.connections.ended() => {}
                accepted = self.listener.accept(), if self.waiting.is_none() => match accepted {
                    Ok((socket, _)) => self.waiting = Some(socket),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = sleep(FULL_PAUSE), if self.waiting.is_some() => {}
            }
        }
    }

    fn spawn(&mut self, socket: TcpStream) {
        let (tls, handler) = (self.tls.clone(), Arc::clone(&self.handler));
        let (limits, phase, counted) = (self.limits, self.phases.clone(), self.counted.clone());
        self.connections
            .open(|activity| connection::serve(socket, tls, handler, limits, Known { phase, activity }, counted));
    }
}
