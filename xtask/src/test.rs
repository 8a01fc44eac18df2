//! `cargo xtask test`: everything that CI runs, in the order in which a fault is found cheapest.

use std::{process::Command, time::Instant};

use anyhow::{Context, Result, ensure};
use ayatori_tests::{
    suite,
    tools::{self, Module},
};

use crate::{cargo_deny, demo, generate, progress, suites, workspace};

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Leave out what needs a real node (kubelet, containers, root), and say so.
    #[arg(long)]
    without_node: bool,
    /// Run the long settings of the suites: more states, faults, rotations and Jobs. Takes hours, not minutes.
    #[arg(long)]
    deep: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    progress::step("format", || cargo(&["fmt", "--all", "--", "--check"]))?;
    progress::step("generated files", generate::check)?;
    // On a fresh machine only what xtask itself needs is there, and cargo-deny asks nobody.
    progress::step("fetching the crates", || cargo(&["fetch", "--quiet", "--locked"]))?;
    progress::step("dependencies: bans, licences, sources", cargo_deny::check)?;
    progress::step("lints", || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    progress::step("documentation", || {
        let mut doc = workspace::cargo(&["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
        succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    progress::step("the programs of the test cluster (about 10 minutes when the cache is empty)", || {
        for module in Module::ALL {
            tools::build(module)?;
        }
        Ok(())
    })?;
    // In one command with the tests, so that the server is built with the features that its dependencies have there:
    // alone it would be built anew. Building tests alone does not build it.
    let suites = progress::step("building the server and its tests", || {
        cargo(&["build", "--quiet", "--workspace", "--bins", "--tests"])?;
        suites::build()
    })?;
    progress::step("unit tests and cluster suites", || suites::run(suites, &environment(options)))?;
    progress::step("the examples in the documentation", || cargo(&["test", "--quiet", "--workspace", "--doc"]))?;
    if options.without_node {
        progress::say("SKIPPED, as --without-node was given: the suites that need a node, and the demo");
    } else {
        progress::step("the demo", || demo::run(&demo::Options::default()))?;
    }
    progress::say(&format!("all of it passed after {:.0} s", begin.elapsed().as_secs_f32()));
    Ok(())
}

/// What the suites are told.
fn environment(options: &Options) -> Vec<(&'static str, &'static str)> {
    let mut environment = Vec::new();
    for (variable, wanted) in [(suite::WITHOUT_NODE, options.without_node), (suite::DEEP, options.deep)] {
        if wanted {
            environment.push((variable, "1"));
        }
    }
    // Seconds that each of the fuzz targets goes on for; they run side by side. The usual run begins with the same
    // input each time, so that what fails is what was changed; the long one looks for new ones.
    if options.deep {
        environment.push(("AYATORI_FUZZ_SECONDS", "600"));
    } else {
        environment.extend([("AYATORI_FUZZ_SECONDS", "60"), ("AYATORI_FUZZ_SEED", "1")]);
    }
    environment
}

fn cargo(arguments: &[&str]) -> Result<()> {
    succeed(&mut workspace::cargo(arguments))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
