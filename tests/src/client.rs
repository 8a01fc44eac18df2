//! Clients of a cluster's API server.

use std::{path::Path, sync::Once, time::Duration};

use anyhow::Context;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A client by a kubeconfig. It sees every failure as it is: no retries of kube's own.
pub(crate) async fn connect(kubeconfig: &Path) -> anyhow::Result<kube::Client> {
    kube::Client::try_from(config(kubeconfig).await?).context("make a client")
}

/// The configuration of such a client.
pub(crate) async fn config(kubeconfig: &Path) -> anyhow::Result<Config> {
    static RING: Once = Once::new();
    // A process has one provider; if it has chosen one already, that is fine too.
    RING.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    // All is on one machine: a connection takes a millisecond, unless the processor is busy. Reads have no bound, as
    // watches may be silent for long; the API server ends any other request after 60 s.
    config.connect_timeout = Some(Duration::from_secs(5));
    config.write_timeout = Some(Duration::from_secs(30));
    Ok(config)
}
