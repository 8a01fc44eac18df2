//! `/metrics` (spec J4, J5): what is counted where is known here, and nowhere else. `docs/metrics.md` tells every name.
//!
//! ```text
//!   socket → TLS → HTTP ─► endpoint: path, method ─► access: whose token, may it? ─► page: the registry as text
//! ```

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use ayatori_certs::CertSource;
use ayatori_controller::metrics::FromStores;
use ayatori_webhook::{Limits, Server};
use kube::Client;
use prometheus_client::registry::Registry;

use crate::config::Security;

mod access;
mod certificate;
mod endpoint;
mod expiry;
mod remembered;

use access::Access;
use certificate::MetricsCertificate;
use endpoint::Endpoint;
use expiry::Expiry;

/// The word before every name.
const PREFIX: &str = "ayatori";

/// What the parts of the process count in, from their start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics {
    pub(crate) webhook: ayatori_webhook::Metrics,
    pub(crate) controller: ayatori_controller::metrics::Metrics,
}

impl Metrics {
    /// All of it in one registry, with what is computed at each scrape.
    fn registry(&self, stores: FromStores, certificates: Expiry) -> Registry {
        let mut registry = Registry::with_prefix(PREFIX);
        self.webhook.register(&mut registry);
        self.controller.register(&mut registry);
        registry.register_collector(Box::new(stores));
        registry.register_collector(Box::new(certificates));
        registry
    }
}

/// The server of the metrics, bound to its address, and what keeps its certificate.
pub(crate) struct MetricsServer {
    pub(crate) server: Server,
    pub(crate) certificate: Option<MetricsCertificate>,
}

/// Binds the server of the metrics.
///
/// # Errors
/// An address that cannot be listened on.
pub(crate) async fn bind(
    (address, security): (SocketAddr, Security),
    namespace: &str,
    metrics: &Metrics,
    client: &Client,
    stores: FromStores,
    webhook_certificate: Arc<dyn CertSource>,
) -> Result<MetricsServer> {
    let access = (security != Security::Open).then(|| Access::new(client.clone()));
    let certificate = MetricsCertificate::new(security, namespace)?;
    let source = certificate.as_ref().map(MetricsCertificate::source);
    let mut certificates = vec![("webhook", webhook_certificate)];
    certificates.extend(source.clone().map(|source| ("metrics", source)));
    let registry = metrics.registry(stores, Expiry(certificates));
    let endpoint = Arc::new(Endpoint::new(registry, access));
    let server = Server::of_handler(address, source.as_deref(), Limits::for_a_few(), endpoint).await;
    let server = server.context("cannot serve the metrics (--metrics-bind-address)")?;
    Ok(MetricsServer { server, certificate })
}

#[cfg(test)]
mod tests;
