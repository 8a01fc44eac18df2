//! What `deploy/self-managed` installs, but for the Deployment: the process runs beside the API server here, and its
//! webhook is reached by URL. It runs with the rights of its ServiceAccount, so a right that is missing shows.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Cluster, Options};
use anyhow::{Context, ensure};
use ayatori_webhook::configuration::{Target, configurations};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use super::{kubectl::Kubectl, process::Ports};

/// The namespace of the manifests.
pub const SYSTEM: &str = "ayatori-system";
/// The ServiceAccount of the manifests.
pub const ACCOUNT: &str = "ayatori";

/// A cluster as the suite needs it.
pub fn options() -> Options {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/product/audit_policy.yaml");
    let flags = [
        // The last one counts: bodies, which the library's own policy leaves out.
        format!("--audit-policy-file={}", policy.display()),
        // With it, blockOwnerDeletion needs a right (`jobs/finalizers`).
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement".to_owned(),
    ];
    Options { audit: true, flags: [("kube-apiserver".to_owned(), flags.into())].into(), ..Options::with_node() }
}

/// Installs everything but the process; returns the process's kubeconfig.
pub async fn install(cluster: &Cluster) -> anyhow::Result<PathBuf> {
    add_definitions(cluster).await?;
    let kubectl = Kubectl::of(cluster);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/self-managed");
    let manifests = kubectl.ok(&["kustomize", folder.to_str().context("a path in UTF-8")?])?.stdout;
    let left_out = ["kind: Deployment", "kind: MutatingWebhookConfiguration", "kind: ValidatingWebhookConfiguration"];
    let is_wanted = |manifest: &&str| !manifest.lines().any(|line| left_out.contains(&line));
    let wanted: Vec<&str> = manifests.split("\n---\n").filter(is_wanted).collect();
    kubectl.ok_with(&["apply", "-f", "-"], &wanted.join("\n---\n"))?;
    let client = cluster.client().await?;
    let (mutating, validating) = configurations(&Target::Url(format!("https://127.0.0.1:{}", Ports::MAIN.webhook)));
    Api::all(client.clone()).create(&PostParams::default(), &mutating).await?;
    Api::all(client).create(&PostParams::default(), &validating).await?;
    kubeconfig_of(cluster, SYSTEM, ACCOUNT).await
}

/// The four definitions.
pub async fn add_definitions(cluster: &Cluster) -> anyhow::Result<()> {
    let definitions: Vec<String> =
        ayatori_crds::definitions::all()?.iter().map(|definition| definition.object.to_string()).collect();
    cluster.add_crds(&definitions.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// A token of a ServiceAccount.
pub async fn token_of(cluster: &Cluster, namespace: &str, account: &str) -> anyhow::Result<String> {
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client().await?, namespace);
    let spec = TokenRequestSpec { expiration_seconds: Some(24 * 3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    answer.status.and_then(|status| status.token).context("a token")
}

/// A kubeconfig of a ServiceAccount, for programs inside of the cluster's namespaces.
pub async fn kubeconfig_of(cluster: &Cluster, namespace: &str, account: &str) -> anyhow::Result<PathBuf> {
    let token = token_of(cluster, namespace, account).await?;
    let text = fs::read_to_string(cluster.inside_kubeconfig())?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).context("read the administrator's kubeconfig")?;
    let user = kubeconfig.pointer_mut("/users/0/user").context("a user")?;
    *user = json!({"token": token});
    let path = cluster.dir().join(format!("{namespace}-{account}.kubeconfig"));
    fs::write(&path, kubeconfig.to_string())?;
    ensure!(!kubeconfig.to_string().contains("client-key"), "the administrator's key is still there");
    Ok(path)
}
