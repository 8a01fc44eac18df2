//! One control group of our own in each hierarchy, so that the kubelets of two clusters do not share `/kubepods`.
//!
//! With version 1 there is a hierarchy for each controller, with version 2 one for all; machines with both exist. In
//! version 2 a group that hands controllers to its children may hold no process itself: therefore the cluster's own
//! processes live in a leaf there.

use std::{
    ffi::CString,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use rustix::{
    mount::{MountFlags, UnmountFlags},
    process::{Pid, Signal},
};
use serde::{Deserialize, Serialize};

/// The leaf (version 2) of a cluster's own processes.
const LEAF: &str = "parts";
/// The leaf (version 2) for processes that are in the way in the group above ours, as in a container.
const HOST_LEAF: &str = "ayatori-host";
/// Longest wait for killed processes to leave a group: pods with big memories take a second or two.
const REMOVAL: Duration = Duration::from_secs(20);

/// A cgroup file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hierarchy {
    mount: PathBuf,
    /// The options that mount it again (version 1), such as `cpu` or `none,name=systemd`; none with version 2.
    options: Option<String>,
}

/// Our group in one hierarchy.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Group {
    hierarchy: Hierarchy,
    path: PathBuf,
    /// Where this process was before.
    home: PathBuf,
}

/// The groups of one cluster, one in each hierarchy; empty for a cluster without a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    /// Where the groups of this name will be; makes nothing.
    pub(crate) fn plan(name: &str) -> anyhow::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("read the mounts")?;
        let own = fs::read_to_string("/proc/self/cgroup").context("read the cgroups of this process")?;
        let groups = hierarchies(&mounts).into_iter().map(|hierarchy| {
            let home = hierarchy.mount.join(own_path(&own, hierarchy.options.as_deref()).trim_start_matches('/'));
            // A container may show a path that is outside of what it sees.
            let home = if home.is_dir() { home } else { hierarchy.mount.clone() };
            // Version 1: below the group of this process, whose limits hold for us too. Version 2: that group holds
            // processes, so it cannot have children with controllers; the top can.
            let parent = if hierarchy.is_unified_with_controllers() { &hierarchy.mount } else { &home };
            Group { path: parent.join(name), home, hierarchy }
        });
        Ok(Self(groups.collect()))
    }

    /// Makes the groups.
    pub(crate) fn create(&self) -> anyhow::Result<()> {
        for group in &self.0 {
            group.create().with_context(|| format!("make the cgroup {}", group.path.display()))?;
        }
        Ok(())
    }

    /// Runs `spawn` while this process is in the groups: what it starts stays there. The new cgroup namespace shows
    /// these groups as its roots.
    pub(crate) fn during<T>(&self, spawn: impl FnOnce() -> T) -> anyhow::Result<T> {
        let moved = self.0.iter().try_for_each(|group| join(&group.path));
        let result = moved.map(|()| spawn());
        for group in &self.0 {
            join(&group.way_back())?;
        }
        result
    }

    /// Outside, once the namespaces are made: with version 2 moves the cluster's processes into the leaf and gives the
    /// controllers to the group's children.
    pub(crate) fn settle(&self) -> anyhow::Result<()> {
        for group in self.0.iter().filter(|group| group.hierarchy.is_unified_with_controllers()) {
            evacuate(&group.path, LEAF)?;
            enable_controllers(&group.path)?;
        }
        Ok(())
    }

    /// Moves this process into the groups of a cluster that runs.
    pub(crate) fn enter_leaf(&self) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|group| {
            let unified = group.hierarchy.is_unified_with_controllers();
            join(&if unified { group.path.join(LEAF) } else { group.path.clone() })
        })
    }

    /// Inside: mounts each hierarchy anew, so that its top is our group.
    pub(crate) fn remount(&self) -> anyhow::Result<()> {
        for Group { hierarchy: Hierarchy { mount, options }, .. } in &self.0 {
            rustix::mount::unmount(mount, UnmountFlags::DETACH)
                .with_context(|| format!("unmount {}", mount.display()))?;
            let kind = if options.is_some() { "cgroup" } else { "cgroup2" };
            let data = options.as_deref().map(CString::new).transpose()?;
            rustix::mount::mount(kind, mount, kind, MountFlags::empty(), data.as_deref())
                .with_context(|| format!("mount {}", mount.display()))?;
        }
        Ok(())
    }

    /// Kills what is in the groups and removes them with all groups below; those already gone are fine.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + REMOVAL;
        for group in &self.0 {
            while group.path.exists() {
                match remove_tree(&group.path) {
                    Ok(()) => break,
                    Err(error) if Instant::now() > deadline => {
                        return Err(error).with_context(|| format!("remove the cgroup {}", group.path.display()));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            }
        }
        Ok(())
    }
}

impl Hierarchy {
    /// Version 2 with controllers. Beside version 1 the unified hierarchy only tracks processes.
    fn is_unified_with_controllers(&self) -> bool {
        self.options.is_none()
            && fs::read_to_string(self.mount.join("cgroup.controllers")).is_ok_and(|text| !text.trim().is_empty())
    }
}

impl Group {
    /// Where this process goes back to: what was in the way in the group above ours lives in a leaf of that one since.
    fn way_back(&self) -> PathBuf {
        let leaf = self.home.join(HOST_LEAF);
        if leaf.is_dir() { leaf } else { self.home.clone() }
    }

    fn create(&self) -> anyhow::Result<()> {
        fs::create_dir(&self.path)?;
        let parent = self.path.parent().context("a cgroup has a parent")?;
        if self.hierarchy.is_unified_with_controllers() && enable_controllers(parent).is_err() {
            evacuate(parent, HOST_LEAF)?;
            enable_controllers(parent)?;
        }
        // A new cpuset is empty, and then takes no process.
        for file in ["cpuset.cpus", "cpuset.mems"].iter().filter(|_| self.hierarchy.options.is_some()) {
            if let Ok(value) = fs::read(parent.join(file)) {
                fs::write(self.path.join(file), value).with_context(|| (*file).to_owned())?;
            }
        }
        Ok(())
    }
}

/// The cgroup file systems among the lines of `mountinfo`.
fn hierarchies(mountinfo: &str) -> Vec<Hierarchy> {
    let parse = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mount = PathBuf::from(mount.split(' ').nth(4)?);
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options =
            file_system.nth(1)?.split(',').filter(|option| !["rw", "ro", "xattr", "clone_children"].contains(option));
        match kind {
            "cgroup2" => Some(Hierarchy { mount, options: None }),
            "cgroup" => {
                let options: Vec<&str> = options.collect();
                let named = options.iter().all(|option| option.contains('='));
                let options = if named { format!("none,{}", options.join(",")) } else { options.join(",") };
                Some(Hierarchy { mount, options: Some(options) })
            }
            _ => None,
        }
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// The path of this process in a hierarchy, out of `/proc/self/cgroup` (lines such as `4:memory:/path`, `0::/path`).
fn own_path<'a>(cgroups: &'a str, options: Option<&str>) -> &'a str {
    let controllers = options.map_or("", |options| options.trim_start_matches("none,"));
    let find = |line: &'a str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let same = fields.next()? == controllers;
        fields.next().filter(|_| same)
    };
    cgroups.lines().find_map(find).unwrap_or("/")
}

fn join(group: &Path) -> anyhow::Result<()> {
    // 0 is the writer.
    fs::write(group.join("cgroup.procs"), "0").with_context(|| format!("enter the cgroup {}", group.display()))
}

fn enable_controllers(group: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(group.join("cgroup.controllers"))?;
    let wanted: Vec<String> = controllers.split_whitespace().map(|name| format!("+{name}")).collect();
    fs::write(group.join("cgroup.subtree_control"), wanted.join(" "))
}

/// Moves all processes of a group into a child of it.
fn evacuate(group: &Path, leaf: &str) -> anyhow::Result<()> {
    let leaf = group.join(leaf);
    if !leaf.is_dir() {
        fs::create_dir(&leaf)?;
    }
    // Processes may fork meanwhile: a few rounds.
    for _ in 0..100 {
        let processes = fs::read_to_string(group.join("cgroup.procs"))?;
        if processes.is_empty() {
            return Ok(());
        }
        for pid in processes.lines() {
            // A process that is gone by now is no error.
            let _ = fs::write(leaf.join("cgroup.procs"), pid);
        }
    }
    bail!("processes stay in the cgroup {}", group.display())
}

/// Children first: a group goes only when it has none.
fn remove_tree(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    for pid in fs::read_to_string(group.join("cgroup.procs"))?.lines() {
        // Never 0, which would be this process's own group.
        if let Some(pid) = pid.parse().ok().filter(|pid| *pid > 1).and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::{Group, HOST_LEAF, Hierarchy, hierarchies, own_path};

    #[test]
    fn both_versions_are_found_with_the_options_that_mount_them_again() {
        let mounts = "\
            31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n\
            40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
        let found =
            |mount: &str, options: Option<&str>| Hierarchy { mount: mount.into(), options: options.map(str::to_owned) };
        assert_eq!(
            hierarchies(mounts),
            [
                found("/sys/fs/cgroup/cpu", Some("cpu,cpuacct")),
                found("/sys/fs/cgroup/systemd", Some("none,name=systemd")),
                found("/sys/fs/cgroup/unified", None),
            ]
        );
    }

    #[test]
    fn a_process_that_was_in_the_way_goes_back_to_the_leaf_that_it_was_moved_to() {
        let home = tempfile::tempdir().unwrap();
        let hierarchy = Hierarchy { mount: home.path().into(), options: None };
        let group = Group { path: home.path().join("ours"), home: home.path().into(), hierarchy };
        assert_eq!(group.way_back(), home.path());
        std::fs::create_dir(home.path().join(HOST_LEAF)).unwrap();
        assert_eq!(group.way_back(), home.path().join(HOST_LEAF));
    }

    #[test]
    fn the_own_group_is_found_in_each_hierarchy() {
        let own = "9:name=systemd:/user\n4:memory:/a/b\n0::/unified\n";
        assert_eq!(own_path(own, Some("memory")), "/a/b");
        assert_eq!(own_path(own, Some("none,name=systemd")), "/user");
        assert_eq!(own_path(own, None), "/unified");
        assert_eq!(own_path(own, Some("pids")), "/");
    }
}
