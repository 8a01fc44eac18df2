//! The files of the table: what is given, what is sent, what is expected.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, ensure};
use ayatori_tests::api::kinds::Kind;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::verdict::Expected;

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Theme {
    /// What it is about, with the rules.
    pub(crate) about: String,
    /// The configuration file of the process.
    #[serde(default)]
    pub(crate) policy: Value,
    pub(crate) groups: Vec<Group>,
}

/// Cases that need the same surroundings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// What is made before, for real.
    #[serde(default)]
    pub(crate) given: Vec<Value>,
    /// What of it is changed by merge patches, once the cases' own objects are stored.
    #[serde(default)]
    pub(crate) then: Vec<Value>,
    /// Whether all of this is stored before there was a policy.
    #[serde(default)]
    pub(crate) earlier: bool,
    pub(crate) cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What it shows. Its words, joined by dashes, are the object's name.
    pub(crate) say: String,
    /// A Job where nothing is said.
    #[serde(default = "job", deserialize_with = "kind")]
    pub(crate) kind: Kind,
    /// The object as it is stored before: changes of the base.
    #[serde(default)]
    pub(crate) stored: Option<Value>,
    /// In which state it is by then.
    #[serde(default)]
    pub(crate) state: State,
    /// What is sent.
    pub(crate) send: Send,
    pub(crate) expect: Expected,
    /// The condition `Accepted=False` that the object gets where no webhook sees it: a reason, or `none` where nobody
    /// here judges it. Wanted of every creation that the webhook refuses.
    #[serde(default)]
    pub(crate) unseen: Option<String>,
    /// How kubectl sends it for real; its words are in `words/`.
    #[serde(default)]
    pub(crate) kubectl: Option<Kubectl>,
}

/// A change of the base, or a merge patch of what is stored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Send {
    /// POST of the changed base.
    Create(Value),
    /// PUT of the changed base.
    Replace(Value),
    /// PATCH of what is stored.
    Patch(Value),
    /// DELETE.
    Delete(Value),
}

/// The state of a stored object.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As it was created.
    #[default]
    New,
    /// A Job that is over: its status says so.
    Over,
    /// Deleted, and held by a finalizer of the test.
    Deleting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kubectl {
    Create,
    Apply,
    Replace,
    Patch,
    Delete,
}

fn job() -> Kind {
    Kind::Job
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    let name = String::deserialize(deserializer)?;
    Kind::named(&name).ok_or_else(|| serde::de::Error::custom(format!("{name:?} is none of the four kinds")))
}

impl Case {
    /// The object's name: the case's words. Long ones are cut, as a name that ends in pod names may not be long.
    pub(crate) fn name(&self) -> String {
        let lower = self.say.to_lowercase();
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-");
        name[..name.len().min(100)].trim_end_matches('-').to_owned()
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/admission"))
}

/// The file at a path in this suite's folder.
pub(crate) fn path(name: &str) -> std::path::PathBuf {
    folder().join(name)
}

/// A file of this suite.
pub(crate) fn read<T: DeserializeOwned>(name: &str) -> anyhow::Result<T> {
    let text = fs::read_to_string(path(name)).with_context(|| format!("read {name}"))?;
    serde_saphyr::from_str(&text).with_context(|| format!("read {name}"))
}

/// The names of the files in a folder of this suite, in order.
pub(crate) fn files(name: &str) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(path(name)).with_context(|| format!("read {name}"))?;
    let mut names = vec![];
    for entry in entries {
        let file = entry?.file_name().into_string().ok().context("a name in UTF-8")?;
        names.push(format!("{name}/{file}"));
    }
    names.sort();
    Ok(names)
}

/// All themes, in the order of their files.
pub(crate) fn all() -> anyhow::Result<Vec<Theme>> {
    let themes = files("cases")?.into_iter().filter(|file| !is_no_theme(file));
    let themes: Vec<Theme> = themes.map(|file| read(&file)).collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    for case in cases(&themes) {
        ensure!(names.insert(case.name()), "two cases are called {:?}", case.name());
    }
    Ok(themes)
}

fn is_no_theme(file: &str) -> bool {
    ["cases/bases.yaml", "cases/world.yaml"].contains(&file)
}

pub(crate) fn cases(themes: &[Theme]) -> impl Iterator<Item = &Case> {
    themes.iter().flat_map(|theme| &theme.groups).flat_map(|group| &group.cases)
}
