//! A second cluster, for the tests that kill ayatori or stop its webhook: what they do would disturb all others.

use std::path::{Path, PathBuf};

use crate::{Cluster, record::Recorder, suite::require_node};
use tokio::sync::{Mutex, OnceCell};

use super::{
    binary,
    installation::{install, options},
    jobs::STANDARD,
    process::{Ayatori, Ports},
    scene::{Scene, offer_class, recorded},
};

struct Own {
    cluster: Cluster,
    kubeconfig: PathBuf,
    recorder: Recorder,
}

static OWN: OnceCell<Own> = OnceCell::const_new();
/// One test at a time has it.
static TURN: Mutex<()> = Mutex::const_new(());

async fn own() -> anyhow::Result<&'static Own> {
    binary::path()?;
    OWN.get_or_try_init(async || {
        let cluster = Cluster::start(options()).await?;
        let kubeconfig = install(&cluster).await?;
        let recorder = Recorder::start(&cluster).await?;
        let process = Ayatori::ready(&cluster, &kubeconfig, Ports::MAIN).await?;
        offer_class(&cluster.client().await?, STANDARD).await?;
        process.kill();
        Ok(Own { cluster, kubeconfig, recorder })
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
    let Own { cluster, kubeconfig, recorder } = own().await?;
    recorded(cluster, recorder, async |scene| test(scene, kubeconfig).await).await
}

/// For a test that is [`alone`]: a further namespace.
pub async fn beside<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    let Own { cluster, recorder, .. } = own().await?;
    recorded(cluster, recorder, test).await
}
