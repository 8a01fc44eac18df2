//! One connection to a webhook.

use std::sync::Arc;

use anyhow::{Context, ensure};
use http::{
    Request, StatusCode,
    header::{CONNECTION, CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Bytes,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use serde_json::Value;
use tokio::{net::TcpStream, time::Instant};
use tokio_rustls::{TlsConnector, client::TlsStream};
use x509_parser::prelude::ParsedExtension;

use super::plan::LeafSeen;

/// TLS to a process of this machine, under the address that its certificate names.
pub(super) async fn tls(port: u16, config: Arc<ClientConfig>) -> anyhow::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.context("connect")?;
    socket.set_nodelay(true)?;
    let name = ServerName::try_from("127.0.0.1")?;
    TlsConnector::from(config).connect(name, socket).await.context("TLS")
}

/// One that reviews can be asked for on.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    pub(super) since: Instant,
}

/// Why there was no good answer.
pub(super) enum Failed {
    /// The server had ended the connection before anything was sent: a new one will do, as for any client.
    Unsent,
    /// Anything else.
    Wrong(anyhow::Error),
}

impl Connection {
    /// Connects, and tells which certificate was shown.
    pub(super) async fn open(port: u16, config: Arc<ClientConfig>) -> anyhow::Result<(Self, LeafSeen)> {
        let since = Instant::now();
        let stream = tls(port, config).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let leaf = leaf(shown.context("no certificate")?)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.context("HTTP")?;
        // Its errors are those of the request.
        tokio::spawn(async { drop(connection.await) });
        Ok((Self { sender, since }, leaf))
    }

    /// Asks for one review; answers whether the connection goes on.
    pub(super) async fn review(&mut self, path: &str, uid: &str, body: Vec<u8>) -> Result<bool, Failed> {
        if self.sender.ready().await.is_err() {
            return Err(Failed::Unsent);
        }
        self.ask(path, uid, body).await
    }

    async fn ask(&mut self, path: &str, uid: &str, body: Vec<u8>) -> Result<bool, Failed> {
        let wrong = |error: &dyn std::fmt::Display| Failed::Wrong(anyhow::anyhow!("{error}"));
        let request = Request::post(format!("{path}?timeout=10s"))
            .header(HOST, "127.0.0.1")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(|error| wrong(&error))?;
        let response = self.sender.send_request(request).await.map_err(|error| {
            if error.is_canceled() { Failed::Unsent } else { Failed::Wrong(anyhow::Error::new(error).context("ask")) }
        })?;
        let (status, closes) = (response.status(), response.headers().get(CONNECTION).is_some_and(|it| it == "close"));
        let body = response.into_body().collect().await.map_err(|error| wrong(&error))?.to_bytes();
        is_good(status, uid, &body).map_err(Failed::Wrong)?;
        Ok(!closes)
    }
}

fn is_good(status: StatusCode, uid: &str, body: &[u8]) -> anyhow::Result<()> {
    let said = || String::from_utf8_lossy(body).chars().take(300).collect::<String>();
    ensure!(status == StatusCode::OK, "{status}: {}", said());
    let answer: Value = serde_json::from_slice(body).with_context(said)?;
    let response = &answer["response"];
    ensure!(response["uid"] == uid, "the uid of another: {}", said());
    ensure!(response["allowed"] == true, "not allowed: {}", said());
    Ok(())
}

fn leaf(der: &[u8]) -> anyhow::Result<LeafSeen> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).context("read the certificate")?;
    let issuer = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(identifier) => identifier.key_identifier.as_ref().map(|id| hex(id.0)),
        _ => None,
    });
    Ok(LeafSeen { serial: hex(certificate.raw_serial()), issuer: issuer.unwrap_or_default() })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
