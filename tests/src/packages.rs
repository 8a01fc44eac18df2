//! Programs of the operating system that the cluster runs: checked before it starts, installed where that is possible.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use crate::{elf, tools::say};

/// A program and the Debian package that brings it.
type Needed = (&'static str, &'static str);

/// What every cluster needs: its namespaces and its links.
pub(crate) const FOR_NAMESPACES: &[Needed] =
    &[("unshare", "util-linux"), ("setpriv", "util-linux"), ("ip", "iproute2")];

/// What a node needs besides. runc is Debian's because a Go build without libseccomp refuses every pod sandbox.
pub(crate) const FOR_NODE: &[Needed] =
    &[("runc", "runc"), ("iptables", "iptables"), ("nft", "nftables"), (BUSYBOX, "busybox-static")];

/// The program of which the images of tests are made.
pub(crate) const BUSYBOX: &str = "busybox";

/// Makes sure that the programs are there: as root it installs the missing ones, else it says which to install.
pub(crate) fn require(needed: &[Needed]) -> anyhow::Result<()> {
    let missing = || -> Vec<Needed> { needed.iter().copied().filter(|(program, _)| !serves(program)).collect() };
    let packages = |needed: &[Needed]| needed.iter().map(|(_, package)| *package).collect::<Vec<_>>().join(" ");
    let absent = missing();
    if absent.is_empty() {
        return Ok(());
    }
    let names = packages(&absent);
    ensure!(is_root() && find("apt-get").is_some(), "programs are missing; install the Debian packages: {names}");
    say(&format!("installing {names}"));
    for arguments in [&["update", "-q"][..], &["install", "-q", "--yes", "--no-install-recommends"][..]] {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if arguments[0] == "install" {
            apt.args(absent.iter().map(|(_, package)| package));
        }
        let output = apt.output().context("start apt-get")?;
        // A failed update is no reason to stop: the lists at hand may do.
        ensure!(
            output.status.success() || arguments[0] == "update",
            "cannot install {names}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let absent = missing();
    ensure!(absent.is_empty(), "still missing after an installation: {}", packages(&absent));
    Ok(())
}

/// Whether the program is there. busybox goes into images that hold nothing else: one that needs a loader, as that of
/// Debian's package `busybox`, is of no use.
fn serves(program: &str) -> bool {
    let is_static = |path: PathBuf| std::fs::read(path).is_ok_and(|program| elf::is_static(&program));
    find(program).is_some_and(|path| program != BUSYBOX || is_static(path))
}

/// The path of a program; administration folders count too, as a normal user's PATH often lacks them.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Whether this process may make namespaces, cgroups and mounts of the whole machine.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
