//! What kubectl makes of an answer, byte for byte (but for the names of [usable classes](unnamed)): `words/*.txt`, each a
//! command and what it prints.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, ensure};
use ayatori_tests::api::usable_classes::unnamed;
use serde_json::Value;

use crate::{
    manifests,
    theme::{self, Case, Kubectl, Send},
    world::World,
};

/// Set to write the files anew.
const UPDATE: &str = "UPDATE_WORDS";

/// Sends a case for real and compares the words.
pub(crate) async fn faults(world: &World, case: &Case, verb: Kubectl) -> anyhow::Result<Vec<String>> {
    let name = case.name();
    let manifest = match &case.send {
        Send::Create(change) | Send::Replace(change) => manifests::changed(case.kind, &name, change)?,
        Send::Patch(_) | Send::Delete(_) => manifests::changed(case.kind, &name, &Value::Object(Default::default()))?,
    };
    let resource = case.kind.file().trim_end_matches(".yaml");
    let resource = format!("{resource}.{}", ayatori_crds::names::GROUP);
    let patch = if let Send::Patch(patch) = &case.send { patch.to_string() } else { String::new() };
    let arguments = match verb {
        Kubectl::Create => vec!["create", "-f", "-"],
        Kubectl::Apply => vec!["apply", "-f", "-"],
        Kubectl::Replace => vec!["replace", "-f", "-"],
        Kubectl::Patch => vec!["patch", &resource, &name, "--type", "merge", "-p", &patch],
        Kubectl::Delete => vec!["delete", &resource, &name],
    };
    let kubectl = world.kubectl(&manifest);
    let (command, input) = (arguments.join(" "), manifest.to_string());
    let owned: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let said =
        tokio::task::spawn_blocking(move || kubectl.run(&owned.iter().map(String::as_str).collect::<Vec<_>>(), &input))
            .await??;
    let end = if said.success { "succeeds" } else { "fails" };
    let text = unnamed(&format!("$ kubectl {command}\n{}{}({end})\n", said.stdout, said.stderr));
    compare(&name, &text)
}

fn compare(name: &str, text: &str) -> anyhow::Result<Vec<String>> {
    let file = theme::path("words").join(name).with_extension("txt");
    if std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty()) {
        fs::write(&file, text)?;
    }
    let kept = fs::read_to_string(&file).with_context(|| format!("{} is missing: set {UPDATE}=1", file.display()))?;
    Ok(if kept == text { vec![] } else { vec![format!("kubectl says\n{text}instead of\n{kept}")] })
}

#[test]
fn there_are_the_words_of_twenty_cases_and_of_no_case_that_is_gone() -> anyhow::Result<()> {
    let themes = theme::all()?;
    let told = theme::cases(&themes).filter(|case| case.kubectl.is_some());
    let wanted: BTreeSet<String> = told.map(|case| format!("words/{}.txt", case.name())).collect();
    let present: BTreeSet<String> = theme::files("words")?.into_iter().collect();
    ensure!(present == wanted, "files without a case, or cases without a file: {present:?} {wanted:?}");
    ensure!(present.len() >= 20, "only {}", present.len());
    Ok(())
}
