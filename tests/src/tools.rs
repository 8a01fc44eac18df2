//! The programs of the cluster: built once from pinned Go modules (`tests/tools`) into a cache folder.
//!
//! The folder's name carries a hash of `go.mod` and `go.sum`, so another version is another folder and nothing is
//! ever overwritten. Two processes that need the same module wait for one build.

use std::{
    fs::{self, File, TryLockError},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::digest::sha256_hex;

/// One Go module of tools; the name of its folder in `tests/tools` and in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Module {
    /// The etcd server.
    Etcd,
    /// API server, controller manager, scheduler, kubelet, kube-proxy, kubectl.
    Kubernetes,
    /// containerd, its shim, ctr and the network plugins.
    Node,
    /// The registry of the CNCF's distribution project.
    Registry,
}

impl Module {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Etcd, Self::Kubernetes, Self::Node, Self::Registry];

    fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Kubernetes => "kubernetes",
            Self::Node => "node",
            Self::Registry => "registry",
        }
    }
}

/// The folder of the caches: `AYATORI_CACHE`, else `ayatori` in the user's cache folder.
///
/// # Errors
/// None of `AYATORI_CACHE`, `XDG_CACHE_HOME` and `HOME` is set.
pub fn cache() -> anyhow::Result<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("AYATORI_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|dir| dir.join("ayatori")))
        .or_else(|| folder("HOME").map(|dir| dir.join(".cache/ayatori")))
        .context("no cache folder: set AYATORI_CACHE, XDG_CACHE_HOME or HOME")
}

/// Where a program is: in `KUBEBUILDER_ASSETS` if that holds it and it is one of the control plane, else in the built
/// module.
///
/// # Errors
/// The module cannot be built.
pub fn program(module: Module, name: &str) -> anyhow::Result<PathBuf> {
    let asset = std::env::var_os("KUBEBUILDER_ASSETS").map(|dir| Path::new(&dir).join(name));
    match asset.filter(|path| matches!(module, Module::Etcd | Module::Kubernetes) && path.is_file()) {
        Some(path) => std::path::absolute(&path).with_context(|| format!("{}", path.display())),
        None => Ok(build(module)?.join(name)),
    }
}

/// The folder with a module's programs, built if the cache has none.
///
/// # Errors
/// Go is missing, the build fails, or another process has been building for half an hour.
pub fn build(module: Module) -> anyhow::Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(module.name());
    let read = |file| fs::read(source.join(file)).with_context(|| format!("{}/{file}", source.display()));
    let go_mod = read("go.mod")?;
    let mut pinned = go_mod.clone();
    pinned.extend(read("go.sum")?);
    let hash = sha256_hex(&pinned);
    let tools = cache()?.join("tools");
    // 16 hex digits: 64 bits are plenty to tell versions apart.
    let built = tools.join(format!("{}-{}", module.name(), &hash[..16]));
    if built.is_dir() {
        return Ok(built);
    }
    fs::create_dir_all(&tools).with_context(|| format!("{}", tools.display()))?;
    let _lock = lock(&built.with_extension("lock"))?;
    if !built.is_dir() {
        compile(module, &source, &String::from_utf8_lossy(&go_mod), &built)
            .with_context(|| format!("build the Go module {}", source.display()))?;
    }
    Ok(built)
}

/// How long one waits for the build of another process: a cold build of Kubernetes takes 5.5 minutes on 2 cores.
const LONGEST_BUILD: Duration = Duration::from_secs(30 * 60);

fn lock(path: &Path) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("{}", path.display()))?;
    let deadline = Instant::now() + LONGEST_BUILD;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                ensure!(Instant::now() < deadline, "another process holds {} for too long", path.display());
                std::thread::sleep(Duration::from_millis(200));
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("{}", path.display())),
        }
    }
}

fn compile(module: Module, source: &Path, go_mod: &str, built: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    say(&format!("building the tools of {} (once; a cold build takes minutes)", module.name()));
    let fresh = built.with_extension("new");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir(&fresh)?;
    let status = Command::new("go")
        .args(["build", "-trimpath", &format!("-ldflags={}", link_flags(go_mod)), "-o"])
        .arg(&fresh)
        .arg("tool")
        .current_dir(source)
        .env("CGO_ENABLED", "0")
        .status()
        .context("start `go`: the tools need the Go toolchain")?;
    ensure!(status.success(), "`go build` ended with {status}");
    // The main package of etcd is called "server".
    if module == Module::Etcd {
        fs::rename(fresh.join("server"), fresh.join("etcd"))?;
    }
    fs::rename(&fresh, built)?;
    say(&format!("built {} in {:.0} s", module.name(), start.elapsed().as_secs_f64()));
    Ok(())
}

/// No symbols (a third of the size), and the version that a release build would carry: without it the API server says
/// v0.0.0 and its clients warn.
fn link_flags(go_mod: &str) -> String {
    let mut flags = "-s -w".to_owned();
    let version = go_mod.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    let version = version.and_then(|rest| rest.split_whitespace().next());
    if let Some(version) = version {
        let mut numbers = version.trim_start_matches('v').split('.');
        for (name, value) in [("gitVersion", Some(version)), ("gitMajor", numbers.next()), ("gitMinor", numbers.next())]
        {
            if let Some(value) = value {
                flags += &format!(" -X k8s.io/component-base/version.{name}={value}");
            }
        }
    }
    flags
}

/// Tells the person who runs the tests what takes so long, or what does not run. Not by `eprintln!`, which the test
/// harness would keep to itself.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "ayatori-tests: {text}");
}

#[cfg(test)]
mod tests {
    use super::link_flags;

    #[test]
    fn the_version_of_kubernetes_is_stamped() {
        let flags = link_flags("require (\n\tk8s.io/kubernetes v1.36.3\n)\n");
        assert_eq!(
            flags,
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
             -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
        );
        assert_eq!(link_flags("require go.etcd.io/etcd/server/v3 v3.7.3"), "-s -w");
    }
}
