//! The node: containerd with runc, a bridge network, kubelet and kube-proxy.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;
use tokio::{net::UnixStream, process::Command};

use crate::{
    folder::{Folder, Plan},
    image::PAUSE,
    parts::run_to_end,
    pki::{NODE_ADDRESS, NODE_NAME},
    supervisor::Supervisor,
    wait::eventually,
};

/// The addresses of pods.
const PODS: &str = "10.88.0.0/16";
/// containerd serves within half a second, a node is ready about a second after kubelet's start; bounds for machines
/// that do much else.
const RUNTIME_READY: Duration = Duration::from_secs(60);
const NODE_READY: Duration = Duration::from_secs(90);

/// Starts containerd and imports the images.
pub(crate) async fn start_runtime(folder: &Folder, plan: &Plan, supervisor: &Supervisor) -> anyhow::Result<()> {
    let dir = folder.node();
    write_network(&dir)?;
    let config = folder.path("containerd.toml");
    fs::write(&config, containerd_config(folder, plan)?)?;
    let containerd = plan.program("containerd")?;
    let mut command = Command::new(containerd);
    command.arg("--config").arg(config);
    // containerd finds its shim beside itself only by the path.
    command.env("PATH", path_with(containerd.parent().context("containerd is in a folder")?)?);
    supervisor.start("containerd", command)?;
    eventually("containerd serves", RUNTIME_READY, async || Ok(UnixStream::connect(socket(&dir)).await?)).await?;
    for image in &plan.images {
        run_to_end(&mut import(folder, plan, image)?).await?;
    }
    Ok(())
}

/// The command that gives an image archive to containerd; for inside.
fn import(folder: &Folder, plan: &Plan, archive: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(plan.program("ctr")?);
    command.args(runtime_arguments(folder)).args(["images", "import"]).arg(archive);
    Ok(command)
}

/// The arguments of `ctr` that lead it to what the kubelet uses.
pub(crate) fn runtime_arguments(folder: &Folder) -> [String; 4] {
    let address = socket(&folder.node()).display().to_string();
    ["--address", &address, "--namespace", "k8s.io"].map(str::to_owned)
}

/// Starts kubelet and kube-proxy; returns when the node is ready and takes pods.
pub(crate) async fn join(
    folder: &Folder,
    plan: &Plan,
    supervisor: &Supervisor,
    client: &kube::Client,
) -> anyhow::Result<()> {
    let config = folder.path("kubelet.json");
    fs::write(&config, serde_json::to_vec_pretty(&kubelet_config(folder)?)?)?;
    let mut kubelet = Command::new(plan.program("kubelet")?);
    kubelet.args([
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", folder.inside_kubeconfig("kubelet").display()),
        format!("--hostname-override={NODE_NAME}"),
        format!("--node-ip={NODE_ADDRESS}"),
        format!("--root-dir={}", folder.node().join("kubelet").display()),
        format!("--cert-dir={}", folder.node().join("kubelet-pki").display()),
    ]);
    supervisor.start("kubelet", kubelet)?;

    let config = folder.path("kube-proxy.json");
    fs::write(&config, serde_json::to_vec_pretty(&proxy_config(folder))?)?;
    let mut proxy = Command::new(plan.program("kube-proxy")?);
    proxy.arg(format!("--config={}", config.display())).arg(format!("--hostname-override={NODE_NAME}"));
    supervisor.start("kube-proxy", proxy)?;
    wait_until_ready(client).await
}

fn socket(dir: &Path) -> std::path::PathBuf {
    dir.join("containerd.sock")
}

fn path_with(dir: &Path) -> anyhow::Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(dir.to_owned()).chain(std::env::split_paths(&path)))?)
}

fn write_network(dir: &Path) -> anyhow::Result<()> {
    let networks = dir.join("cni");
    fs::create_dir_all(&networks)?;
    let network = json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [{
        "type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
        "ipam": {
            "type": "host-local",
            "dataDir": dir.join("cni-addresses"),
            "ranges": [[{"subnet": PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }]});
    fs::write(networks.join("pods.conflist"), serde_json::to_vec(&network)?)
        .context("write the network's configuration")
}

fn containerd_config(folder: &Folder, plan: &Plan) -> anyhow::Result<String> {
    let plugins = plan.program("bridge")?.parent().context("a plugin is in a folder")?.display();
    let runc = plan.program("runc")?.display();
    let (dir, registries) = (folder.node(), folder.registries());
    let (dir, registries) = (dir.display(), registries.display());
    // Without CAP_SYS_RESOURCE every sandbox would fail at lowering its score for the out-of-memory killer.
    Ok(format!(
        r#"version = 3
root = "{dir}/containerd"
state = "{dir}/containerd-state"
[grpc]
address = "{dir}/containerd.sock"
[plugins.'io.containerd.internal.v1.opt']
path = "{dir}/containerd-opt"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE}"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{registries}"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{plugins}"]
conf_dir = "{dir}/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"#
    ))
}

fn kubelet_config(folder: &Folder) -> anyhow::Result<serde_json::Value> {
    let pki = |name: &str| folder.pki().join(name);
    let dir = folder.node();
    let resolv = folder.path("resolv.conf");
    // Inside there is no name server.
    fs::write(&resolv, "")?;
    Ok(json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "0.0.0.0",
        "authentication": {"anonymous": {"enabled": false}, "x509": {"clientCAFile": pki("ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki("kubelet-server.crt"),
        "tlsPrivateKeyFile": pki("kubelet-server.key"),
        "containerRuntimeEndpoint": format!("unix://{}", socket(&dir).display()),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": [],
        "healthzPort": 0,
        "resolvConf": resolv,
        // A test's images are few, and its machine's disk may well be fuller than a node's should be.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "podLogsDir": dir.join("pod-logs"),
        "volumePluginDir": dir.join("volume-plugins"),
        // Many tests at once on one node, and a node that is found lost or ready soon.
        "maxPods": 250,
        // A registry that a test silences keeps no other test from its image.
        "serializeImagePulls": false,
        "nodeStatusUpdateFrequency": "2s",
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "syncFrequency": "10s",
    }))
}

fn proxy_config(folder: &Folder) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": folder.inside_kubeconfig("proxy")},
        "mode": "nftables",
        "clusterCIDR": PODS,
        // The limits of connection tracking belong to the machine: leave them.
        "conntrack": {"maxPerCore": 0, "min": 0},
        "healthzBindAddress": "127.0.0.1:10256",
    })
}

async fn wait_until_ready(client: &kube::Client) -> anyhow::Result<()> {
    let nodes = kube::Api::<Node>::all(client.clone());
    eventually("the node is ready", NODE_READY, async || {
        let node = nodes.get(NODE_NAME).await?;
        ensure!(takes_pods(&node), "{}", serde_json::to_string(&node.status.map(|status| status.conditions))?);
        Ok(())
    })
    .await
}

/// Ready, and the controller manager has taken away the taints of a node that is not.
fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    conditions.clone().any(|condition| condition.type_ == "Ready" && condition.status == "True") && taints.count() == 0
}
