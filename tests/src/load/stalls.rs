//! Clients that begin something and do not go on.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_webhook::configuration::VALIDATE_JOBS;
use futures::future::{join_all, try_join_all};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

use super::{
    connection::tls,
    plan::{Cut, Stage, Stalls},
    say,
    trust::Trust,
};

trait Stream: AsyncRead + Unpin + Send {}
impl<T: AsyncRead + Unpin + Send> Stream for T {}

/// One that does not go on.
struct Stalled {
    stage: Stage,
    since: Instant,
    stream: Box<dyn Stream>,
}

/// Opens them all, says so, and waits for their ends or `end`.
pub(super) async fn run(plan: Stalls, end: impl Future<Output = ()>) -> anyhow::Result<()> {
    let config = Trust::of(&plan.trust).await?.at(VALIDATE_JOBS).tls;
    let port = plan.target.webhook;
    let open = |stage| {
        let config = &config;
        try_join_all((0..plan.each).map(move |_| stall(stage, port, Arc::clone(config))))
    };
    // Those that are borne the longest first, so that all stall together for as long as can be.
    let mut all = Vec::new();
    for stage in [Stage::Head, Stage::Body, Stage::Handshake] {
        all.extend(open(stage).await?);
    }
    say(&"open")?;
    tokio::select! {
        cuts = join_all(all.into_iter().map(|stalled| stalled.cut(plan.bound))) => say(&cuts),
        () = end => Ok(()),
    }
}

async fn stall(stage: Stage, port: u16, config: Arc<ClientConfig>) -> anyhow::Result<Stalled> {
    if stage == Stage::Handshake {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        return Ok(Stalled { stage, since: Instant::now(), stream: Box::new(stream) });
    }
    let mut stream = tls(port, config).await?;
    let mut sent = format!("POST {VALIDATE_JOBS}?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    if stage == Stage::Body {
        sent += "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"apiVersion\":";
    }
    stream.write_all(sent.as_bytes()).await?;
    stream.flush().await?;
    Ok(Stalled { stage, since: Instant::now(), stream: Box::new(stream) })
}

impl Stalled {
    async fn cut(mut self, bound: Duration) -> Cut {
        let mut said = Vec::new();
        // A reset and a close without TLS farewell are ends as well.
        let ended = timeout(bound, self.stream.read_to_end(&mut said)).await;
        let said = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
        Cut { stage: self.stage, after: ended.is_ok().then(|| self.since.elapsed()), said }
    }
}
