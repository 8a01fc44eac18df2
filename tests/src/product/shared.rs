//! The cluster with one ayatori that most tests share.

use crate::{
    Cluster,
    suite::{require_node, shared_cluster, with_namespace},
};
use tokio::sync::OnceCell;

use super::{
    binary,
    installation::{install, options},
    jobs::STANDARD,
    process::{Ayatori, Ports},
    scene::{Scene, offer_class},
};

/// The process stays for as long as the test binary runs; with the cluster it ends. What keeps it from starting is told
/// by every test, and not tried again.
static AYATORI: OnceCell<Result<Ayatori, String>> = OnceCell::const_new();

async fn cluster() -> anyhow::Result<&'static Cluster> {
    // First: where it cannot be built, no cluster is needed.
    binary::path()?;
    let cluster = shared_cluster(options()).await?;
    let start = async || {
        let kubeconfig = install(cluster).await?;
        let process = Ayatori::ready(cluster, &kubeconfig, Ports::MAIN).await?;
        offer_class(&cluster.client().await?, STANDARD).await?;
        anyhow::Ok(process)
    };
    let started = AYATORI.get_or_init(async || start().await.map_err(|error| format!("{error:#}"))).await;
    started.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(cluster)
}

/// Runs a test in a namespace of its own on the shared cluster.
pub async fn in_namespace<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    if !require_node()? {
        return Ok(());
    }
    let cluster = cluster().await?;
    with_namespace(cluster, async |namespace| test(&Scene::new(cluster, namespace).await?).await).await
}
