//! The server's binary, of the build that this test belongs to.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

use crate::tools::say;
use anyhow::{Context, ensure};

/// Where it is. `cargo xtask test` builds it with the tests; where it is missing or older than its sources (`cargo test`
/// does not build it) it is built here, once.
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

/// The binary in `target/PROFILE`, built where it is not fresh. Asking cargo each time would build it once more after
/// `cargo xtask test` has: alone it has other features of its dependencies.
pub fn fresh(profile_folder: &Path) -> anyhow::Result<PathBuf> {
    let binary = profile_folder.join("ayatori");
    if !is_fresh(&binary) {
        say("building ayatori: it is missing, or older than its sources");
        build(profile_folder)?;
        ensure!(binary.is_file(), "cargo built no {}", binary.display());
    }
    Ok(binary)
}

fn build(profile_folder: &Path) -> anyhow::Result<()> {
    let profile = match profile_folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments = ["build", "--quiet", "-p", "ayatori", "--bin", "ayatori", "--profile", profile];
    let status = Command::new(env!("CARGO")).args(arguments).current_dir(root).status().context("start cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    Ok(())
}

/// Whether no source is newer, nor the versions of the dependencies. Cargo lists the sources in `ayatori.d`, as make
/// reads it.
fn is_fresh(binary: &Path) -> bool {
    let (Ok(list), Some(built)) = (fs::read_to_string(binary.with_extension("d")), changed(binary)) else {
        return false;
    };
    let sources = list.split_once(": ").map(|(_, sources)| sources).unwrap_or_default();
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    let mut sources = sources.split_whitespace().chain([lock]);
    sources.all(|source| changed(Path::new(source)).is_some_and(|time| time <= built))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
