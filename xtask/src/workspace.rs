//! Where the project lies.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    member.parent().unwrap_or(member)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// cargo, in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = ayatori_tests::cargo::cargo();
    command.current_dir(root()).args(arguments);
    command
}
