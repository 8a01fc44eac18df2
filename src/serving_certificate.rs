//! The webhook's serving certificate (spec J2): our own, or from files that somebody else keeps. In the second case nothing
//! here touches the API server, and the process needs no rights for it.

use std::sync::Arc;

use anyhow::Result;
use ayatori_certs::CertSource;
use kube::Client;

use crate::config::{Certificates, Config};

pub(crate) mod files;
mod self_managed;
mod webhook_configurations;

/// Keeps the serving certificate.
pub(crate) enum ServingCertificate {
    Files(files::CertificateFiles),
    SelfManaged(self_managed::OwnCertificate),
}

impl ServingCertificate {
    pub(crate) fn new(config: &Config, client: &Client) -> Result<Self> {
        Ok(match config.serving.certificates()? {
            Certificates::Files { certificates, key } => {
                Self::Files(files::CertificateFiles::new(certificates, key, files::LOOK))
            }
            Certificates::SelfManaged(lifetimes) => Self::SelfManaged(self_managed::OwnCertificate::new(
                client.clone(),
                config.namespace.clone(),
                config.serving.webhook_ca_secret.clone(),
                config.webhook_names(),
                lifetimes,
            )),
        })
    }

    /// Where the webhook server takes the certificate from.
    pub(crate) fn source(&self) -> Arc<dyn CertSource> {
        match self {
            Self::Files(files) => files.source(),
            Self::SelfManaged(own) => own.source(),
        }
    }

    /// Returns when a certificate is served.
    pub(crate) async fn first(&mut self) -> Result<()> {
        match self {
            Self::Files(files) => files.first().await,
            Self::SelfManaged(own) => own.ensure().await.map(drop)?,
        }
        Ok(())
    }

    /// Looks again and again. Never ends.
    pub(crate) async fn keep(self) {
        match self {
            Self::Files(files) => files.keep().await,
            Self::SelfManaged(own) => own.keep().await,
        }
    }
}
