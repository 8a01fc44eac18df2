//! The two API servers.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use ayatori_tests::{Cluster, Options, suite, tools};
use http::Request;
use tokio::sync::OnceCell;

pub(crate) use ayatori_tests::api::requests::{Answer, Server, Verb};

use crate::kinds::Kind;

/// Usually a second.
const PUBLISHED: Duration = Duration::from_secs(30);

/// The shared cluster of this binary with our definitions.
pub(crate) async fn our_cluster() -> anyhow::Result<&'static Cluster> {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let cluster = suite::shared_cluster(Options::default()).await?;
    let apply = async || {
        let definitions = ayatori_crds::definitions::all()?;
        let manifests: Vec<String> = definitions.iter().map(|definition| definition.object.to_string()).collect();
        cluster.add_crds(&manifests.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        published(&cluster.client().await?).await
    };
    APPLIED.get_or_try_init(apply).await?;
    Ok(cluster)
}

/// Waits until what kubectl asks first (which resources there are, and their fields) tells of all four kinds: that
/// comes a little later than the resources themselves.
async fn published(client: &kube::Client) -> anyhow::Result<()> {
    let group = format!("apis/{}/v1alpha1", ayatori_crds::names::GROUP);
    let deadline = Instant::now() + PUBLISHED;
    for path in [format!("/{group}"), format!("/openapi/v3/{group}")] {
        while {
            let text = client.request_text(Request::get(&path).body(Vec::new())?).await.unwrap_or_default();
            !Kind::ALL.iter().all(|kind| text.contains(&format!(r#""kind":"{}""#, kind.name())))
        } {
            ensure!(Instant::now() < deadline, "{path} does not tell of all kinds");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// The API server with our definitions.
pub(crate) async fn ours() -> anyhow::Result<Server> {
    Ok(Server::new(our_cluster().await?.client().await?))
}

/// The definitions that the project started from; they are beside the project's folder, and not everywhere.
pub(crate) fn reference_definitions() -> anyhow::Result<Option<Vec<String>>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/crds");
    if !folder.is_dir() {
        tools::say("there is no ../shared/reference/crds: our definitions are compared with their own record only");
        return Ok(None);
    }
    let mut manifests = Vec::new();
    for kind in Kind::ALL {
        let file = folder.join(kind.file());
        let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        manifests.push(text.trim_start().trim_start_matches("---").to_owned());
    }
    Ok(Some(manifests))
}

/// The API server with the reference definitions, where these are.
pub(crate) async fn reference() -> anyhow::Result<Option<Server>> {
    static SECOND: OnceCell<Cluster> = OnceCell::const_new();
    let Some(manifests) = reference_definitions()? else { return Ok(None) };
    let start = async || {
        let cluster = Cluster::start(Options::default()).await?;
        cluster.add_crds(&manifests.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        anyhow::Ok(cluster)
    };
    Ok(Some(Server::new(SECOND.get_or_try_init(start).await?.client().await?)))
}
