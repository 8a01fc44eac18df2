//! What the tasks tell when they start, counted on the node's side: the API server's word is not asked for it.

use std::{
    collections::HashMap,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Stdio},
};

use crate::Cluster;
use anyhow::Context;

/// A web server inside of the cluster's network that logs each path asked for; one in a cluster at a time.
#[derive(Debug)]
pub struct Starts {
    server: Child,
    log: PathBuf,
}

impl Starts {
    /// What a task runs first: it tells its start.
    pub const TELL: &'static str = "wget -q -O - http://10.89.0.1:7000/start/$AYATORI_JOB_UID";

    /// Starts to count.
    pub fn count(cluster: &Cluster) -> anyhow::Result<Self> {
        let log = cluster.dir().join("starts.log");
        let home = cluster.dir().join("starts");
        fs::create_dir_all(&home)?;
        let arguments = ["httpd", "-f", "-vv", "-p", "10.89.0.1:7000", "-h"];
        let mut command = cluster.command("busybox")?;
        command.args(arguments).arg(home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { server: command.spawn().context("start the web server")?, log })
    }

    /// So far, by Job UID.
    pub fn by_uid(&self) -> anyhow::Result<HashMap<String, usize>> {
        let mut starts = HashMap::new();
        for line in fs::read_to_string(&self.log)?.lines() {
            if let Some((_, uid)) = line.split_once("url:/start/") {
                *starts.entry(uid.trim().to_owned()).or_default() += 1;
            }
        }
        Ok(starts)
    }
}

impl Drop for Starts {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
