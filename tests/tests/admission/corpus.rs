//! Bad input, and good input that looks bad: `inputs/*.yaml`, by kind and field.
//!
//! Each input is put at its place in the valid object of its kind and sent as a dry run, once where no webhook sees it
//! and once where ours does. `schema` is what schema and CEL alone say, `webhook` what is said with the webhook, where
//! that differs. `ok` is accepted without a word, `warned` with warnings, else the code and the fields that are blamed.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use ayatori_tests::{
    api::{
        fields::places,
        kinds::Kind,
        requests::{Answer, Verb},
    },
    tools::say,
};
use futures::{StreamExt, stream};
use indexed::Indexed;
use serde_json::{Value, json};

use crate::{
    theme,
    world::{AT_ONCE, NAMESPACE, World, alone},
};

mod coverage;
mod indexed;
mod input;

use input::Input;

/// One input at its place.
struct Fed {
    kind: Kind,
    field: String,
    body: Vec<u8>,
    input: Input,
}

impl Fed {
    fn name(&self) -> String {
        format!("{} {}: {}", self.kind.name(), self.field, self.input.say)
    }
}

/// The inputs of all files, each within its object.
fn all() -> anyhow::Result<Vec<Fed>> {
    let mut all = vec![];
    for Indexed { kind, fields } in indexed::all()? {
        let mut object = kind.object("corpus");
        if kind == Kind::Job {
            object["metadata"]["namespace"] = json!(NAMESPACE);
        }
        let places = places(&kind.schema()?, &object);
        for (field, inputs) in fields {
            let place = places.iter().find(|place| place.field == field).map(|place| place.at.clone());
            let at = place.unwrap_or_else(|| format!("/{}", field.replace('.', "/")));
            for input in inputs {
                let body =
                    input.body(&object, &at).with_context(|| format!("{} {field}: {}", kind.name(), input.say))?;
                all.push(Fed { kind, field: field.clone(), body, input });
            }
        }
    }
    Ok(all)
}

/// The answers to all inputs, in order; an error where the server fails.
async fn answers(world: &World, all: &[Fed]) -> Vec<anyhow::Result<Answer>> {
    let ask = |fed: &Fed| {
        let path = format!("{}?dryRun=All", fed.kind.collection_within(NAMESPACE));
        let (server, body) = (world.server.clone(), fed.body.clone());
        async move { server.send_bytes(Verb::Create, &path, body).await }
    };
    stream::iter(all).map(ask).buffered(AT_ONCE).collect().await
}

/// An answer in the words of the files.
fn verdict(answer: &Answer) -> String {
    match answer.code {
        ..300 if answer.warnings.is_empty() => "ok".to_owned(),
        ..300 => "warned".to_owned(),
        code => {
            let fields: BTreeSet<String> = answer.causes().into_iter().map(|(field, _)| field).collect();
            // A note of the API server's, not a field: that CEL was not asked.
            let fields = fields.into_iter().filter(|field| field != "<nil>");
            format!("{code} {}", fields.collect::<Vec<_>>().join(" ")).trim_end().to_owned()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_input_has_its_verdict_by_the_schema_alone_and_with_the_webhook() -> anyhow::Result<()> {
    let all = all()?;
    count(&all);
    alone(async |world| {
        let seen = answers(world, &all).await;
        let unseen = world.without_webhook(async |world| Ok(answers(world, &all).await)).await?;
        let mut faults = vec![];
        for ((fed, seen), unseen) in all.iter().zip(seen).zip(unseen) {
            let (seen, unseen) = match (seen, unseen) {
                (Ok(seen), Ok(unseen)) => (seen, unseen),
                (Err(error), _) | (_, Err(error)) => {
                    faults.push(format!("{}: {error:#}", fed.name()));
                    continue;
                }
            };
            let got = (verdict(&unseen), verdict(&seen));
            if got != fed.input.verdicts() {
                let (wanted, name) = (fed.input.verdicts(), fed.name());
                faults.push(format!("{name}: wanted {wanted:?}, got {got:?}: {} {:?}", seen.summary(), seen.warnings));
            }
            if seen.is_accepted() && unseen.is_accepted() {
                let changed = changed_by_webhook(&unseen.body["spec"], &seen.body["spec"]);
                faults.extend(changed.map(|what| format!("{}: the webhook {what}", fed.name())));
            }
        }
        ensure!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        Ok(())
    })
    .await
}

/// B6: it adds a class where there is none, and changes nothing that was given.
fn changed_by_webhook(unseen: &Value, seen: &Value) -> Option<String> {
    let mut without = seen.clone();
    if unseen["jobClassName"].as_str().is_none_or(str::is_empty)
        && let Some(spec) = without.as_object_mut()
    {
        spec.remove("jobClassName");
        spec.extend(unseen.get("jobClassName").map(|given| ("jobClassName".to_owned(), given.clone())));
    }
    (without != *unseen).then(|| format!("makes {unseen} {seen}"))
}

fn count(all: &[Fed]) {
    let kinds = Kind::ALL.map(|kind| {
        let of_the_kind = || all.iter().filter(|fed| fed.kind == kind);
        let accepted = |on: bool| {
            let verdicts = of_the_kind().map(|fed| fed.input.verdicts());
            verdicts.filter(|(schema, webhook)| !(if on { webhook } else { schema }).starts_with('4')).count()
        };
        let (all, off, on) = (of_the_kind().count(), accepted(false), accepted(true));
        format!("{} {all} ({off} accepted by the schema alone, {on} with the webhook)", kind.name())
    });
    say(&format!("corpus: {} inputs: {}", all.len(), kinds.join(", ")));
}

#[test]
fn what_the_webhook_changes_is_seen() {
    let given = json!({"task": {"image": "a"}, "ttl": 1});
    assert_eq!(changed_by_webhook(&given, &given), None);
    assert_eq!(changed_by_webhook(&given, &json!({"jobClassName": "x", "task": {"image": "a"}, "ttl": 1})), None);
    assert!(changed_by_webhook(&given, &json!({"task": {"image": "a"}, "ttl": 2})).is_some());
    assert!(changed_by_webhook(&given, &json!({"task": {"image": "a"}})).is_some());
    let named = json!({"jobClassName": "x"});
    assert!(changed_by_webhook(&named, &json!({"jobClassName": "y"})).is_some());
}
