//! What a process counts, read as a scraper reads it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use crate::Cluster;
use anyhow::{Context, ensure};
use http::{
    Request, Response,
    header::{AUTHORIZATION, HOST},
};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A page is there within milliseconds.
const ANSWER: Duration = Duration::from_secs(30);

/// The samples of one page.
#[derive(Debug, Clone)]
pub struct Page(String);

/// Asks for `/metrics` at this port of the cluster's loopback, over TLS; nobody can verify the certificate that a process
/// makes for it.
pub async fn ask(cluster: &Cluster, port: u16, token: Option<&str>) -> anyhow::Result<Response<Bytes>> {
    let provider = Arc::new(ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let socket = cluster.network()?.connect(SocketAddr::from(([127, 0, 0, 1], port)))?;
    let mut request = Request::get("/metrics").header(HOST, "localhost");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Empty::<Bytes>::new())?;
    let exchange = async {
        let stream = TlsConnector::from(Arc::new(tls)).connect(ServerName::try_from("localhost")?, socket).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender.
        tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await?.into_parts();
        anyhow::Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    };
    timeout(ANSWER, exchange).await.context("the metrics are not answered")?
}

/// The page, for a token that may read it.
pub async fn page(cluster: &Cluster, port: u16, token: &str) -> anyhow::Result<Page> {
    let response = ask(cluster, port, Some(token)).await?;
    let text = String::from_utf8(response.body().to_vec())?;
    ensure!(response.status() == 200, "{}: {text}", response.status());
    Ok(Page(text))
}

impl Page {
    /// The value of this series, as it is written: name and labels. 0 where there is none.
    pub fn value(&self, series: &str) -> f64 {
        let sample = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
        self.0.lines().find_map(sample).unwrap_or_default()
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Takes any certificate, but only from whoever holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
