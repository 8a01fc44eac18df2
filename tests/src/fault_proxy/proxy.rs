//! The server, and the client behind it.

use std::{
    convert::Infallible,
    fs,
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;
use futures::future::join_all;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::{TokioExecutor, TokioIo},
};
use jiff::Timestamp;
use kube::{client::ConfigExt, config::Kubeconfig};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::sleep,
};

use super::{Asked, Fault, Injected, Relayed, relayed::Log};
use crate::{Cluster, client, enter};

/// More than any request of ours: an object has at most 1.5 MiB.
const BODY: usize = 4 << 20;

/// After an accept that failed.
const PAUSE: Duration = Duration::from_millis(100);

type Body = BoxBody<Bytes, hyper::Error>;

/// A proxy that runs in a thread of its own until it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    shared: Arc<Shared>,
    kubeconfigs: Vec<PathBuf>,
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    injected: Mutex<Vec<Injected>>,
    log: Mutex<Log>,
}

impl FaultProxy {
    /// A proxy inside of a cluster's network, with this many doors, for programs that have this kubeconfig.
    pub async fn start(cluster: &Cluster, kubeconfig: &Path, doors: usize) -> anyhow::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (stop, stopped) = oneshot::channel();
        let (started, ports) = oneshot::channel();
        let upstream = client::config(kubeconfig).await?;
        let (connector, server) = (upstream.rustls_https_connector()?, upstream.cluster_url);
        let (folder, state) = (cluster.folder().clone(), Arc::clone(&shared));
        let serve = move || {
            let listen = async {
                // Of this thread alone: the sockets that it makes are the cluster's.
                enter::enter_network(&folder)?;
                let mut listeners = vec![];
                for _ in 0..doors {
                    listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?);
                }
                let ports = listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>()?;
                anyhow::Ok((listeners, ports, Client::builder(TokioExecutor::new()).build(connector)))
            };
            let run = async {
                match listen.await {
                    Ok((listeners, ports, client)) => {
                        let _ = started.send(Ok(ports));
                        tokio::select! {
                            () = state.serve(listeners, client, server) => {}
                            _ = stopped => {}
                        }
                    }
                    Err(error) => drop(started.send(Err(error))),
                }
            };
            if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
                runtime.block_on(run);
            }
        };
        let thread = thread::Builder::new().name("fault proxy".to_owned()).spawn(serve)?;
        let ports = ports.await.context("the proxy's thread has ended")??;
        let kubeconfigs =
            ports.iter().map(|port| through(kubeconfig, cluster.dir(), *port)).collect::<Result<_, _>>()?;
        Ok(Self { shared, kubeconfigs, stop: Some(stop), thread: Some(thread) })
    }

    /// The kubeconfig of the program behind a door; the first is 0.
    #[must_use]
    pub fn kubeconfig(&self, door: usize) -> &Path {
        &self.kubeconfigs[door]
    }

    /// Disturbs the `nth` request of a class, the first is 1; once.
    pub fn inject(&self, fault: Fault, nth: usize, class: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Injected {
        let injected = Injected::new(fault, nth, class);
        locked(&self.shared.injected).push(injected.clone());
        injected
    }

    /// The requests so far, in the order in which they came.
    #[must_use]
    pub fn relayed(&self) -> Vec<Relayed> {
        locked(&self.shared.log).all()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kubeconfig with another way to the server.
fn through(kubeconfig: &Path, folder: &Path, door: SocketAddr) -> anyhow::Result<PathBuf> {
    let mut other = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    for cluster in other.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("http://{door}"));
        cluster.certificate_authority_data = None;
    }
    let path = folder.join(format!("fault-proxy-{}.kubeconfig", door.port()));
    fs::write(&path, serde_json::to_string(&other)?)?;
    Ok(path)
}

/// What ends a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
struct Cut;

impl Shared {
    async fn serve<C>(self: Arc<Self>, doors: Vec<TcpListener>, client: Client<C, Full<Bytes>>, server: Uri)
    where
        C: Connect + Clone + Send + Sync + 'static,
    {
        let accept = |(door, listener): (usize, TcpListener)| {
            let to = Upstream { door, client: client.clone(), server: server.clone() };
            let shared = Arc::clone(&self);
            async move {
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => drop(tokio::spawn(Arc::clone(&shared).connection(stream, to.clone()))),
                        // For want of file descriptors: trying again at once would only burn the processor.
                        Err(_) => sleep(PAUSE).await,
                    }
                }
            }
        };
        join_all(doors.into_iter().enumerate().map(accept)).await;
    }

    async fn connection<C>(self: Arc<Self>, stream: TcpStream, to: Upstream<C>)
    where
        C: Connect + Clone + Send + Sync + 'static,
    {
        let _ = stream.set_nodelay(true);
        let service = service_fn(|request| {
            // In a task of its own: a client that goes does not take back what it has sent.
            let answer = tokio::spawn(Arc::clone(&self).answer(request, to.clone()));
            async { answer.await.unwrap_or(Err(Cut)) }
        });
        // Its error is a client that went, or our own cut.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer<C>(self: Arc<Self>, request: Request<Incoming>, to: Upstream<C>) -> Result<Response<Body>, Cut>
    where
        C: Connect + Clone + Send + Sync + 'static,
    {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, BODY).collect().await.map_err(|_| Cut)?.to_bytes();
        let asked = Asked::of(&head.method, head.uri.path(), head.uri.query().unwrap_or_default(), &body);
        let chosen = self.choose(&asked);
        let entry = Relayed { door: to.door, at: Timestamp::now(), asked, answered: None };
        let number = locked(&self.log).push(entry);
        let forward = async || {
            let request = to.request(Request::from_parts(head, Full::new(body)))?;
            let answer = to.client.request(request).await.map_err(|_| Cut)?;
            locked(&self.log).answered(number, answer.status());
            Ok(answer)
        };
        let Some(injected) = chosen else { return Ok(forward().await?.map(BodyExt::boxed)) };
        match injected.fault() {
            fault @ (Fault::Cut | Fault::Refuse(_)) => {
                injected.strike(to.door);
                instead(fault).await
            }
            Fault::Hold => {
                injected.strike(to.door);
                injected.is_released().await;
                let answer = whole(forward().await?).await?;
                injected.land(answer.status());
                Ok(answer)
            }
            fault @ (Fault::CutAnswer | Fault::NoAnswer | Fault::Deny(_)) => {
                let answer = forward().await.inspect_err(|_| injected.spare())?;
                if !answer.status().is_success() {
                    injected.spare();
                    return Ok(answer.map(BodyExt::boxed));
                }
                // All of the answer is there: it is committed.
                whole(answer).await?;
                injected.strike(to.door);
                instead(fault).await
            }
        }
    }

    fn choose(&self, asked: &Asked) -> Option<Injected> {
        let mut all = locked(&self.injected);
        all.retain(|injected| !injected.is_done());
        all.iter().find(|injected| injected.chooses(asked)).cloned()
    }
}

/// What a program gets instead of the answer.
async fn instead(fault: Fault) -> Result<Response<Body>, Cut> {
    match fault {
        Fault::Refuse(code) | Fault::Deny(code) => status(code),
        Fault::NoAnswer => pending().await,
        Fault::Cut | Fault::CutAnswer | Fault::Hold => Err(Cut),
    }
}

/// An answer as the API server words it.
fn status(code: StatusCode) -> Result<Response<Body>, Cut> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code.as_u16(),
        "reason": reason(code), "message": format!("the fault proxy answers {code}"),
    });
    let answer = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    // As the API server does when it has too much to do.
    let answer = if code == StatusCode::TOO_MANY_REQUESTS { answer.header(header::RETRY_AFTER, "1") } else { answer };
    answer.body(full(body.to_string().into())).map_err(|_| Cut)
}

fn reason(code: StatusCode) -> Value {
    match code.as_u16() {
        409 => "Conflict".into(),
        429 => "TooManyRequests".into(),
        500 => "InternalError".into(),
        503 => "ServiceUnavailable".into(),
        504 => "Timeout".into(),
        _ => "".into(),
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

/// An answer once all of it is there.
async fn whole(answer: Response<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    Ok(Response::from_parts(head, full(body)))
}

/// The way from a door to the API server.
#[derive(Clone)]
struct Upstream<C> {
    door: usize,
    client: Client<C, Full<Bytes>>,
    server: Uri,
}

impl<C> Upstream<C> {
    /// The request as it goes on: to the server, without what concerns this one connection only.
    fn request(&self, mut request: Request<Full<Bytes>>) -> Result<Request<Full<Bytes>>, Cut> {
        let mut parts = self.server.clone().into_parts();
        parts.path_and_query = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Cut)?;
        for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING] {
            request.headers_mut().remove(name);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
