//! The certificate of the metrics, which is not that of the webhook (spec J2): from files, or of our own making.
//!
//! Our own signs itself and lives in memory, as that of controller-runtime: nobody was told of a CA, so nobody can verify
//! it. Who wants to verify it brings files.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use ayatori_certs::{CertSource, LEAF_LIFETIME, Leaf, SelfManaged};
use jiff::{SignedDuration, Timestamp};
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
    lifetime: SignedDuration,
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
                let own = Own { names, lifetime: LEAF_LIFETIME, source: SelfManaged::default() };
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
    /// Serves a new one.
    fn renew(&self) -> Result<()> {
        self.source.serve(Leaf::self_signed(&self.names, Timestamp::now(), self.lifetime)?);
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::fs;

    use ayatori_certs::{SHORTEST_LEAF, Validity};
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// For what takes a few seconds.
    const SOON: Duration = Duration::from_secs(30);

    async fn until(source: &dyn CertSource, is: impl Fn(Validity) -> bool) -> Validity {
        let look = async {
            loop {
                match source.validity() {
                    Some(validity) if is(validity) => return validity,
                    _ => sleep(Duration::from_millis(20)).await,
                }
            }
        };
        tokio::time::timeout(SOON, look).await.unwrap()
    }

    #[tokio::test]
    async fn our_own_is_there_at_once_and_is_followed_by_another_before_it_ends() {
        let Some(MetricsCertificate::Own(mut own)) = MetricsCertificate::new(Security::OwnCertificate, "sys").unwrap()
        else {
            panic!("not our own")
        };
        assert_eq!(own.names, ["ayatori-metrics.sys.svc", "localhost"]);
        own.source.healthy(Timestamp::now()).unwrap();
        own.lifetime = SHORTEST_LEAF;
        own.renew().unwrap();
        let source = own.source.clone();
        let first = source.validity().unwrap();
        let keeping = tokio::spawn(own.keep());
        let second = until(&source, |validity| validity != first).await;
        assert!(Timestamp::now() < first.not_after && first.not_after < second.not_after, "{first:?} {second:?}");
        keeping.abort();
    }

    #[tokio::test]
    async fn files_are_served_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["metrics.example".to_owned()]).unwrap();
        let (certificates, key_file) = (folder.path().join("a.pem"), folder.path().join("b.pem"));
        fs::write(&certificates, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        let security = Security::Files { certificates, key: key_file };
        let certificate = MetricsCertificate::new(security, "sys").unwrap().unwrap();
        let source = certificate.source();
        let keeping = tokio::spawn(certificate.keep());
        until(source.as_ref(), |_| true).await;
        keeping.abort();
    }
}
