//! `cargo xtask generate`: the files that are made from the code.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use ayatori_webhook::configuration::{Target, configurations};
use serde_json::Value;

use crate::workspace;

/// Options of `cargo xtask generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail where a file differs from what the code gives.
    #[arg(long)]
    check: bool,
}

/// A file made from the code.
struct Generated {
    path: PathBuf,
    text: String,
}

/// Fails where a file differs from what the code gives.
pub(crate) fn check() -> Result<()> {
    run(&Options { check: true })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut stale = vec![];
    for Generated { path, text } in all()? {
        if fs::read_to_string(&path).is_ok_and(|present| present == text) {
            continue;
        }
        if options.check {
            stale.push(path.display().to_string());
        } else {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!("not what the code gives (run `cargo xtask generate`): {}", stale.join(", "))
}

fn all() -> Result<Vec<Generated>> {
    let mut files = vec![webhooks()?];
    let folder = workspace::root().join("crds/generated");
    for definition in ayatori_crds::definitions::all()? {
        files.push(Generated { path: folder.join(definition.file), text: yaml(&[definition.object])? });
    }
    Ok(files)
}

/// The webhook configurations of a deployment that is reached through its Service.
fn webhooks() -> Result<Generated> {
    let target = Target::Service { namespace: "ayatori-system".to_owned(), name: "ayatori-webhook".to_owned() };
    let (mutating, validating) = configurations(&target);
    let text = yaml(&[serde_json::to_value(mutating)?, serde_json::to_value(validating)?])?;
    Ok(Generated { path: workspace::root().join("deploy/self-managed/webhooks.yaml"), text })
}

/// Documents as YAML, with a word on where they come from.
fn yaml(documents: &[Value]) -> Result<String> {
    let mut text = "# Made by `cargo xtask generate`; do not edit.\n".to_owned();
    for document in documents {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(document)?);
    }
    Ok(text)
}
