//! For suites: one cluster shared by the tests of a binary, a namespace for each test, logs when one fails.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, ensure};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use tokio::sync::OnceCell;

use crate::{Cluster, Options, control_plane, packages, tools::say};

/// Set by `cargo xtask test --without-node`: the suites that need a node are skipped instead of failing without root.
pub const WITHOUT_NODE: &str = "AYATORI_WITHOUT_NODE";

/// Set by `cargo xtask test --deep`: the long setting of each suite that has one.
pub const DEEP: &str = "AYATORI_DEEP";

/// The figure of this run: `deep` where the long settings were asked for.
pub fn setting<T>(usual: T, deep: T) -> T {
    if is_set(DEEP) { deep } else { usual }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

static SHARED: OnceCell<Cluster> = OnceCell::const_new();

/// The one cluster of this test binary, started by the first test that asks. It ends with the process.
///
/// # Errors
/// The cluster does not start; the next test tries again.
pub async fn shared_cluster(options: Options) -> anyhow::Result<&'static Cluster> {
    SHARED.get_or_try_init(|| Cluster::start(options)).await
}

/// Whether the tests that need a node run. A suite that cannot run is a failure, unless the person has said so.
///
/// # Errors
/// This is not root and `AYATORI_WITHOUT_NODE` is not set.
pub fn require_node() -> anyhow::Result<bool> {
    if is_set(WITHOUT_NODE) {
        say("skipped: it needs a node, and this run is without one");
        return Ok(false);
    }
    ensure!(packages::is_root(), "this suite needs a node and therefore root; to skip it say --without-node");
    Ok(true)
}

/// Runs a test in a namespace of its own, which is deleted afterwards. If the test fails, the end of the log of each
/// part is printed first.
///
/// # Errors
/// That of the test, or of making the namespace.
///
/// # Panics
/// When the test does.
pub async fn with_namespace<T>(cluster: &Cluster, test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&str) -> anyhow::Result<()>,
{
    let client = cluster.client().await?;
    let namespaces = Api::<Namespace>::all(client.clone());
    let name = unique("test");
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.context("make a namespace for the test")?;
    control_plane::wait_for_service_account(&client, &name).await?;
    let outcome = AssertUnwindSafe(test(&name)).catch_unwind().await;
    if !matches!(outcome, Ok(Ok(()))) {
        print_logs(&name, cluster);
    }
    // Not waited for: it takes seconds, and nobody uses the name again.
    let _ = namespaces.delete(&name, &DeleteParams::background()).await;
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The end of the log of each part, through the test harness, which shows it with the test's failure.
#[allow(clippy::print_stderr)]
pub fn print_logs(namespace: &str, cluster: &Cluster) {
    eprintln!("a test in the namespace {namespace} failed; the logs of the cluster:\n{}", cluster.logs());
}

/// A name that no other test of this process has.
#[must_use]
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{prefix}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
