//! Events (spec J7): each transition once, after it was written; and nothing rests on them.

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::eventually;
use k8s_openapi::api::{events::v1::Event, rbac::v1::ClusterRole};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{UNTIL_TERM, condition, job, message, uid, with},
    own::alone,
    process::{Ayatori, Ports},
    scene::{BOUND, QUIET, Scene, offer_class},
    shared::in_namespace,
};

const REPORTER: &str = "execution.ayatori.ddupan.top/ayatori";

/// Our Events of a Job, in the order in which they were made.
async fn events_of(scene: &Scene, job: &Job) -> anyhow::Result<Vec<Event>> {
    let all = Api::<Event>::namespaced(scene.client.clone(), &scene.namespace).list(&ListParams::default()).await?;
    let is_of_job = |event: &Event| {
        let regarding = event.regarding.as_ref().and_then(|regarding| regarding.uid.as_deref());
        event.reporting_controller.as_deref() == Some(REPORTER) && regarding == Some(uid(job))
    };
    let mut events: Vec<Event> = all.items.into_iter().filter(is_of_job).collect();
    events.sort_by_key(|event| event.metadata.resource_version.as_deref().and_then(|it| it.parse::<u64>().ok()));
    Ok(events)
}

/// As `Normal Executing: Running`.
async fn told(scene: &Scene, job: &Job) -> anyhow::Result<Vec<String>> {
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let said = |event: &Event| format!("{} {}: {}", word(&event.type_), word(&event.action), word(&event.reason));
    Ok(events_of(scene, job).await?.iter().map(said).collect())
}

/// Waits until these were told, and for as long as one more would take.
async fn are_told(scene: &Scene, job: &Job, expected: &[&str]) -> anyhow::Result<()> {
    eventually("its last Event", BOUND, async || {
        let told = told(scene, job).await?;
        ensure!(told.len() >= expected.len(), "{told:?}");
        Ok(())
    })
    .await?;
    tokio::time::sleep(QUIET).await;
    let told = told(scene, job).await?;
    ensure!(told == expected, "{told:?}");
    Ok(())
}

const STARTED: [&str; 3] =
    ["Normal Accepting: Valid", "Normal Scheduling: BackendCreated", "Normal Executing: Running"];

#[tokio::test]
async fn a_job_tells_each_transition_of_its_life_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // It runs long enough to be seen to.
        for (script, end) in
            [("sleep 2", "Normal Executing: Completed"), ("sleep 2; exit 3", "Warning Executing: ProcessFailed")]
        {
            let name = if end.starts_with("Normal") { "succeeds" } else { "fails" };
            let over = scene.run(&job(name, script)).await?;
            are_told(scene, &over, &[&STARTED[..], &[end]].concat()).await?;
            let last = events_of(scene, &over).await?.pop().context("an Event")?;
            ensure!(last.note.as_deref() == Some(message(&over, "Succeeded")), "{:?}", last.note);
            ensure!(last.reporting_instance.is_some_and(|instance| !instance.is_empty()), "nobody says it");
            let described = scene.kubectl().ok(&["describe", "ajob", name])?.stdout;
            ensure!(
                ["BackendCreated", end.rsplit(' ').next().unwrap_or_default()]
                    .iter()
                    .all(|word| described.contains(word)),
                "{described}"
            );
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_waits_tells_for_what_and_a_class_that_is_made_tells_of_itself() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let class = format!("{}-late", scene.namespace);
        let waiting = scene.create(&with(job("job", "exit 0"), "jobClassName", json!(class))).await?;
        are_told(scene, &waiting, &["Warning Accepting: JobClassNotFound"]).await?;
        offer_class(&scene.client, &class).await?;
        scene.over("job").await?;
        // Of what is cluster-wide they are in `default`.
        eventually("the class's Events", BOUND, async || {
            let events = Api::<Event>::namespaced(scene.client.clone(), "default").list(&ListParams::default()).await?;
            let of_class = events.items.iter().filter(|event| {
                event
                    .regarding
                    .as_ref()
                    .is_some_and(|it| it.kind.as_deref() == Some("JobClass") && it.name.as_ref() == Some(&class))
            });
            let mut reasons: Vec<&str> = of_class.filter_map(|event| event.reason.as_deref()).collect();
            reasons.retain(|reason| *reason != "ParametersNotFound");
            ensure!(reasons.contains(&"Accepted") && reasons.contains(&"BackendReachable"), "{reasons:?}");
            Ok(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn no_event_is_repeated_after_a_restart() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let first = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        let over = scene.run(&job("over", "sleep 2; exit 3")).await?;
        let ended = [&STARTED[..], &["Warning Executing: ProcessFailed"]].concat();
        are_told(scene, &over, &ended).await?;
        let running = scene.start(&job("running", UNTIL_TERM)).await?;
        are_told(scene, &running, &STARTED).await?;
        first.kill();

        let _second = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
        are_told(scene, &running, &STARTED).await?;
        are_told(scene, &over, &ended).await?;
        scene.cancel("running").await?;
        scene.over("running").await?;
        let cancelled = ["Normal Stopping: Cancelled", "Normal Executing: Cancelled"];
        are_told(scene, &running, &[&STARTED[..], &cancelled].concat()).await
    })
    .await
}

#[tokio::test]
async fn a_process_that_may_not_write_events_carries_jobs_out_all_the_same() -> anyhow::Result<()> {
    alone(async |scene, kubeconfig| {
        let roles = Api::<ClusterRole>::all(scene.client.clone());
        let role = roles.get("ayatori").await?;
        let is_of_events = |rule: &Value| rule["apiGroups"] == json!(["events.k8s.io"]);
        let all = serde_json::to_value(&role.rules)?;
        let rules = all.as_array().context("rules")?;
        let (of_events, others): (Vec<_>, Vec<_>) = rules.iter().cloned().partition(is_of_events);
        ensure!(of_events == [json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]})]);
        let put = async |rules: Value| {
            roles.patch("ayatori", &PatchParams::default(), &Patch::Merge(json!({"rules": rules}))).await
        };
        put(json!(others)).await?;
        let kubectl = scene.kubectl();
        let may =
            ["auth", "can-i", "create", "events.events.k8s.io", "--as=system:serviceaccount:ayatori-system:ayatori"];
        let judged = async {
            eventually("the right is gone", BOUND, async || {
                ensure!(!kubectl.run(&may, "")?.success, "it is there");
                Ok(())
            })
            .await?;
            let process = Ayatori::ready(scene.cluster, kubeconfig, Ports::MAIN).await?;
            let over = scene.run(&job("job", "exit 3")).await?;
            ensure!(condition(&over, "Succeeded") == "False/ProcessFailed", "{}", condition(&over, "Succeeded"));
            ensure!(told(scene, &over).await?.is_empty(), "an Event was made");
            let warnings = process.log().lines().filter(|line| line.contains("an Event is dropped")).count();
            ensure!(warnings == 1, "it is said {warnings} times");
            scene.delete("job").await?;
            scene.gone(&over).await
        }
        .await;
        put(all.clone()).await?;
        judged
    })
    .await
}
