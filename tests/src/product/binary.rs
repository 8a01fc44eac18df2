//! The server's binary, of the build that this test belongs to.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, ensure};

use crate::cargo::cargo;

/// Where it is. `cargo test` does not build it, so it is built here where it is missing or older than its sources, once.
pub fn path() -> anyhow::Result<&'static Path> {
    static PATH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = PATH.get_or_init(|| find().map_err(|error| format!("{error:#}")));
    found.as_deref().map_err(|error| anyhow::anyhow!("there is no ayatori to test: {error}"))
}

fn find() -> anyhow::Result<PathBuf> {
    // target/debug/deps/product-0123 -> target/debug/ayatori
    let this = std::env::current_exe().context("the path of this executable")?;
    fresh(this.ancestors().nth(2).context("this executable lies in target/PROFILE/deps")?)
}

/// The binary in `target/PROFILE`, as cargo says that it is fresh.
pub fn fresh(profile_folder: &Path) -> anyhow::Result<PathBuf> {
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // No package is named: with the features that the whole workspace asks for, what `cargo xtask test` has built is fresh.
    let arguments = ["build", "--quiet", "--bin", "ayatori", "--profile", profile];
    let status = cargo().args(arguments).current_dir(root).status().context("start cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    let binary = profile_folder.join("ayatori");
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}
