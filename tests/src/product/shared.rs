//! The cluster with one ayatori that most tests share.

use crate::{
    Cluster,
    record::Recorder,
    suite::{require_node, shared_cluster},
};
use tokio::sync::OnceCell;

use super::{
    binary,
    installation::{install, options},
    jobs::STANDARD,
    process::{Ayatori, Ports},
    scene::{Scene, offer_class, recorded},
};

struct Shared {
    cluster: &'static Cluster,
    recorder: Recorder,
    /// It stays for as long as the test binary runs; with the cluster it ends.
    _process: Ayatori,
}

/// What keeps it from starting is told by every test, and not tried again.
static SHARED: OnceCell<Result<Shared, String>> = OnceCell::const_new();

async fn shared() -> anyhow::Result<&'static Shared> {
    // First: where it cannot be built, no cluster is needed.
    binary::path()?;
    let cluster = shared_cluster(options()).await?;
    let start = async || {
        let kubeconfig = install(cluster).await?;
        let recorder = Recorder::start(cluster).await?;
        let process = Ayatori::ready(cluster, &kubeconfig, Ports::MAIN).await?;
        offer_class(&cluster.client().await?, STANDARD).await?;
        anyhow::Ok(Shared { cluster, recorder, _process: process })
    };
    let started = SHARED.get_or_init(async || start().await.map_err(|error| format!("{error:#}"))).await;
    started.as_ref().map_err(|error| anyhow::anyhow!("{error}"))
}

/// Runs a test in a namespace of its own on the shared cluster.
pub async fn in_namespace<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    if !require_node()? {
        return Ok(());
    }
    let Shared { cluster, recorder, .. } = shared().await?;
    recorded(cluster, recorder, test).await
}
