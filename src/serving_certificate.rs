//! Carries out the steps of the self-managed certificate (spec J2): what is next is decided in
//! `ayatori_certs::rotation`, from what a look at the API server shows.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use ayatori_certs::{
    AUTHORITY_LIFETIME, Authority, Bundle, CertSource, LEAF_LIFETIME, SelfManaged, authority_from_secret,
    authority_to_secret,
    rotation::{Configuration, Publication, Served, Step, Stored, View, decide},
};
use ayatori_controller::{
    call::{CallError, bounded, found},
    patch,
};
use ayatori_webhook::configuration::{MUTATING, VALIDATING};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
        },
        core::v1::Secret,
    },
};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How often the Secret and the webhook configurations are looked at: they may be changed by others at any time.
const TICK: Duration = Duration::from_secs(10);
/// Steps before a look counts as a failure: create, publish and issue are three.
const STEPS_A_LOOK: usize = 8;

/// Keeps the serving certificate.
pub(crate) struct ServingCertificate {
    client: Client,
    namespace: String,
    secret: String,
    names: Vec<String>,
    source: SelfManaged,
}

impl ServingCertificate {
    pub(crate) fn new(client: Client, namespace: String, secret: String, names: Vec<String>) -> Self {
        Self { client, namespace, secret, names, source: SelfManaged::default() }
    }

    /// Where the webhook server takes the certificate from.
    pub(crate) fn source(&self) -> Arc<SelfManaged> {
        Arc::new(self.source.clone())
    }

    /// Takes steps until nothing is due.
    pub(crate) async fn ensure(&self) -> Result<()> {
        for _ in 0..STEPS_A_LOOK {
            if !self.step().await? {
                return Ok(());
            }
        }
        anyhow::bail!("the serving certificate is not settled after {STEPS_A_LOOK} steps")
    }

    /// Looks again and again. Never ends.
    pub(crate) async fn keep(self) {
        loop {
            if let Err(error) = self.ensure().await {
                tracing::warn!("cannot keep the serving certificate, trying again: {error:#}");
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// One look and one step; false where nothing is due.
    async fn step(&self) -> Result<bool> {
        let now = Timestamp::now();
        let secret = found(bounded(self.secrets().get(&self.secret)).await)
            .with_context(|| format!("cannot read Secret {}/{}", self.namespace, self.secret))?;
        let stored = secret.as_ref().map(|secret| authority_from_secret(&data(secret)));
        let mutating = self.configuration::<MutatingWebhookConfiguration>(MUTATING).await?;
        let validating = self.configuration::<ValidatingWebhookConfiguration>(VALIDATING).await?;
        let view = View {
            stored: match &stored {
                None => Stored::Absent,
                Some(Err(error)) => Stored::Unreadable(error.to_string()),
                Some(Ok(authority)) => Stored::Present(authority.certificate().clone()),
            },
            served: self.source.served().map(|leaf| Served::from(leaf.as_ref())),
            configurations: [(MUTATING, &mutating), (VALIDATING, &validating)]
                .into_iter()
                .filter_map(|(name, found)| found.as_ref().map(|found| found.view(name)))
                .collect(),
        };
        match decide(&view, now) {
            Step::WaitUntil(_) => return Ok(false),
            Step::CreateAuthority => self.create(now).await?,
            Step::ReplaceAuthority(why) => {
                tracing::info!(?why, "replacing the webhook's CA");
                self.replace(secret, now).await?;
            }
            Step::PublishBundle(publications) => {
                for publication in &publications {
                    self.publish(publication, mutating.as_ref(), validating.as_ref()).await?;
                }
                // API servers see the new bundle a moment later. While what is served is still good, it goes on being
                // served until the next look (J2: a rotation loses no request).
                return Ok(self.source.healthy(now).is_err());
            }
            Step::IssueLeaf(why) => {
                if let Some(Ok(authority)) = &stored {
                    self.source.serve(authority.issue(&self.names, now, LEAF_LIFETIME)?);
                    tracing::info!(?why, names = ?self.names, "serving a new certificate");
                }
            }
        }
        Ok(true)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Create-or-lose: where another replica was first, its CA is the one.
    async fn create(&self, now: Timestamp) -> Result<()> {
        let secret = Secret {
            metadata: ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(new_authority(now)?),
            ..Secret::default()
        };
        match bounded(self.secrets().create(&PostParams::default(), &secret)).await {
            Ok(_) | Err(CallError::AlreadyExists(_)) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("cannot create Secret {}/{}", self.namespace, self.secret))
            }
        }
    }

    /// Under the resourceVersion that was seen: where another replica was first, its CA is the one.
    async fn replace(&self, seen: Option<Secret>, now: Timestamp) -> Result<()> {
        let Some(mut secret) = seen else { return Ok(()) };
        secret.data = Some(new_authority(now)?);
        match bounded(self.secrets().replace(&self.secret, &PostParams::default(), &secret)).await {
            Ok(_) | Err(CallError::Conflict(_)) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("cannot replace Secret {}/{}", self.namespace, self.secret))
            }
        }
    }

    async fn configuration<K>(&self, name: &str) -> Result<Option<Found>>
    where
        K: Resource<DynamicType = ()> + Webhooks + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let configurations = Api::<K>::all(self.client.clone());
        let configuration = found(bounded(configurations.get(name)).await)
            .with_context(|| format!("cannot read {} {name}", K::kind(&())))?;
        Ok(configuration.map(|configuration| Found {
            resource_version: configuration.meta().resource_version.clone(),
            bundles: configuration.clients().iter().map(|client| bundle(client)).collect(),
        }))
    }

    async fn publish(
        &self,
        publication: &Publication,
        mutating: Option<&Found>,
        validating: Option<&Found>,
    ) -> Result<()> {
        let name = publication.configuration.as_str();
        let of_mutating = name == MUTATING;
        let Some(found) = (if of_mutating { mutating } else { validating }) else { return Ok(()) };
        let patch = patch::json_patch(found.patch(&publication.ca_bundle))?;
        let parameters = PatchParams::default();
        let answer = if of_mutating {
            let configurations = Api::<MutatingWebhookConfiguration>::all(self.client.clone());
            bounded(configurations.patch(name, &parameters, &patch)).await.map(drop)
        } else {
            let configurations = Api::<ValidatingWebhookConfiguration>::all(self.client.clone());
            bounded(configurations.patch(name, &parameters, &patch)).await.map(drop)
        };
        match answer {
            Ok(()) => tracing::info!(configuration = name, "published the webhook's CA"),
            Err(CallError::Conflict(_)) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot publish the CA into {name}")),
        }
        Ok(())
    }
}

/// What a look at one webhook configuration showed.
struct Found {
    resource_version: Option<String>,
    /// The caBundle of each webhook, in their order.
    bundles: Vec<Bundle>,
}

impl Found {
    fn view(&self, name: &str) -> Configuration {
        Configuration { name: name.to_owned(), bundles: self.bundles.clone() }
    }

    /// Sets every caBundle of the configuration that was seen; a changed one is a conflict.
    fn patch(&self, bundle: &Bundle) -> Value {
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": self.resource_version});
        let pem = ByteString(bundle.to_pem());
        let bundles = (0..self.bundles.len()).map(
            |index| json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": pem}),
        );
        std::iter::once(version).chain(bundles).collect()
    }
}

/// The client configurations of a webhook configuration, in the order of its webhooks.
trait Webhooks {
    fn clients(&self) -> Vec<&WebhookClientConfig>;
}

impl Webhooks for MutatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config).collect()
    }
}

impl Webhooks for ValidatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config).collect()
    }
}

fn bundle(client: &WebhookClientConfig) -> Bundle {
    client.ca_bundle.as_ref().map(|bytes| Bundle::from_pem(&bytes.0)).unwrap_or_default()
}

fn data(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

fn new_authority(now: Timestamp) -> Result<BTreeMap<String, ByteString>> {
    let authority = Authority::create(now, AUTHORITY_LIFETIME)?;
    Ok(authority_to_secret(&authority).into_iter().map(|(key, value)| (key, ByteString(value))).collect())
}
