//! One cluster for all tests of this suite, with the definitions, the rights and a class; and replicas in it.

use std::path::PathBuf;

use anyhow::Context;
use ayatori_tests::{
    Cluster, Options,
    product::{
        binary,
        installation::{ACCOUNT, SYSTEM, install, kubeconfig_of},
        jobs::STANDARD,
        kubectl::Kubectl,
        process::{Ayatori, Ports},
        scene::offer_class,
    },
    suite::shared_cluster,
};
use tokio::sync::OnceCell;

/// The ServiceAccount that may do everything but keep a certificate.
const WITHOUT_CERTIFICATE: &str = "ayatori-with-files";

pub(crate) struct Site {
    pub(crate) cluster: &'static Cluster,
    /// With the rights of the manifests.
    pub(crate) kubeconfig: PathBuf,
    /// Without those for the Secret and the webhook configurations.
    pub(crate) without_certificate_rights: PathBuf,
}

static SITE: OnceCell<Site> = OnceCell::const_new();

pub(crate) async fn site() -> anyhow::Result<&'static Site> {
    SITE.get_or_try_init(async || {
        // First: where it cannot be built, no cluster is needed.
        binary::path()?;
        let cluster = shared_cluster(Options::default()).await?;
        let kubeconfig = install(cluster).await?;
        let process = Ayatori::ready(cluster, &kubeconfig, Ports::MAIN).await?;
        offer_class(&cluster.client().await?, STANDARD).await?;
        process.kill();
        let without_certificate_rights = account_without_certificate_rights(cluster).await?;
        Ok(Site { cluster, kubeconfig, without_certificate_rights })
    })
    .await
}

/// As the ServiceAccount of the manifests, but for the overlay `self-managed`.
async fn account_without_certificate_rights(cluster: &Cluster) -> anyhow::Result<PathBuf> {
    let kubectl = Kubectl::of(cluster);
    kubectl.ok(&["create", "serviceaccount", WITHOUT_CERTIFICATE, "--namespace", SYSTEM])?;
    let account = format!("--serviceaccount={SYSTEM}:{WITHOUT_CERTIFICATE}");
    kubectl.ok(&[
        "create",
        "clusterrolebinding",
        WITHOUT_CERTIFICATE,
        &format!("--clusterrole={ACCOUNT}"),
        &account,
    ])?;
    kubeconfig_of(cluster, SYSTEM, WITHOUT_CERTIFICATE).await
}

impl Site {
    /// Replicas on these ports, started at once; returns when all are ready. Each has flags of its own.
    pub(crate) async fn replicas(
        &self,
        kubeconfig: &std::path::Path,
        replicas: &[(Ports, Vec<String>)],
    ) -> anyhow::Result<Vec<Ayatori>> {
        let start = |(ports, flags): &(Ports, Vec<String>)| {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            Ayatori::start_with(self.cluster, kubeconfig, *ports, &flags)
        };
        let started: Vec<Ayatori> = replicas.iter().map(start).collect::<anyhow::Result<_>>()?;
        for replica in &started {
            replica.is_ready().await.context("a replica")?;
        }
        Ok(started)
    }
}

/// The ports of the two replicas of one test; the tests run at once. Number 0 is where the webhook configurations point.
pub(crate) fn ports(test: u16) -> [Ports; 2] {
    let apart = 10 * test;
    [0, 1].map(|replica| Ports {
        webhook: Ports::MAIN.webhook + apart + replica,
        probes: Ports::MAIN.probes + apart + replica,
        metrics: Ports::MAIN.metrics + apart + replica,
    })
}
