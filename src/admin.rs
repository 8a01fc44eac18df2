//! `/healthz` and `/readyz`, in plain HTTP on their own port: they tell nothing but a word.

use std::{future::Future, net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use axum::{Router, http::StatusCode, routing::get};
use ayatori_certs::CertSource;
use jiff::Timestamp;
use tokio::sync::watch;

/// Why the process is not ready; None when it is.
pub(crate) type Readiness = watch::Receiver<Option<&'static str>>;

/// Serves the probes until `stop` ends.
pub(crate) async fn serve(
    address: SocketAddr,
    readiness: Readiness,
    certificate: Arc<dyn CertSource>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for the health probes"))?;
    let ready = move || {
        let answer = ready(*readiness.borrow(), certificate.as_ref());
        async move { answer }
    };
    let router = Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(ready));
    axum::serve(listener, router).with_graceful_shutdown(stop).await.context("the health probes ended")
}

/// Ready: started, not stopping, and a certificate is served that clients can accept.
fn ready(waiting_for: Option<&'static str>, certificate: &dyn CertSource) -> (StatusCode, String) {
    match (waiting_for, certificate.healthy(Timestamp::now())) {
        (Some(why), _) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
        (None, Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        (None, Ok(())) => (StatusCode::OK, "ok".to_owned()),
    }
}
