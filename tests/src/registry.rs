//! A real container registry inside of a cluster's network, from which the node pulls.
//!
//! [`Front`] stands before it where a test needs a registry that fails for a while.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::{Context, ensure};
use http::Request;
use serde_json::json;

use crate::{
    Cluster, Network, eventually,
    tools::{self, Module},
};

mod front;
mod http_client;
mod push;

pub use front::{Answer, Front};

/// Who may pull from a guarded registry.
pub const USER: &str = "puller";
/// Its password; every other one is wrong.
pub const PASSWORD: &str = "right";
/// The two as the registry wants them; bcrypt, with its lowest cost.
const HTPASSWD: &str = "puller:$2b$04$fTlkM1E2VqFbymw/hVc/2OQekveVBjKYgoG8SCR./EUolOPk43Jpa\n";

/// It serves within half a second; a bound for machines that do much else.
const SERVES: Duration = Duration::from_secs(60);

/// Who may use a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Open,
    /// Who knows [`USER`] and [`PASSWORD`].
    Guarded,
}

/// A running registry; dropping it ends it. Those of one cluster share their images.
#[derive(Debug)]
pub struct Registry {
    process: Child,
    network: Network,
    address: SocketAddr,
    access: Access,
}

impl Registry {
    /// Starts one at an address of the cluster's network and waits until it serves.
    ///
    /// # Errors
    /// Its program cannot be built, or it does not start.
    pub async fn start(cluster: &Cluster, address: SocketAddr, access: Access) -> anyhow::Result<Self> {
        let program = tokio::task::spawn_blocking(|| tools::program(Module::Registry, "registry")).await??;
        let name = format!("registry-{}", address.port());
        let images = cluster.dir().join("registry");
        let file = |extension: &str| cluster.dir().join(format!("{name}.{extension}"));
        let mut config = json!({
            "version": "0.1",
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": images}},
            "http": {"addr": address.to_string()},
        });
        if access == Access::Guarded {
            fs::write(file("htpasswd"), HTPASSWD)?;
            config["auth"] = json!({"htpasswd": {"realm": "test", "path": file("htpasswd")}});
        }
        fs::write(file("json"), config.to_string())?;
        // Beside the logs of the cluster's parts, so that a failed test shows its end with theirs.
        let log = File::create(cluster.dir().join("logs").join(format!("{name}.log")))?;
        let mut command = cluster.command(program)?;
        command.arg("serve").arg(file("json"));
        // Nobody collects its traces.
        command.env("OTEL_TRACES_EXPORTER", "none");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = command.spawn().context("start the registry")?;
        let registry = Self { process, network: cluster.network()?, address, access };
        eventually("the registry serves", SERVES, async || {
            let answer = registry.send(Request::get("/v2/"), Vec::new()).await?;
            ensure!(answer.status().is_success(), "{}", answer.status());
            Ok(())
        })
        .await?;
        Ok(registry)
    }

    /// Where it is, for a [`Front`].
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Cluster {
    /// Lets the node find a registry, or a [`Front`], under a host name that no name server knows. It holds from the
    /// next pull on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn name_registry(&self, host: &str, address: SocketAddr) -> anyhow::Result<()> {
        let folder: PathBuf = self.registries().join(host);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("hosts.toml"), format!("server = \"http://{address}\"\n"))
            .with_context(|| format!("write {}", folder.display()))
    }
}
