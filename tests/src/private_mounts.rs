//! Folders of the system that the node's programs write into by fixed paths: inside they get a layer of their own in
//! memory, so nothing is left on the machine and two clusters do not meet.

use std::{fs, os::unix::fs::symlink, path::Path};

use anyhow::Context;
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

/// containerd's shims and runc (`/run`), the network plugins' cache and kubelet's device plugins (`/var/lib`),
/// kubelet's links to container logs (`/var/log`).
const FIXED: &[&str] = &["/run", "/var/lib", "/var/log"];

/// What those programs write there: on a machine with a container runtime of its own these exist, and are not ours.
const OURS: &[&str] =
    &["cni", "containerd", "containers", "kubelet", "netns", "nri", "pods", "runc", "xtables.lock", "kube-proxy"];

/// Mounts the scratch folder: a file system in memory that ends with the namespace.
pub(crate) fn scratch(dir: &Path) -> anyhow::Result<()> {
    mount("tmpfs", dir, "tmpfs", MountFlags::empty(), Some(c"mode=0700"))
        .with_context(|| format!("mount {}", dir.display()))
}

/// Covers each fixed folder by an empty one with links to what it held: all that was there is readable (this very
/// program may lie there), all that is made there is ours.
pub(crate) fn cover_fixed_folders(scratch: &Path) -> anyhow::Result<()> {
    for folder in FIXED {
        cover(Path::new(folder), &scratch.join("machine").join(folder.trim_start_matches('/')))
            .with_context(|| format!("cover {folder}"))?;
    }
    Ok(())
}

fn cover(folder: &Path, original: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(original)?;
    mount_bind_recursive(folder, original)?;
    mount("tmpfs", folder, "tmpfs", MountFlags::empty(), Some(c"mode=0755"))?;
    for entry in fs::read_dir(original)? {
        let name = entry?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            symlink(original.join(&name), folder.join(&name))?;
        }
    }
    Ok(())
}
