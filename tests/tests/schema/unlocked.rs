//! What is stored and breaks the rules locks nothing (A4): people can still label the Job, keep it longer, cancel it,
//! and take its finalizers off. The broken Jobs are stored under a definition without any rule, which then becomes
//! ours; each test has a group of its own, so that the other tests of this cluster are not disturbed.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{
    kinds::{Kind, condition},
    pointer,
    server::{self, Server, Verb},
};

/// Usually a fraction of a second.
const RULES_IN_FORCE: Duration = Duration::from_secs(30);

/// Our definition of Job under another group.
fn definition(group: &str) -> Value {
    let definition = ayatori_crds::definitions::all().unwrap().into_iter().find(|one| one.file == Kind::Job.file());
    let mut object = definition.unwrap().object;
    object["metadata"]["name"] = format!("jobs.{group}").into();
    object["spec"]["group"] = group.into();
    // Those of the real group stay with the real group.
    for field in ["shortNames", "categories"] {
        pointer::set(&mut object, &format!("/spec/names/{field}"), None).unwrap();
    }
    object
}

/// The same without rules: it takes everything.
fn definition_without_rules(group: &str) -> Value {
    let mut object = definition(group);
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    pointer::set(&mut object, &format!("{schema}/x-kubernetes-validations"), None).unwrap();
    for part in ["spec", "status"] {
        let everything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        pointer::set(&mut object, &format!("{schema}/properties/{part}"), Some(everything)).unwrap();
    }
    pointer::set(&mut object, "/spec/versions/0/selectableFields", None).unwrap();
    object
}

/// Specs by what is wrong with them.
fn broken_specs() -> Vec<(&'static str, Value)> {
    let set = |at: &str, value| {
        let mut object = Kind::Job.object("any");
        pointer::set(&mut object, &format!("/spec{at}"), value).unwrap();
        object["spec"].clone()
    };
    let variables =
        |count: usize| (0..count).map(|n| json!({"name": format!("A{n}"), "value": "x"})).collect::<Vec<_>>();
    vec![
        ("no desiredState", set("/desiredState", None)),
        ("a negative quantity in the spec", set("/resources/requests/cpu", Some(json!("-1")))),
        ("a quantity that is none in the spec", set("/resources/requests/cpu", Some(json!("much")))),
        ("4000 variables", set("/task/env", Some(json!(variables(4000))))),
        ("a variable without a value", set("/task/env/0/value", None)),
        ("an argument of 200,000 characters", set("/task/args", Some(json!(["x".repeat(200_000)])))),
        ("5000 arguments", set("/task/args", Some(json!(vec!["x"; 5000])))),
    ]
}

/// Statuses by what is wrong with them.
fn broken_statuses() -> Vec<(&'static str, Value)> {
    let status = |changes: &[(&str, Option<Value>)]| {
        let mut object = json!({"status": Kind::Job.status()});
        for (at, value) in changes {
            pointer::set(&mut object, &format!("/status{at}"), value.clone()).unwrap();
        }
        object["status"].clone()
    };
    let set = |at, value| status(&[(at, Some(value))]);
    let running = |at, value: Option<Value>| {
        status(&[
            ("/completionTime", None),
            ("/result", None),
            ("/conditions/3", Some(condition("Succeeded", "Unknown", "Running"))),
            (at, value),
        ])
    };
    let many = |count: usize| (0..count).map(|n| condition(&format!("Type{n}"), "True", "Any")).collect::<Vec<_>>();
    let references = |count: usize| (0..count).map(|n| json!({"type": format!("t{n}"), "id": "x"})).collect::<Vec<_>>();
    vec![
        ("nothing wrong", status(&[])),
        ("a startTime without Scheduled", set("/conditions", json!([condition("Succeeded", "True", "Completed")]))),
        ("a completionTime without an outcome", set("/conditions/3/status", json!("Unknown"))),
        ("an outcome without completionTime", status(&[("/completionTime", None)])),
        ("a completionTime before startTime", set("/completionTime", json!("2029-01-01T00:00:00Z"))),
        ("a result of a running Job", running("/result", Some(json!({"exitCode": 1})))),
        ("Accepted without a class", running("/resolvedJobClass", None)),
        ("Scheduled without Accepted", set("/conditions/1/status", json!("False"))),
        ("a startTime in small letters", running("/startTime", Some(json!("2030-01-01t10:00:00z")))),
        ("a startTime that is no time", running("/startTime", Some(json!("yesterday")))),
        ("a completionTime that is no time", set("/completionTime", json!("soon"))),
        ("an outcome at a time that is none", set("/conditions/3/lastTransitionTime", json!("2030-01-01T10:00:00Zt"))),
        ("an outcome without a time", status(&[("/conditions/3/lastTransitionTime", None)])),
        ("an outcome without a reason", status(&[("/conditions/3/reason", None)])),
        ("a condition without a status", status(&[("/conditions/1/status", None)])),
        ("an unknown status of a condition", set("/conditions/1/status", json!("Perhaps"))),
        ("a negative quantity", set("/effectiveResources/requests/cpu", json!("-1"))),
        ("a quantity that is none", set("/effectiveResources/limits/memory", json!("1e1.5"))),
        ("a quantity of another text", set("/effectiveResources/limits/memory", json!("much"))),
        ("an execution without adapter", status(&[("/execution/adapter", None)])),
        ("a reference without id", status(&[("/execution/references/0/id", None)])),
        ("600 conditions", set("/conditions", json!(many(600)))),
        ("600 references", set("/execution/references", json!(references(600)))),
        ("a message of 200,000 characters", set("/conditions/3/message", json!("x".repeat(200_000)))),
        ("an unknown field", set("/phase", json!("Running"))),
    ]
}

/// Stores the Jobs under the definition without rules, and then puts the rules in force.
async fn store(server: &Server, group: &str, jobs: &[Broken]) -> anyhow::Result<()> {
    let cluster = server::our_cluster().await?;
    cluster.add_crds(&[&definition_without_rules(group).to_string()]).await?;
    for job in jobs {
        job.store(server, group).await.with_context(|| job.what)?;
    }
    cluster.add_crds(&[&definition(group).to_string()]).await?;
    // The API server takes a moment to judge by it: until then even this is allowed.
    let path = format!("{}/{}/status?dryRun=All", Kind::Job.collection_in(group), jobs[0].name);
    let removal = json!([{"op": "remove", "path": "/status"}]);
    let deadline = Instant::now() + RULES_IN_FORCE;
    while server.send(Verb::JsonPatch, &path, &removal).await?.is_accepted() {
        ensure!(Instant::now() < deadline, "the rules of {group} are not in force");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The changes that must always be possible, in the order in which they are made.
fn harmless_changes() -> [(&'static str, Verb, Value); 7] {
    let patch = Verb::MergePatch;
    [
        ("label it", patch, json!({"metadata": {"labels": {"seen": "yes"}}})),
        ("annotate it", patch, json!({"metadata": {"annotations": {"note": "text"}}})),
        ("add a finalizer", patch, json!({"metadata": {"finalizers": ["test/one", "test/two"]}})),
        ("change the TTL", patch, json!({"spec": {"ttlSecondsAfterFinished": 7}})),
        ("cancel it", patch, json!({"spec": {"desiredState": "Cancelled"}})),
        ("take a finalizer off", patch, json!({"metadata": {"finalizers": ["test/two"]}})),
        ("take the last finalizer off", Verb::JsonPatch, json!([{"op": "remove", "path": "/metadata/finalizers"}])),
    ]
}

/// A Job that is stored without rules.
struct Broken {
    what: &'static str,
    name: String,
    spec: Value,
    status: Value,
}

fn broken_jobs() -> Vec<Broken> {
    let specs = broken_specs().into_iter().map(|(what, spec)| (what, spec, Kind::Job.status()));
    let spec = Kind::Job.object("any")["spec"].clone();
    let statuses = broken_statuses().into_iter().map(|(what, status)| (what, spec.clone(), status));
    let named = |(index, (what, spec, status))| Broken { what, name: format!("broken-{index}"), spec, status };
    statuses.chain(specs).enumerate().map(named).collect()
}

impl Broken {
    async fn store(&self, server: &Server, group: &str) -> anyhow::Result<()> {
        let collection = Kind::Job.collection_in(group);
        let mut object = Kind::Job.object(&self.name);
        object["apiVersion"] = format!("{group}/v1alpha1").into();
        object["spec"] = self.spec.clone();
        let created = server.send(Verb::Create, &collection, &object).await?;
        ensure!(created.is_accepted(), "{}", created.summary());
        object["metadata"] = created.body["metadata"].clone();
        object["status"] = self.status.clone();
        let written = server.send(Verb::Replace, &format!("{collection}/{}/status", self.name), &object).await?;
        ensure!(written.is_accepted(), "{}", written.summary());
        ensure!(written.body["status"] == self.status && written.body["spec"] == self.spec, "something was pruned");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_and_breaks_the_rules_locks_nothing() -> anyhow::Result<()> {
    let server = server::ours().await?;
    let collection = Kind::Job.collection_in("unlocked.test");
    let broken = broken_jobs();
    store(&server, "unlocked.test", &broken).await?;
    let mut faults = Vec::new();
    for job in &broken {
        let path = format!("{collection}/{}", job.name);
        for (change, verb, body) in harmless_changes() {
            let answer = server.send(verb, &path, &body).await?;
            if !answer.is_accepted() {
                faults.push(format!("{}: one cannot {change}: {}", job.what, answer.summary()));
            }
        }
        let deleted = server.send(Verb::Delete, &path, &json!({})).await?;
        let gone = server.send(Verb::JsonPatch, &path, &json!([])).await?;
        if !deleted.is_accepted() || gone.code != 404 {
            faults.push(format!("{}: one cannot delete it: {}", job.what, deleted.summary()));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

/// (What is wrong, what would heal it.)
fn healings() -> [(&'static str, Value); 5] {
    let terminal = Kind::Job.status()["conditions"].clone();
    [
        ("a startTime without Scheduled", json!({"conditions": terminal})),
        ("a completionTime without an outcome", json!({"conditions": terminal})),
        ("an outcome without completionTime", json!({"completionTime": "2030-01-01T10:05:00Z"})),
        ("Accepted without a class", json!({"resolvedJobClass": Kind::Job.status()["resolvedJobClass"]})),
        ("Scheduled without Accepted", json!({"conditions": terminal})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_status_can_be_healed_but_not_written_again_as_it_is() -> anyhow::Result<()> {
    let server = server::ours().await?;
    let jobs = broken_jobs();
    store(&server, "healed.test", &jobs).await?;
    for (what, healing) in healings() {
        let job = jobs.iter().find(|job| job.what == what).unwrap();
        let path = format!("{}/{}/status", Kind::Job.collection_in("healed.test"), job.name);
        let other_field = json!({"status": {"observedGeneration": 2}});
        let again = server.send(Verb::MergePatch, &path, &other_field).await?;
        assert_eq!(again.code, 422, "{what}: {}", again.summary());
        let healed = server.send(Verb::MergePatch, &path, &json!({"status": healing})).await?;
        assert!(healed.is_accepted(), "{what}: {}", healed.summary());
    }
    Ok(())
}
