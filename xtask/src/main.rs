//! The project's own commands: `cargo xtask demo | test | generate | image`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program speaks through these")]

use anyhow::Result;
use clap::{Parser, Subcommand};

mod cargo_deny;
mod demo;
mod generate;
mod image;
mod progress;
mod suites;
mod test;
mod workspace;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Build, show and test ayatori")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show ayatori at work in a real cluster, which it starts by itself.
    Demo(demo::Options),
    /// Everything that CI runs: format, lints, dependencies, generated files, unit tests, cluster suites, the demo.
    Test(test::Options),
    /// Write the files that are made from the code (CRDs, webhook configurations), or compare them.
    Generate(generate::Options),
    /// Build the container image, without a container engine.
    Image(image::Options),
}

fn main() -> Result<()> {
    // The test cluster runs its own stages in this program.
    ayatori_tests::stage::run_if_asked();
    match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Generate(options) => generate::run(&options),
        Command::Image(options) => image::run(&options),
    }
}
