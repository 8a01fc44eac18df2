//! One request to a server inside of the cluster's network.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::Network;

/// A registry on the same machine answers within milliseconds.
const ANSWER: Duration = Duration::from_secs(30);

/// Sends it on a connection of its own; the answer with its whole body.
pub(super) async fn send(
    network: &Network,
    server: SocketAddr,
    request: Request<Bytes>,
) -> anyhow::Result<Response<Bytes>> {
    let exchange = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(network.connect(server)?)).await?;
        // It ends with the sender.
        tokio::spawn(connection);
        let (head, body) = sender.send_request(request.map(Full::new)).await?.into_parts();
        anyhow::Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    };
    timeout(ANSWER, exchange).await.with_context(|| format!("{server} does not answer"))?
}
