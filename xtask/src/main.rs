//! The project's own commands: `cargo xtask generate | image | demo | test`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program speaks through these")]

use anyhow::Result;
use clap::{Parser, Subcommand};

mod generate;
mod workspace;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Build, show and test ayatori")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the files that are made from the code (CRDs, webhook configurations), or compare them.
    Generate(generate::Options),
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Generate(options) => generate::run(&options),
    }
}
