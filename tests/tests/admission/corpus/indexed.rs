//! The files of the corpus.

use std::collections::BTreeMap;

use anyhow::Context;
use ayatori_tests::api::kinds::Kind;
use serde::Deserialize;

use super::{input::Input, theme};

/// One file: inputs by field.
pub(crate) struct Indexed {
    pub(crate) kind: Kind,
    pub(crate) fields: BTreeMap<String, Vec<Input>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: String,
    fields: BTreeMap<String, Vec<Input>>,
}

/// All files.
pub(crate) fn all() -> anyhow::Result<Vec<Indexed>> {
    let files = theme::files("inputs")?.into_iter().filter(|file| file.ends_with(".yaml"));
    let read = |file: String| {
        let File { kind, fields } = theme::read(&file)?;
        let kind = Kind::named(&kind).with_context(|| format!("{file}: no kind is called {kind:?}"))?;
        Ok(Indexed { kind, fields })
    };
    files.map(read).collect()
}
