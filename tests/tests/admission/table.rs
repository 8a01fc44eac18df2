//! The cases of `cases/*.yaml` through the real API server.

use anyhow::{Context, ensure};
use ayatori_crds::names::IS_DEFAULT_JOB_CLASS_ANNOTATION;
use ayatori_tests::{
    api::{
        kinds::Kind,
        requests::{Answer, Verb},
    },
    eventually,
    tools::say,
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use crate::{
    manifests, settled,
    theme::{self, Case, Group, Send, State, Theme},
    unseen, words,
    world::{AT_ONCE, BOUND, World, alone},
};

/// Held by it, an object that is deleted stays.
const HOLD: &str = "tests.example/hold";
/// Groups under way at a time.
const GROUPS_AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_the_table_has_exactly_its_verdict_and_the_same_one_where_no_webhook_sees_it()
-> anyhow::Result<()> {
    let themes = theme::all()?;
    count(&themes);
    let mut policies: Vec<Value> = vec![];
    themes.iter().for_each(|theme| {
        if !policies.contains(&theme.policy) {
            policies.push(theme.policy.clone());
        }
    });
    alone(async |world| {
        let mut faults = vec![];
        let groups = themes.iter().flat_map(|theme| &theme.groups);
        for group in groups.filter(|group| group.earlier) {
            prepare(world, group).await?;
        }
        for policy in &policies {
            world.under(policy).await?;
            let groups = themes.iter().filter(|theme| theme.policy == *policy).flat_map(|theme| &theme.groups);
            faults.extend(seen(world, &groups.clone().collect::<Vec<_>>()).await?);
            let refused: Vec<&Case> =
                groups.flat_map(|group| &group.cases).filter(|case| unseen::is_due(case)).collect();
            faults.extend(world.without_webhook(async |world| unseen::judge(world, &refused).await).await?);
        }
        ensure!(faults.is_empty(), "{} faults:\n{}\n{}", faults.len(), faults.join("\n"), world.log()?);
        Ok(())
    })
    .await
}

fn count(themes: &[Theme]) {
    let all: Vec<&Case> = theme::cases(themes).collect();
    let of = |is: &dyn Fn(&Case) -> bool| all.iter().filter(|case| is(case)).count();
    let kinds = Kind::ALL.map(|kind| format!("{} of {}", of(&|case| case.kind == kind), kind.name())).join(", ");
    say(&format!(
        "table: {} cases in {} themes ({kinds}): {} create, {} change or delete; {} refused by the webhook, {} by the \
         schema, {} warned of; {} once more unseen by the webhook, {} by kubectl",
        all.len(),
        themes.len(),
        of(&|case| matches!(case.send, Send::Create(_))),
        of(&|case| !matches!(case.send, Send::Create(_))),
        of(&|case| case.expect.is_refused_by_webhook()),
        of(&|case| case.expect.allowed.is_none() && !case.expect.is_refused_by_webhook()),
        of(&|case| !case.expect.warnings.is_empty()),
        of(&unseen::is_due),
        of(&|case| case.kubectl.is_some()),
    ));
    for theme in themes {
        say(&format!("table: {} {}", theme.groups.iter().map(|group| group.cases.len()).sum::<usize>(), theme.about));
    }
}

/// The groups side by side, but those that concern the cluster's default: these one after another, at the end.
async fn seen(world: &World, groups: &[&Group]) -> anyhow::Result<Vec<String>> {
    let (alone, together): (Vec<&Group>, Vec<&Group>) = groups.iter().partition(|group| group.marks_a_default());
    let together = stream::iter(together).map(|group| judge(world, group)).buffered(GROUPS_AT_ONCE);
    let mut faults: Vec<String> = together.try_collect::<Vec<_>>().await?.concat();
    for group in alone {
        faults.extend(judge(world, group).await?);
        unmark(world, group).await?;
    }
    Ok(faults)
}

impl Group {
    /// Whether a class is made that concerns every Job without a class.
    fn marks_a_default(&self) -> bool {
        let stored = self.cases.iter().filter_map(|case| case.stored.as_ref());
        self.given
            .iter()
            .chain(&self.then)
            .chain(stored)
            .any(|manifest| !manifest["metadata"]["annotations"][IS_DEFAULT_JOB_CLASS_ANNOTATION].is_null())
    }
}

/// Makes what is given and stored.
async fn prepare(world: &World, group: &Group) -> anyhow::Result<()> {
    for manifest in &group.given {
        give(world, manifest).await?;
    }
    settled::classes(world, &group.given).await?;
    let store = stream::iter(&group.cases).map(|case| store(world, case)).buffered(AT_ONCE);
    store.try_collect::<Vec<_>>().await?;
    for changes in &group.then {
        world.change(changes).await?;
    }
    settled::classes(world, &group.given).await
}

/// Judges the cases, in their surroundings.
async fn judge(world: &World, group: &Group) -> anyhow::Result<Vec<String>> {
    if !group.earlier {
        prepare(world, group).await?;
    }
    let judge = stream::iter(&group.cases).map(|case| async move {
        let mut faults = match send(world, case).await {
            Ok(answer) => case.expect.faults(case.kind, &answered_name(case, &answer), &answer),
            Err(error) => vec![format!("{error:#}")],
        };
        if let Some(verb) = case.kubectl {
            faults.extend(words::faults(world, case, verb).await?);
        }
        anyhow::Ok(faults.into_iter().map(|fault| format!("{:?}: {fault}", case.say)).collect::<Vec<_>>())
    });
    Ok(judge.buffered(AT_ONCE).try_collect::<Vec<_>>().await?.concat())
}

/// Makes an object; one with a deletionTimestamp is deleted then, and stays by a finalizer.
async fn give(world: &World, manifest: &Value) -> anyhow::Result<()> {
    let is_going = !manifest["metadata"]["deletionTimestamp"].is_null();
    let mut made = manifest.clone();
    if is_going {
        json_patch::merge(&mut made, &json!({"metadata": {"deletionTimestamp": null, "finalizers": [HOLD]}}));
    }
    world.make(&made).await?;
    if is_going { world.delete(&made).await } else { Ok(()) }
}

/// Stores a case's own object, in its state.
async fn store(world: &World, case: &Case) -> anyhow::Result<()> {
    let Some(change) = &case.stored else { return Ok(()) };
    let mut manifest = manifests::changed(case.kind, &case.name(), change)?;
    if case.state == State::Deleting {
        manifest["metadata"]["finalizers"] = json!([HOLD]);
    }
    world.make(&manifest).await.with_context(|| format!("case {:?}", case.say))?;
    match case.state {
        State::New if case.kubectl.is_some() && case.kind == Kind::Job => until_waiting(world, &manifest).await,
        State::New => Ok(()),
        State::Over => end(world, &manifest).await,
        State::Deleting => world.delete(&manifest).await,
    }
}

/// Waits until the controller has said what a Job waits for, or that it is over: it writes nothing more then, while kubectl compares what was
/// with what is.
async fn until_waiting(world: &World, manifest: &Value) -> anyhow::Result<()> {
    eventually("a Job waits", BOUND, async || {
        let status = world.get(manifest).await?["status"].take();
        let conditions = status["conditions"].as_array().context("it is not seen yet")?;
        let waits = conditions.iter().any(|one| one["type"] == "Accepted" && one["status"] == "False");
        let is_over = !status["completionTime"].is_null();
        ensure!(waits || is_over, "it runs, name a class that does not exist: {status}");
        Ok(())
    })
    .await
}

/// Writes the end of a Job that waits, as a controller would: once the controller here has seen it, it leaves it alone.
async fn end(world: &World, manifest: &Value) -> anyhow::Result<()> {
    eventually("a Job is over", BOUND, async || {
        let mut stored = world.get(manifest).await?;
        let time = stored["metadata"]["creationTimestamp"].clone();
        let conditions = stored["status"]["conditions"].as_array_mut().context("it is not seen yet")?;
        let succeeded = conditions.iter_mut().find(|one| one["type"] == "Succeeded").context("no Succeeded")?;
        succeeded["status"] = json!("False");
        succeeded["reason"] = json!("Cancelled");
        stored["status"]["completionTime"] = time;
        let path = format!("{}/status", manifests::path(manifest)?);
        let answer = world.server.send(Verb::Replace, &path, &stored).await?;
        ensure!(answer.is_accepted(), "{}", answer.summary());
        Ok(())
    })
    .await
}

/// Sends a case as a dry run.
async fn send(world: &World, case: &Case) -> anyhow::Result<Answer> {
    let name = case.name();
    match &case.send {
        Send::Create(change) => world.dry_create(&manifests::changed(case.kind, &name, change)?).await,
        Send::Replace(change) => {
            let mut manifest = manifests::changed(case.kind, &name, change)?;
            let path = format!("{}?dryRun=All", manifests::path(&manifest)?);
            // What the controller writes in between makes the version stale.
            eventually("a PUT of the newest version", BOUND, async || {
                let stored = world.get(&manifest).await?;
                manifest["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
                let answer = world.server.send(Verb::Replace, &path, &manifest).await?;
                ensure!(answer.code != 409, "{}", answer.summary());
                Ok(answer)
            })
            .await
        }
        Send::Patch(patch) => {
            let path = manifests::path(&manifests::changed(case.kind, &name, &json!({}))?)?;
            world.server.send(Verb::MergePatch, &format!("{path}?dryRun=All"), patch).await
        }
        Send::Delete(options) => {
            let path = manifests::path(&manifests::changed(case.kind, &name, &json!({}))?)?;
            // In the body: with one, the query is ignored, and the object would really go.
            let mut options = options.clone();
            json_patch::merge(&mut options, &json!({"dryRun": ["All"]}));
            world.server.send(Verb::Delete, &path, &options).await
        }
    }
}

/// The object's name; with a `generateName` the one that the server made.
fn answered_name(case: &Case, answer: &Answer) -> String {
    let Send::Create(change) = &case.send else { return case.name() };
    if let Some(name) = change["metadata"]["name"].as_str() {
        return name.to_owned();
    }
    match change["metadata"]["generateName"].as_str() {
        Some(prefix) => {
            let said = [&answer.body["details"]["name"], &answer.body["metadata"]["name"]];
            let name = said.into_iter().find_map(Value::as_str).unwrap_or_default();
            if name.starts_with(prefix) { name.to_owned() } else { format!("{prefix}…") }
        }
        None => case.name(),
    }
}

/// Afterwards no class is the default.
async fn unmark(world: &World, group: &Group) -> anyhow::Result<()> {
    let own = group.cases.iter().filter(|case| case.kind == Kind::JobClass && case.stored.is_some());
    let own = own.map(|case| manifests::changed(case.kind, &case.name(), &json!({}))).collect::<Result<Vec<_>, _>>()?;
    let given = group.given.iter().filter(|manifest| manifest["kind"] == Kind::JobClass.name());
    let kubectl = group.cases.iter().filter(|case| case.kind == Kind::JobClass && case.kubectl.is_some());
    let made = kubectl.map(|case| manifests::changed(case.kind, &case.name(), &json!({})));
    let made = made.collect::<Result<Vec<_>, _>>()?;
    for class in given.chain(&own).chain(&made) {
        let patch = json!({"metadata": {"annotations": {IS_DEFAULT_JOB_CLASS_ANNOTATION: null}}});
        let answer = world.server.send(Verb::MergePatch, &manifests::path(class)?, &patch).await?;
        ensure!(answer.is_accepted() || answer.code == 404, "{}", answer.summary());
    }
    settled::no_default(world).await
}
