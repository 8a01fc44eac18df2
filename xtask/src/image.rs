//! `cargo xtask image`: the container image, without a container engine.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use ayatori_tests::{File, Image, product::binary};

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
    /// Build with the development profile: sooner there, larger and slower.
    #[arg(long)]
    dev: bool,
}

/// How the server in the image is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What the tests and the demo run: built already, or soon.
    Dev,
    /// What is meant to be deployed.
    Release,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let image = build(&options.name, if options.dev { Profile::Dev } else { Profile::Release })?;
    let output = workspace::root().join(&options.output);
    fs::write(&output, image.archive()).with_context(|| format!("cannot write {}", output.display()))?;
    progress::say(&format!("wrote {}", output.display()));
    Ok(())
}

/// Builds the server and packs it into an image with the shared libraries that it names, and nothing else.
pub(crate) fn build(name: &str, profile: Profile) -> Result<Image> {
    progress::step("building ayatori and its image", || {
        let program = match profile {
            Profile::Dev => binary::fresh(&workspace::target().join("debug"))?,
            Profile::Release => {
                let mut cargo = workspace::cargo(&["build", "--quiet", "--package", "ayatori", "--release"]);
                ensure!(cargo.status().context("cannot run cargo")?.success(), "ayatori does not build");
                workspace::target().join("release/ayatori")
            }
        };
        Image::of_binary(name, &program, &[], shared_libraries(&program)?)
    })
}

/// The shared libraries of a program and the loader that it names, at the paths where the loader looks.
fn shared_libraries(program: &Path) -> Result<BTreeMap<String, File>> {
    let output = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    ensure!(output.status.success(), "ldd does not understand {}", program.display());
    // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`, and `linux-vdso.so.1 (0x…)`, which
    // the kernel brings.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text.lines().filter_map(|line| {
        let line = line.rsplit("=>").next()?;
        line.split_whitespace().next().filter(|path| path.starts_with('/')).map(str::to_owned)
    });
    paths
        .map(|path| {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {path}"))?;
            Ok((path, File::Program(bytes)))
        })
        .collect()
}
