//! Whether the process can do its work at all: asked once, before anything starts, so that what is missing is said in
//! one clear line instead of in a loop of failing watches.

use anyhow::{Context, Result, bail};
use ayatori_controller::{
    backend::kubernetes::objects::{NativeJob, NativePod},
    call::{CallError, bounded},
    stores::NamespaceMetadata,
};
use ayatori_crds::{Job, JobClass, KubernetesExecutionParameters, OpenSandboxExecutionParameters};
use kube::{Api, Client, Resource, api::ListParams};
use serde::de::DeserializeOwned;

mod rights;

/// Reaches the API server, reads one object of every kind that is watched, and asks for the rights to do the rest.
pub(crate) async fn check(client: &Client, server: &str) -> Result<()> {
    let version = bounded(client.apiserver_version()).await;
    let version = version.with_context(|| format!("cannot reach the API server at {server}"))?;
    tracing::info!(server, version = version.git_version, "reached the API server");
    can_list::<Job>(client).await?;
    can_list::<JobClass>(client).await?;
    can_list::<KubernetesExecutionParameters>(client).await?;
    can_list::<OpenSandboxExecutionParameters>(client).await?;
    can_list::<NamespaceMetadata>(client).await?;
    can_list::<NativeJob>(client).await?;
    can_list::<NativePod>(client).await?;
    rights::check(client).await.with_context(|| format!("cannot work at {server}"))
}

async fn can_list<K>(client: &Client) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let (kind, group) = (K::plural(&()), K::group(&()));
    match bounded(Api::<K>::all(client.clone()).list(&ListParams::default().limit(1))).await {
        Ok(_) => Ok(()),
        // A kind that is not installed is answered in plain text, which is no Status.
        Err(CallError::Other(kube::Error::Api(status))) if status.code == 404 => {
            bail!("the API server does not know {kind}.{group}: apply the CustomResourceDefinitions first")
        }
        Err(CallError::Refused(why)) => bail!("not allowed to list {kind} (API group {group:?}): {why}"),
        Err(error) => Err(error).with_context(|| format!("cannot list {kind}")),
    }
}
