//! The data folder of a cluster: where each file is, whether its owner still lives, and its end.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::cgroups::Groups;

/// What the owner asks for, for the stages.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The path of each program by its name.
    pub(crate) programs: BTreeMap<String, PathBuf>,
    /// Whether the cluster has a node.
    pub(crate) node: bool,
    /// Whether the API server writes an audit log.
    pub(crate) audit: bool,
    /// Image archives to import before the node is ready.
    pub(crate) images: Vec<PathBuf>,
    /// More flags of a part, by its name.
    pub(crate) flags: BTreeMap<String, Vec<String>>,
}

impl Plan {
    /// The path of a program.
    pub(crate) fn program(&self, name: &str) -> anyhow::Result<&Path> {
        self.programs.get(name).map(PathBuf::as_path).with_context(|| format!("the plan has no program {name}"))
    }
}

const PREFIX: &str = "ayatori-cluster-";
/// A folder without a lock is in the making; older than this its owner died before it made the lock.
const UNLOCKED_FOR: Duration = Duration::from_secs(600);

/// A folder `ayatori-cluster-*` under the system's folder of temporary files; only its user may look inside.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder with a random name.
    pub(crate) fn create() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir().context("make a data folder")?;
        let folder = Self(dir.keep());
        fs::create_dir(folder.logs())?;
        fs::create_dir(folder.path("images"))?;
        fs::create_dir(folder.scratch())?;
        fs::create_dir(folder.node())?;
        Ok(folder)
    }

    pub(crate) fn open(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    /// The last part of the folder's path: the name of the cluster, and of its cgroups.
    pub(crate) fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).unwrap_or(PREFIX)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Keys and certificates.
    pub(crate) fn pki(&self) -> PathBuf {
        self.path("pki")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.path("logs")
    }

    pub(crate) fn log(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    /// The API server for programs outside of the namespaces.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// The API server for programs inside, as one of the clients of [`crate::pki`].
    pub(crate) fn inside_kubeconfig(&self, client: &str) -> PathBuf {
        self.path(&format!("inside-{client}.kubeconfig"))
    }

    /// The socket that leads from outside to the API server.
    pub(crate) fn api_socket(&self) -> PathBuf {
        self.path("api.sock")
    }

    /// The data of containerd and kubelet. On a disk: kubelet finds no statistics of a file system in memory, and
    /// without them it never evicts a pod.
    pub(crate) fn node(&self) -> PathBuf {
        self.path("node")
    }

    /// How containerd reaches registries: a folder for each host name.
    pub(crate) fn registries(&self) -> PathBuf {
        self.node().join("registries")
    }

    /// A file system in memory that exists only inside: etcd's data, and what covers folders of the machine.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    /// The PID of the first process inside, as seen from outside.
    pub(crate) fn init_pid(&self) -> PathBuf {
        self.path("init.pid")
    }

    /// The PID of a part, as seen inside.
    pub(crate) fn pid(&self, part: &str) -> PathBuf {
        self.path(&format!("{part}.pid"))
    }

    /// While this exists, a part that has ended is not started again.
    pub(crate) fn hold(&self, part: &str) -> PathBuf {
        self.path(&format!("{part}.hold"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.path("audit.jsonl")
    }

    pub(crate) fn write_plan(&self, plan: &Plan) -> anyhow::Result<()> {
        fs::write(self.path("plan.json"), serde_json::to_vec_pretty(plan)?).context("write the plan")
    }

    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        Ok(serde_json::from_slice(&fs::read(self.path("plan.json")).context("read the plan")?)?)
    }

    /// Written before the groups are made: whatever happens, a sweep finds them.
    pub(crate) fn write_groups(&self, groups: &Groups) -> anyhow::Result<()> {
        fs::write(self.path("cgroups.json"), serde_json::to_vec(groups)?).context("write the cgroups")
    }

    /// The groups of this cluster; none if it has none.
    pub(crate) fn groups(&self) -> Groups {
        fs::read(self.path("cgroups.json")).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Says that this process keeps the folder; the kernel drops the lock when the process ends, however it ends.
    /// The lock is taken before the file has its name, so there is no unlocked one.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        let fresh = self.path("lock.new");
        let file = File::create(&fresh)?;
        file.try_lock().context("lock a new file")?;
        fs::rename(fresh, self.path("lock"))?;
        Ok(file)
    }

    /// Whether nobody keeps the folder.
    fn is_abandoned(&self) -> bool {
        match File::open(self.path("lock")) {
            Ok(file) => file.try_lock().is_ok(),
            Err(_) => self
                .0
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > UNLOCKED_FOR)),
        }
    }

    /// Removes the cgroups, then the folder itself.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        self.groups().remove()?;
        fs::remove_dir_all(&self.0).with_context(|| format!("remove {}", self.0.display()))?;
        ensure!(!self.0.exists(), "{} is still there", self.0.display());
        Ok(())
    }

    /// Whether this user made it: anybody may put something of that name where temporary files are, and what it says of
    /// control groups is believed.
    fn is_our_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        fs::symlink_metadata(&self.0).is_ok_and(|data| data.is_dir() && data.uid() == own)
    }

    /// Removes what clusters of this user left whose `host` process was killed. Failures are for the next sweep: one that
    /// another process sweeps at the same time.
    pub(crate) fn sweep() {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
            let folder = Self(entry.path());
            if folder.is_our_own() && folder.is_abandoned() {
                let _ = folder.remove();
            }
        }
    }
}
