//! Carries out the steps of the self-managed certificate (spec J2): what is next is decided in
//! `ayatori_certs::rotation`, from what a look at the API server shows.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use ayatori_certs::{
    Authority, CertSource, Lifetimes, SelfManaged, authority_from_secret, authority_to_secret,
    rotation::{Served, Step, Stored, Trusted, View, decide},
};
use ayatori_controller::call::{CallError, bounded, found};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};

use super::webhook_configurations::WebhookConfigurations;

/// Steps before a look counts as a failure: create, publish and issue are three.
const STEPS_A_LOOK: usize = 8;

/// Keeps our own certificate.
pub(crate) struct OwnCertificate {
    client: Client,
    namespace: String,
    secret: String,
    names: Vec<String>,
    lifetimes: Lifetimes,
    trusted: Option<Trusted>,
    source: SelfManaged,
}

impl OwnCertificate {
    pub(crate) fn new(
        client: Client,
        namespace: String,
        secret: String,
        names: Vec<String>,
        lifetimes: Lifetimes,
    ) -> Self {
        Self { client, namespace, secret, names, lifetimes, trusted: None, source: SelfManaged::default() }
    }

    pub(crate) fn source(&self) -> Arc<dyn CertSource> {
        Arc::new(self.source.clone())
    }

    /// Takes steps until nothing is due; answers for how long.
    pub(crate) async fn ensure(&mut self) -> Result<Duration> {
        for _ in 0..STEPS_A_LOOK {
            if let Some(until) = self.step().await? {
                return Ok(Duration::try_from(Timestamp::now().duration_until(until)).unwrap_or_default());
            }
        }
        anyhow::bail!("the serving certificate is not settled after {STEPS_A_LOOK} steps")
    }

    /// Looks again and again. Never ends.
    pub(crate) async fn keep(mut self) {
        let look = self.lifetimes.look().unsigned_abs();
        loop {
            let idle = self.ensure().await.unwrap_or_else(|error| {
                tracing::warn!("cannot keep the serving certificate, trying again: {error:#}");
                look
            });
            // Others may change what was seen, so there is a look also where nothing is due for long.
            tokio::time::sleep(idle.min(look)).await;
        }
    }

    /// One look and one step; where nothing is due, until when.
    async fn step(&mut self) -> Result<Option<Timestamp>> {
        let now = Timestamp::now();
        let secret = found(bounded(self.secrets().get(&self.secret)).await)
            .with_context(|| format!("cannot read Secret {}/{}", self.namespace, self.secret))?;
        let authority = secret.as_ref().map(|secret| authority_from_secret(&data(secret)));
        let stored = match &authority {
            None => Stored::Absent,
            Some(Err(error)) => Stored::Unreadable(error.to_string()),
            Some(Ok(authority)) => Stored::Present(authority.certificate().clone()),
        };
        let published = WebhookConfigurations::look(&self.client).await?;
        let configurations = published.view();
        self.trusted = Trusted::after(self.trusted.take(), &stored, &configurations, now);
        let served = self.source.served().map(|leaf| Served::from(leaf.as_ref()));
        let view = View { stored, served, configurations, trusted: self.trusted.clone() };
        match decide(&view, self.lifetimes.look(), now) {
            Step::WaitUntil(until) => return Ok(Some(until)),
            Step::CreateAuthority => self.create(now).await?,
            Step::ReplaceAuthority(why) => {
                tracing::info!(?why, "replacing the webhook's CA");
                self.replace(secret, now).await?;
            }
            Step::PublishBundle(publications) => {
                for publication in &publications {
                    published.publish(publication).await?;
                }
            }
            Step::IssueLeaf(why) => {
                if let Some(Ok(authority)) = &authority {
                    self.source.serve(authority.issue(&self.names, now, self.lifetimes.leaf())?);
                    tracing::info!(?why, names = ?self.names, "serving a new certificate");
                }
            }
        }
        Ok(None)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Create-or-lose: where another replica was first, its CA is the one.
    async fn create(&self, now: Timestamp) -> Result<()> {
        let secret = Secret {
            metadata: ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(self.new_authority(now)?),
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
        secret.data = Some(self.new_authority(now)?);
        match bounded(self.secrets().replace(&self.secret, &PostParams::default(), &secret)).await {
            Ok(_) | Err(CallError::Conflict(_) | CallError::NotFound(_)) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("cannot replace Secret {}/{}", self.namespace, self.secret))
            }
        }
    }

    fn new_authority(&self, now: Timestamp) -> Result<BTreeMap<String, ByteString>> {
        let authority = Authority::create(now, self.lifetimes.authority())?;
        Ok(authority_to_secret(&authority).into_iter().map(|(key, value)| (key, ByteString(value))).collect())
    }
}

fn data(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}
