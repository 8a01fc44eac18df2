//! `cargo xtask image`: the container image, without a container engine.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use ayatori_tests::Image;

use crate::{progress, workspace};

/// The name under which a test node has the image; `deploy/base/deployment.yaml` names it too.
pub(crate) const NAME: &str = "localhost/ayatori:dev";

/// Options of `cargo xtask image`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where to write the OCI archive.
    #[arg(long, default_value = "target/ayatori-image.tar")]
    output: PathBuf,
    /// The name that the image gets in the archive.
    #[arg(long, default_value = NAME)]
    name: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let image = build(&options.name)?;
    std::fs::write(&options.output, image.archive())
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    progress::say(&format!("wrote {}", options.output.display()));
    Ok(())
}

/// Builds the server as one static program and packs it alone into an image.
pub(crate) fn build(name: &str) -> Result<Image> {
    progress::step("building the server for its image", || {
        let target = host_target()?;
        // The target is named, so that build scripts and macros stay dynamic.
        let built =
            workspace::cargo(&["build", "--quiet", "--profile", "image", "--package", "ayatori", "--target", &target])
                .env("RUSTFLAGS", "-C target-feature=+crt-static")
                .status()
                .context("cannot run cargo")?;
        ensure!(built.success(), "the server does not build");
        let program = workspace::target().join(target).join("image/ayatori");
        Image::of_binary(name, &program, &[], BTreeMap::new())
    })
}

/// The target triple of this machine, as the compiler names it.
fn host_target() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not tell its host")?.to_owned())
}
