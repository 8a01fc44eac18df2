//! The caBundles of our webhook configurations: reading and writing them.

use anyhow::{Context, Result};
use ayatori_certs::{
    Bundle,
    rotation::{Configuration, Publication},
};
use ayatori_controller::{
    call::{CallError, bounded, found},
    patch,
};
use ayatori_webhook::configuration::{MUTATING, VALIDATING};
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
};
use kube::{Api, Client, Resource, api::PatchParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What a look at both configurations showed; one that does not exist is left out.
pub(super) struct WebhookConfigurations {
    client: Client,
    mutating: Option<Found>,
    validating: Option<Found>,
}

impl WebhookConfigurations {
    pub(super) async fn look(client: &Client) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            mutating: get::<MutatingWebhookConfiguration>(client, MUTATING).await?,
            validating: get::<ValidatingWebhookConfiguration>(client, VALIDATING).await?,
        })
    }

    pub(super) fn view(&self) -> Vec<Configuration> {
        let both = [(MUTATING, &self.mutating), (VALIDATING, &self.validating)];
        let view = |(name, found): (&str, &Option<Found>)| {
            let bundles = found.as_ref()?.bundles.clone();
            Some(Configuration { name: name.to_owned(), bundles })
        };
        both.into_iter().filter_map(view).collect()
    }

    /// Writes one caBundle into every webhook of a configuration. One that has changed since the look is left alone: the
    /// next look sees what it holds now.
    pub(super) async fn publish(&self, publication: &Publication) -> Result<()> {
        let name = publication.configuration.as_str();
        let answer = match (name == MUTATING, &self.mutating, &self.validating) {
            (true, Some(found), _) => self.patch::<MutatingWebhookConfiguration>(name, found, publication).await,
            (false, _, Some(found)) => self.patch::<ValidatingWebhookConfiguration>(name, found, publication).await,
            _ => return Ok(()),
        };
        match answer {
            Ok(()) => tracing::info!(configuration = name, "published the webhook's CA"),
            Err(CallError::Conflict(_) | CallError::NotFound(_)) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot publish the CA into {name}")),
        }
        Ok(())
    }

    async fn patch<K>(&self, name: &str, found: &Found, publication: &Publication) -> Result<(), CallError>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let patch = patch::json_patch(found.patch(&publication.ca_bundle))?;
        bounded(Api::<K>::all(self.client.clone()).patch(name, &PatchParams::default(), &patch)).await.map(drop)
    }
}

/// What a look at one webhook configuration showed.
struct Found {
    resource_version: Option<String>,
    /// The caBundle of each webhook, in their order.
    bundles: Vec<Bundle>,
}

impl Found {
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

async fn get<K>(client: &Client, name: &str) -> Result<Option<Found>>
where
    K: Resource<DynamicType = ()> + Webhooks + Clone + std::fmt::Debug + DeserializeOwned,
{
    let configurations = Api::<K>::all(client.clone());
    let configuration = found(bounded(configurations.get(name)).await)
        .with_context(|| format!("cannot read {} {name}", K::kind(&())))?;
    Ok(configuration.map(|configuration| Found {
        resource_version: configuration.meta().resource_version.clone(),
        bundles: configuration.clients().iter().map(|client| bundle(client)).collect(),
    }))
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
