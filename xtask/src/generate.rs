//! `cargo xtask generate`: the files that are made from the code.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
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
    let crds = workspace::root().join("crds/generated");
    ayatori_crds::definitions::all()?
        .into_iter()
        .map(|definition| Ok(Generated { path: crds.join(definition.file), text: yaml(&[definition.object])? }))
        .collect()
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
