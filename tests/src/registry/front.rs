//! What stands before a registry that fails for a while: it answers in the registry's place until it is told not to.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use super::{Registry, http_client};
use crate::Network;

/// What a front says to every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// What the registry says.
    Registry,
    /// This, and the registry does not hear of it.
    Status(StatusCode),
    /// Nothing at all, until another answer is set.
    Silence,
}

/// A server before a registry; dropping it ends it.
#[derive(Debug)]
pub struct Front {
    answer: watch::Sender<Answer>,
    kept: Arc<AtomicU32>,
    server: AbortHandle,
}

impl Front {
    /// Starts one at an address of the cluster's network.
    ///
    /// # Errors
    /// The address is taken.
    pub fn start(registry: &Registry, address: SocketAddr, answer: Answer) -> anyhow::Result<Self> {
        let (answer, answers) = watch::channel(answer);
        let kept = Arc::new(AtomicU32::new(0));
        let listener = registry.network.listen(address)?;
        let door =
            Door { network: registry.network.clone(), registry: registry.address, answers, kept: Arc::clone(&kept) };
        let server = tokio::spawn(serve(listener, door)).abort_handle();
        Ok(Self { answer, kept, server })
    }

    /// Answers like that from now on, also to those who wait in silence.
    pub fn answer(&self, answer: Answer) {
        self.answer.send_replace(answer);
    }

    /// How many requests it kept from the registry.
    #[must_use]
    pub fn kept(&self) -> u32 {
        self.kept.load(Ordering::Relaxed)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// What each connection needs.
#[derive(Clone)]
struct Door {
    network: Network,
    registry: SocketAddr,
    answers: watch::Receiver<Answer>,
    kept: Arc<AtomicU32>,
}

/// The connections end with this.
async fn serve(listener: TcpListener, door: Door) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let door = door.clone();
        let service = service_fn(move |request| {
            let door = door.clone();
            async move { Ok::<_, Infallible>(door.pass(request).await) }
        });
        // A client that goes away is no error of ours.
        connections
            .spawn(async move { drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await) });
    }
}

impl Door {
    async fn pass(mut self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if *self.answers.borrow() != Answer::Registry {
            self.kept.fetch_add(1, Ordering::Relaxed);
        }
        // The sender is gone only when the front is, and this with it.
        let answer = self.answers.wait_for(|answer| *answer != Answer::Silence).await.map(|answer| *answer);
        match answer {
            Ok(Answer::Status(status)) => empty(status),
            _ => self.forward(request).await.unwrap_or_else(|_| empty(StatusCode::BAD_GATEWAY)),
        }
    }

    async fn forward(&self, request: Request<Incoming>) -> anyhow::Result<Response<Full<Bytes>>> {
        let (head, body) = request.into_parts();
        let request = Request::from_parts(head, body.collect().await?.to_bytes());
        Ok(http_client::send(&self.network, self.registry, request).await?.map(Full::new))
    }
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
