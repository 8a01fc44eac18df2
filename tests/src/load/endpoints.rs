//! Which processes are ready, as the clients of a Service know it: some time after it is so.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{interval, sleep, timeout},
};

use crate::product::process::Ports;

/// Between two looks at one process.
const LOOK: Duration = Duration::from_millis(100);

/// The endpoints of a Service.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<Endpoint>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Endpoint {
    ports: Ports,
    ready: Arc<AtomicBool>,
}

impl Endpoints {
    /// Watches the processes from now on.
    pub(super) fn watch(targets: &[Ports], lag: Duration) -> Self {
        let endpoints = Self::new(targets, false);
        for endpoint in &endpoints.all {
            tokio::spawn(follow(endpoint.ports, lag, Arc::clone(&endpoint.ready)));
        }
        endpoints
    }

    /// Takes them to be ready.
    pub(super) fn always(targets: &[Ports]) -> Self {
        Self::new(targets, true)
    }

    fn new(targets: &[Ports], ready: bool) -> Self {
        let endpoint = |&ports: &Ports| Endpoint { ports, ready: Arc::new(AtomicBool::new(ready)) };
        Self { all: targets.iter().map(endpoint).collect(), next: AtomicUsize::new(0) }
    }

    /// One of the ready ones, in turn.
    pub(super) fn choose(&self) -> Option<Ports> {
        let ready = self.ready();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        (!ready.is_empty()).then(|| ready[turn % ready.len()])
    }

    /// Whether all are ready.
    pub(super) fn complete(&self) -> bool {
        self.ready().len() == self.all.len()
    }

    fn ready(&self) -> Vec<Ports> {
        self.all.iter().filter(|endpoint| endpoint.ready.load(Ordering::Relaxed)).map(|one| one.ports).collect()
    }
}

async fn follow(ports: Ports, lag: Duration, ready: Arc<AtomicBool>) {
    let mut looks = interval(LOOK);
    loop {
        looks.tick().await;
        // One probe without an answer is no news, as for the kubelet, which waits for the third.
        let Ok(seen) = timeout(LOOK * 10, is_ready(ports.probes)).await else { continue };
        let ready = Arc::clone(&ready);
        tokio::spawn(async move {
            sleep(lag).await;
            ready.store(seen, Ordering::Relaxed);
        });
    }
}

async fn is_ready(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200 "))
    };
    ask.await.unwrap_or(false)
}
