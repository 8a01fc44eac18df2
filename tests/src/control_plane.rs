//! etcd, API server, controller manager and scheduler.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, ensure};
use http::Request;
use serde_json::json;
use tokio::{process::Command, time::timeout};

use crate::{
    client,
    folder::{Folder, Plan},
    pki::NODE_ADDRESS,
    supervisor::Supervisor,
    wait::eventually,
};

/// The API server inside. Every cluster has its own network, so ports need no choosing.
pub(crate) const API_PORT: u16 = 6443;
const ETCD: &str = "http://127.0.0.1:2379";
/// Three to four seconds on two idle cores; a bound for machines that do much else.
const READY: Duration = Duration::from_secs(90);

/// The addresses of Services.
pub(crate) const SERVICES: &str = "10.0.0.0/24";

/// Starts the parts; returns when the API server serves and the other parts run.
pub(crate) async fn start(folder: &Folder, plan: &Plan, supervisor: &Supervisor) -> anyhow::Result<kube::Client> {
    for client in ["admin", "controller-manager", "scheduler", "kubelet", "proxy"] {
        let text = crate::pki::kubeconfig(&folder.pki(), client, &format!("https://127.0.0.1:{API_PORT}"))?;
        fs::write(folder.inside_kubeconfig(client), text)?;
    }
    let part = |name: &str, arguments: Vec<String>| -> anyhow::Result<()> {
        let mut command = Command::new(plan.program(name)?);
        command.args(arguments).args(plan.flags.get(name).into_iter().flatten());
        supervisor.start(name, command)
    };
    part("etcd", etcd(&folder.scratch()))?;
    part("kube-apiserver", api_server(folder, plan.audit)?)?;
    let client = client::connect(&folder.inside_kubeconfig("admin")).await?;
    wait_for_api(&client).await?;
    // Not earlier: they end when they may not read their configuration yet.
    part("kube-controller-manager", controller_manager(folder))?;
    part("kube-scheduler", scheduler(folder))?;
    Ok(client)
}

fn etcd(scratch: &Path) -> Vec<String> {
    vec![
        format!("--data-dir={}", scratch.join("etcd").display()),
        format!("--listen-client-urls={ETCD}"),
        format!("--advertise-client-urls={ETCD}"),
        "--listen-peer-urls=http://127.0.0.1:2380".into(),
        // The data ends with the cluster.
        "--unsafe-no-fsync".into(),
    ]
}

fn api_server(folder: &Folder, audit: bool) -> anyhow::Result<Vec<String>> {
    let pki = |name: &str| folder.pki().join(name).display().to_string();
    let mut flags = vec![
        format!("--etcd-servers={ETCD}"),
        format!("--secure-port={API_PORT}"),
        "--bind-address=0.0.0.0".into(),
        format!("--advertise-address={NODE_ADDRESS}"),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={}", pki("service-account.pub")),
        format!("--service-account-signing-key-file={}", pki("service-account.key")),
        format!("--service-cluster-ip-range={SERVICES}"),
        "--authorization-mode=Node,RBAC".into(),
        "--enable-admission-plugins=NodeRestriction".into(),
        format!("--kubelet-client-certificate={}", pki("apiserver-to-kubelet.crt")),
        format!("--kubelet-client-key={}", pki("apiserver-to-kubelet.key")),
        format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".into(),
        "--allow-privileged=true".into(),
    ];
    if audit {
        let policy = folder.path("audit-policy.yaml");
        // Who did what and was it allowed; no bodies.
        let rules = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}],
        });
        fs::write(&policy, rules.to_string())?;
        flags.push(format!("--audit-policy-file={}", policy.display()));
        flags.push(format!("--audit-log-path={}", folder.audit_log().display()));
        // In MiB. Unless told otherwise it begins another file after 100, and who reads the log sees the end of it only.
        flags.push("--audit-log-maxsize=10000".to_owned());
    }
    Ok(flags)
}

fn controller_manager(folder: &Folder) -> Vec<String> {
    let kubeconfig = folder.inside_kubeconfig("controller-manager");
    let mut flags = with_kubeconfig(&kubeconfig);
    flags.extend([
        format!("--service-account-private-key-file={}", folder.pki().join("service-account.key").display()),
        format!("--root-ca-file={}", folder.pki().join("ca.crt").display()),
        "--use-service-account-credentials".into(),
        // A new namespace must have its ServiceAccount at once, also when many come together.
        "--kube-api-qps=200".into(),
        "--kube-api-burst=400".into(),
    ]);
    flags
}

fn scheduler(folder: &Folder) -> Vec<String> {
    let mut flags = with_kubeconfig(&folder.inside_kubeconfig("scheduler"));
    flags.extend(["--kube-api-qps=200".into(), "--kube-api-burst=400".into()]);
    flags
}

/// Flags that controller manager and scheduler share.
fn with_kubeconfig(kubeconfig: &Path) -> Vec<String> {
    let mut flags: Vec<String> = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
        .map(|flag| format!("--{flag}={}", kubeconfig.display()))
        .into();
    // There is one of each.
    flags.extend(["--leader-elect=false".into(), "--bind-address=127.0.0.1".into()]);
    flags
}

async fn wait_for_api(client: &kube::Client) -> anyhow::Result<()> {
    eventually("the API server is ready", READY, async || {
        let request = Request::get("/readyz").body(Vec::new())?;
        let text = timeout(Duration::from_secs(5), client.request_text(request)).await.context("no answer")??;
        ensure!(text == "ok", "{text}");
        Ok(())
    })
    .await
}

/// Waits for the ServiceAccount `default` of a namespace: without it no pod can be made there.
pub(crate) async fn wait_for_service_account(client: &kube::Client, namespace: &str) -> anyhow::Result<()> {
    use k8s_openapi::api::core::v1::ServiceAccount;
    let accounts = kube::Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    eventually("a ServiceAccount for pods", READY, async || Ok(accounts.get("default").await?)).await.map(drop)
}
