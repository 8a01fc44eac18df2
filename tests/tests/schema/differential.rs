//! The same objects to two API servers: ours and the one with the definitions that the project started from.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use anyhow::ensure;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::{
    cases::{self, AS_IT_IS, Case},
    differences,
    kinds::Kind,
    server::{self, Answer, Server, Verb},
};

/// Requests under way at a time on one server.
const AT_ONCE: usize = 8;
/// Set to write `verdicts.txt` anew.
const UPDATE: &str = "UPDATE_VERDICTS";
/// The object whose status is written.
const STORED: &str = "differential";

/// What a server says to each case, in order. Nothing is stored but one object a kind.
async fn judge(server: &Server, cases: &[Case]) -> anyhow::Result<Vec<Answer>> {
    let mut versions = BTreeMap::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.has_status()) {
        let answer = server.send(Verb::Create, &kind.collection(), &kind.object(STORED)).await?;
        ensure!(answer.is_accepted(), "{}", answer.summary());
        versions.insert(kind.name(), answer.body["metadata"]["resourceVersion"].clone());
    }
    let ask = |case: &Case| ask(server.clone(), case.clone(), versions.get(case.kind.name()).cloned());
    let answers: Vec<_> = stream::iter(cases).map(ask).buffered(AT_ONCE).try_collect().await?;
    for (case, answer) in cases.iter().zip(&answers).filter(|(case, _)| case.changes[0].class == AS_IT_IS) {
        // Without this all could be refused for a reason that has nothing to do with the case.
        ensure!(case.changes.len() > 1 || answer.is_accepted(), "{}: {}", case.name(), answer.summary());
    }
    Ok(answers)
}

async fn ask(server: Server, case: Case, version: Option<Value>) -> anyhow::Result<Answer> {
    let collection = case.kind.collection();
    let mut object = case.object(STORED);
    if case.is_status() {
        object["metadata"]["resourceVersion"] = version.unwrap_or_default();
        return server.send(Verb::Replace, &format!("{collection}/{STORED}/status?dryRun=All"), &object).await;
    }
    object["metadata"]["name"] = "new".into();
    server.send(Verb::Create, &format!("{collection}?dryRun=All"), &object).await
}

/// Our verdicts as text: one line a place, `+` for accepted; then one a pair.
fn record(cases: &[Case], answers: &[Answer]) -> String {
    let mut text = "# What our definitions say to each case of the differential test: + accepted, - refused.\n\
                    # Written by: UPDATE_VERDICTS=1 cargo test -p ayatori-tests --test schema\n"
        .to_owned();
    for kind in Kind::ALL {
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let mut pairs = Vec::new();
        for (case, answer) in cases.iter().zip(answers).filter(|(case, _)| case.kind == kind) {
            let sign = if answer.is_accepted() { '+' } else { '-' };
            match case.changes.as_slice() {
                [one] => places.entry(&one.at).or_default().push(format!("{sign}{}", one.class)),
                _ => pairs.push(format!("{sign} {}", case.name())),
            }
        }
        let _ = writeln!(text, "\n{}", kind.name());
        for (place, words) in places {
            let _ = writeln!(text, "{place}: {}", words.join(" "));
        }
        for pair in pairs {
            let _ = writeln!(text, "{pair}");
        }
    }
    text
}

/// Everywhere: our verdicts are those in `verdicts.txt`. Where the reference is at hand: they are the reference's too,
/// but for the written differences, and what both accept is stored the same way.
#[tokio::test(flavor = "multi_thread")]
async fn our_definitions_judge_as_the_reference_does_but_for_the_written_differences() -> anyhow::Result<()> {
    let cases: Vec<Case> = Kind::ALL.into_iter().flat_map(cases::all).collect();
    let (ours, reference) = tokio::try_join!(server::ours(), server::reference())?;
    let theirs = async {
        match reference {
            Some(reference) => judge(&reference, &cases).await.map(Some),
            None => Ok(None),
        }
    };
    let (ours, theirs) = tokio::try_join!(judge(&ours, &cases), theirs)?;
    if let Some(theirs) = theirs {
        let mut faults = compare(&cases, &ours, &theirs);
        let differs = |index: usize| ours[index].is_accepted() != theirs[index].is_accepted();
        let judged: Vec<_> = cases.iter().enumerate().map(|(index, case)| (case, differs(index))).collect();
        faults.extend(differences::check(&judged));
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    }
    compare_with_the_record(&record(&cases, &ours))
}

/// Cases that we accept and the reference refuses (there are none), and those that both accept but store differently.
fn compare(cases: &[Case], ours: &[Answer], theirs: &[Answer]) -> Vec<String> {
    let mut faults = Vec::new();
    for ((case, ours), theirs) in cases.iter().zip(ours).zip(theirs) {
        let name = format!("{} {}", case.kind.name(), case.name());
        if ours.is_accepted() && !theirs.is_accepted() {
            faults.push(format!("{name}: accepted by us, but the reference says: {}", theirs.summary()));
        }
        let part = if case.is_status() { "status" } else { "spec" };
        let stored = |answer: &Answer| answer.body.get(part).cloned().unwrap_or(Value::Null);
        if ours.is_accepted() && theirs.is_accepted() && stored(ours) != stored(theirs) {
            faults.push(format!("{name}: we store {}, the reference {}", stored(ours), stored(theirs)));
        }
    }
    faults
}

fn compare_with_the_record(text: &str) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schema/verdicts.txt");
    if std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty()) {
        std::fs::write(&path, text)?;
    }
    let kept = std::fs::read_to_string(&path)?;
    let changed: Vec<_> = text.lines().filter(|line| !kept.lines().any(|old| old == *line)).collect();
    assert!(text == kept, "verdicts differ from {}, among them:\n{}", path.display(), changed.join("\n"));
    Ok(())
}
