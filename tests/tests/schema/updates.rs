//! For every CEL rule an update that it allows and one that it refuses, on the real server (A3, A4, A7).

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::{
    kinds::Kind,
    pointer,
    server::{self, Answer, Server, Verb},
};

mod job_spec;
mod other_kinds;
mod reference;
mod rules;
mod status;
mod status_figures;
mod status_lists;

pub(crate) use rules::Rule;

/// Requests under way at a time.
const AT_ONCE: usize = 8;

/// One update.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The rule that it is about.
    pub(crate) rule: Rule,
    pub(crate) what: &'static str,
    /// `spec` and, where the update is one of the status, `status` (null: none yet).
    pub(crate) old: Value,
    pub(crate) new: Value,
    pub(crate) allowed: bool,
}

impl Row {
    fn is_status(&self) -> bool {
        self.old.get("status").is_some()
    }

    fn name(&self) -> String {
        format!("{:?} {} ({}): {}", self.rule.kind, self.rule.field, self.rule.message, self.what)
    }
}

/// A change that takes an object from its old to its new form.
pub(crate) type Changes<'a> = &'a [(&'a str, Value)];

/// Rows of one rule about the spec: what is changed in the valid object before, and then in the update. A null removes.
pub(crate) fn spec_rows(rule: &Rule, allowed: bool, rows: &[(&'static str, Changes<'_>, Changes<'_>)]) -> Vec<Row> {
    let row = |(what, before, update): &(&'static str, Changes<'_>, Changes<'_>)| {
        let old = changed(&json!({"spec": rule.kind.object("any")["spec"]}), "/spec", before);
        let new = changed(&old, "/spec", update);
        Row { rule: rule.clone(), what, old, new, allowed }
    };
    rows.iter().map(row).collect()
}

/// `object` with the changes made below `root`.
pub(crate) fn changed(object: &Value, root: &str, changes: Changes<'_>) -> Value {
    let mut object = object.clone();
    for (at, value) in changes {
        pointer::set(&mut object, &format!("{root}{at}"), (!value.is_null()).then(|| value.clone())).unwrap();
    }
    object
}

fn all_rows() -> Vec<Row> {
    [job_spec::rows(), other_kinds::rows(), status::rows(), status_lists::rows(), status_figures::rows()].concat()
}

/// Makes the old object, and says what the server says to the update (which is a dry run).
async fn update(server: &Server, name: &str, row: &Row) -> anyhow::Result<Answer> {
    let collection = row.rule.kind.collection();
    let mut object = row.rule.kind.object(name);
    object["spec"] = row.old["spec"].clone();
    let mut stored = server.send(Verb::Create, &collection, &object).await?;
    ensure!(stored.is_accepted(), "the old object: {}", stored.summary());
    let mut path = format!("{collection}/{name}");
    if row.is_status() {
        path.push_str("/status");
        if !row.old["status"].is_null() {
            let mut written = stored.body;
            written["status"] = row.old["status"].clone();
            stored = server.send(Verb::Replace, &path, &written).await?;
            ensure!(stored.is_accepted(), "the old status: {}", stored.summary());
        }
    }
    let mut next = stored.body;
    next["spec"] = row.new["spec"].clone();
    match row.new.get("status").filter(|status| !status.is_null()) {
        Some(status) => next["status"] = status.clone(),
        None => pointer::set(&mut next, "/status", None).unwrap(),
    }
    server.send(Verb::Replace, &format!("{path}?dryRun=All"), &next).await
}

/// The answers to all rows. Every object has a name of its own.
async fn judge(server: &Server, rows: &[Row], prefix: &str) -> anyhow::Result<Vec<Answer>> {
    let ask = |(index, row): (usize, Row)| {
        let (server, name) = (server.clone(), format!("{prefix}-{index}"));
        async move { update(&server, &name, &row).await.with_context(|| row.name()) }
    };
    stream::iter(rows.iter().cloned().enumerate()).map(ask).buffered(AT_ONCE).try_collect().await
}

/// What is wrong with the answer, if anything is. A refusal must name the rule.
fn fault(row: &Row, answer: &Answer) -> Option<String> {
    let named =
        || answer.causes().iter().any(|(field, text)| *field == row.rule.field && text.ends_with(&row.rule.message));
    let right = if row.allowed { answer.is_accepted() } else { answer.code == 422 && named() };
    let wanted = if row.allowed { "allowed" } else { "refused by that rule" };
    (!right).then(|| format!("{}: should be {wanted}, but: {}", row.name(), answer.summary()))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_update_in_the_tables_is_judged_as_they_say() -> anyhow::Result<()> {
    let rows = all_rows();
    let answers = judge(&server::ours().await?, &rows, "table").await?;
    let faults: Vec<_> = rows.iter().zip(&answers).filter_map(|(row, answer)| fault(row, answer)).collect();
    assert!(faults.is_empty(), "{} of {} rows:\n{}", faults.len(), rows.len(), faults.join("\n"));
    Ok(())
}

#[test]
fn every_rule_has_an_update_that_it_allows_and_one_that_it_refuses() {
    let rows = all_rows();
    let about = |allowed| rows.iter().filter(move |row| row.allowed == allowed).map(|row| row.rule.clone());
    let (allowed, refused): (BTreeSet<_>, BTreeSet<_>) = (about(true).collect(), about(false).collect());
    let rules = rules::all();
    assert_eq!(rules.difference(&allowed).collect::<Vec<_>>(), Vec::<&Rule>::new(), "no allowed update");
    assert_eq!(rules.difference(&refused).collect::<Vec<_>>(), Vec::<&Rule>::new(), "no refused update");
    assert_eq!(allowed.union(&refused).filter(|rule| !rules.contains(rule)).count(), 0, "a rule that does not exist");
}

/// What the reference refuses: there a rule fails on the absent field.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_resources_can_be_cancelled() -> anyhow::Result<()> {
    let cancel = json!({"spec": {"desiredState": "Cancelled"}});
    let patched = create_and_patch("without-resources", &[("/resources", Value::Null)], &cancel).await?;
    assert!(patched.is_accepted(), "{}", patched.summary());
    assert_eq!(patched.body["spec"]["desiredState"], "Cancelled");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cpu_written_as_1000m_is_no_change_and_as_1001m_it_is_one() -> anyhow::Result<()> {
    let one = &[("/resources/requests/cpu", json!("1"))];
    let cpu = |quantity: &str| json!({"spec": {"resources": {"requests": {"cpu": quantity}}}});
    let same = create_and_patch("1000m", one, &cpu("1000m")).await?;
    assert!(same.is_accepted(), "{}", same.summary());
    let other = create_and_patch("1001m", one, &cpu("1001m")).await?;
    let message = other.body["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("spec.resources.requests.cpu: Invalid value: is immutable"), "{message}");
    Ok(())
}

async fn create_and_patch(name: &str, before: Changes<'_>, patch: &Value) -> anyhow::Result<Answer> {
    let server = server::ours().await?;
    let object = changed(&Kind::Job.object(name), "/spec", before);
    let created = server.send(Verb::Create, &Kind::Job.collection(), &object).await?;
    ensure!(created.is_accepted(), "{}", created.summary());
    server.send(Verb::MergePatch, &format!("{}/{name}", Kind::Job.collection()), patch).await
}
