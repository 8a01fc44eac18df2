//! A second cluster, for the tests that kill ayatori or stop its webhook: what they do would disturb all others.

use std::path::{Path, PathBuf};

use crate::{
    Cluster,
    suite::{require_node, with_namespace},
};
use tokio::sync::{Mutex, OnceCell};

use super::{
    binary,
    installation::{install, options},
    jobs::STANDARD,
    process::{Ayatori, Ports},
    scene::{Scene, offer_class},
};

struct Own {
    cluster: Cluster,
    kubeconfig: PathBuf,
}

static OWN: OnceCell<Own> = OnceCell::const_new();
/// One test at a time has it.
static TURN: Mutex<()> = Mutex::const_new(());

async fn own() -> anyhow::Result<&'static Own> {
    binary::path()?;
    OWN.get_or_try_init(async || {
        let cluster = Cluster::start(options()).await?;
        let kubeconfig = install(&cluster).await?;
        let process = Ayatori::ready(&cluster, &kubeconfig, Ports::MAIN).await?;
        offer_class(&cluster.client().await?, STANDARD).await?;
        process.kill();
        Ok(Own { cluster, kubeconfig })
    })
    .await
}

/// Runs a test alone on the second cluster, where no ayatori runs; the second argument is the kubeconfig to start one.
pub async fn alone<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene, &Path) -> anyhow::Result<()>,
{
    if !require_node()? {
        return Ok(());
    }
    let _turn = TURN.lock().await;
    let Own { cluster, kubeconfig } = own().await?;
    with_namespace(cluster, async |namespace| test(&Scene::new(cluster, namespace).await?, kubeconfig).await).await
}
