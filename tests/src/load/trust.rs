//! What the webhook's certificate is checked against.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use ayatori_webhook::configuration::{MUTATE_JOBS, MUTATING, VALIDATE_JOBS, VALIDATING};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{
    Api, Resource, ResourceExt,
    api::{WatchEvent, WatchParams},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, time::sleep};

use super::plan;

/// Between the end of a watch and the next one.
const AGAIN: Duration = Duration::from_millis(50);

/// The newest TLS configuration of each webhook.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    mutating: watch::Receiver<Trusted>,
    validating: watch::Receiver<Trusted>,
}

/// What one caBundle makes.
#[derive(Debug, Clone)]
pub(super) struct Trusted {
    pub(super) tls: Arc<ClientConfig>,
    pub(super) certificates: usize,
}

impl Trust {
    /// Follows the sources from now on; returns when each has been read once.
    pub(super) async fn of(plan: &plan::Trust) -> anyhow::Result<Self> {
        match plan {
            plan::Trust::File(path) => {
                let pem = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
                let (_, trusted) = watch::channel(Trusted::from_pem(&pem)?);
                Ok(Self { mutating: trusted.clone(), validating: trusted })
            }
            plan::Trust::Published => {
                let kubeconfig = std::env::var_os("KUBECONFIG").context("KUBECONFIG is not set")?;
                let client = crate::client::connect(Path::new(&kubeconfig)).await?;
                let mutating = follow(Api::all(client.clone()), MUTATING, |found: &MutatingWebhookConfiguration| {
                    found.webhooks.iter().flatten().next().and_then(|hook| hook.client_config.ca_bundle.clone())
                });
                let validating = follow(Api::all(client), VALIDATING, |found: &ValidatingWebhookConfiguration| {
                    found.webhooks.iter().flatten().next().and_then(|hook| hook.client_config.ca_bundle.clone())
                });
                let (mutating, validating) = tokio::try_join!(mutating, validating)?;
                Ok(Self { mutating, validating })
            }
        }
    }

    /// What counts for a path.
    pub(super) fn at(&self, path: &str) -> Trusted {
        debug_assert!([MUTATE_JOBS, VALIDATE_JOBS].contains(&path));
        let source = if path == MUTATE_JOBS { &self.mutating } else { &self.validating };
        source.borrow().clone()
    }
}

impl Trusted {
    fn from_pem(pem: &[u8]) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.context("a certificate of the bundle")?).context("a CA of the bundle")?;
        }
        let certificates = roots.len();
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        // As the API server's client does.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Arc::new(tls), certificates })
    }
}

type Read<K> = fn(&K) -> Option<k8s_openapi::ByteString>;

async fn follow<K>(api: Api<K>, name: &'static str, read: Read<K>) -> anyhow::Result<watch::Receiver<Trusted>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let bundle = move |found: &K| Trusted::from_pem(&read(found).context("it has no caBundle")?.0);
    let first = api.get(name).await.with_context(|| format!("read {name}"))?;
    let mut version = first.resource_version().unwrap_or_default();
    let (sender, receiver) = watch::channel(bundle(&first)?);
    tokio::spawn(async move {
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
        loop {
            // An event that is missed would be a caBundle that is not: what ends is begun again with a fresh look.
            if let Ok(events) = api.watch(&parameters, &version).await {
                let mut events = events.boxed();
                while let Ok(Some(event)) = events.try_next().await {
                    if let WatchEvent::Added(found) | WatchEvent::Modified(found) = event
                        && let Ok(trusted) = bundle(&found)
                    {
                        version = found.resource_version().unwrap_or_default();
                        sender.send_replace(trusted);
                    }
                }
            }
            sleep(AGAIN).await;
            if let Ok(found) = api.get(name).await
                && let Ok(trusted) = bundle(&found)
            {
                version = found.resource_version().unwrap_or_default();
                sender.send_replace(trusted);
            }
        }
    });
    Ok(receiver)
}
