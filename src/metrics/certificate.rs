//! The certificate of the metrics, which is not that of the webhook (spec J2): from files, or of our own making.
//!
//! Our own signs itself and lives in memory, as that of controller-runtime: nobody was told of a CA, so nobody can verify
//! it. Who wants to verify it brings files.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use ayatori_certs::{CertSource, LEAF_LIFETIME, Leaf, SelfManaged};
use jiff::Timestamp;
use tokio::time::sleep;

use crate::{
    config::Security,
    serving_certificate::files::{CertificateFiles, LOOK},
};

/// The Service of the manifests through which the metrics are read.
const SERVICE: &str = "ayatori-metrics";
/// After a renewal that failed.
const AGAIN: Duration = Duration::from_secs(60);

/// Keeps the certificate of the metrics.
pub(crate) enum MetricsCertificate {
    Files(Box<CertificateFiles>),
    Own(Own),
}

/// One that signs itself.
pub(crate) struct Own {
    names: Vec<String>,
    source: SelfManaged,
}

impl MetricsCertificate {
    /// None where there is no TLS. Files may come later: until then handshakes fail.
    pub(super) fn new(security: Security, namespace: &str) -> Result<Option<Self>> {
        Ok(match security {
            Security::Open => None,
            Security::Files { certificates, key } => {
                Some(Self::Files(Box::new(CertificateFiles::new(certificates, key, LOOK))))
            }
            Security::OwnCertificate => {
                let names = vec![format!("{SERVICE}.{namespace}.svc"), "localhost".to_owned()];
                let own = Own { names, source: SelfManaged::default() };
                own.renew().context("cannot make a certificate for the metrics")?;
                Some(Self::Own(own))
            }
        })
    }

    pub(super) fn source(&self) -> Arc<dyn CertSource> {
        match self {
            Self::Files(files) => files.source(),
            Self::Own(own) => Arc::new(own.source.clone()),
        }
    }

    /// Never ends.
    pub(crate) async fn keep(self) {
        match self {
            Self::Files(mut files) => {
                files.first().await;
                files.keep().await;
            }
            Self::Own(own) => own.keep().await,
        }
    }
}

impl Own {
    /// Serves a new one; answers when the next is due.
    fn renew(&self) -> Result<Timestamp> {
        let leaf = Leaf::self_signed(&self.names, Timestamp::now(), LEAF_LIFETIME)?;
        let due = leaf.validity().renew_at();
        self.source.serve(leaf);
        Ok(due)
    }

    async fn keep(self) {
        loop {
            let due = self.source.validity().map_or(Timestamp::UNIX_EPOCH, |validity| validity.renew_at());
            sleep(Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default()).await;
            if let Err(error) = self.renew() {
                tracing::warn!("cannot renew the certificate of the metrics, trying again: {error:#}");
                sleep(AGAIN).await;
            }
        }
    }
}
