//! The order of a start (spec D2, D3), read from the audit log of the API server.

use std::time::Duration;

use anyhow::{Context, ensure};
use ayatori_tests::eventually;
use serde_json::{Value, json};

use ayatori_tests::product::{
    audit::Write,
    jobs::{job, native_name, uid},
    shared::in_namespace,
};

/// The log is written with the answer.
const WRITTEN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_native_job_is_created_suspended_and_released_only_once_its_uid_is_recorded() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let job = scene.run(&job("job", "exit 0")).await?;
        let audit = scene.audit();
        let (created, recorded, released, pod) = eventually("the writes are in the audit log", WRITTEN, async || {
            let native = audit.writes("batch/jobs")?;
            let created = native.iter().find(|write| write.verb == "create").context("no native Job created")?;
            let uid = created.answered["metadata"]["uid"].as_str().context("no UID")?;
            let statuses = audit.writes("execution.ayatori.ddupan.top/jobs/status")?;
            let recorded = statuses.iter().find(|write| records(write, uid)).context("no UID recorded")?.clone();
            let released = native.iter().find(|write| releases(write)).context("not released")?.clone();
            let pods = audit.writes("/pods")?;
            let pod = pods.iter().find(|write| write.verb == "create").context("no pod")?.clone();
            Ok((created.clone(), recorded, released, pod))
        })
        .await?;

        ensure!(created.sent["spec"]["suspend"] == true, "{}", created.sent);
        ensure!(created.name == native_name(&job), "{}", created.name);
        let owner = &created.sent["metadata"]["ownerReferences"];
        ensure!(owner[0]["uid"] == uid(&job) && owner[0]["controller"] == true, "{owner}");
        ensure!(owner[0]["blockOwnerDeletion"] == true, "{owner}");
        // The recorded UID is durable before the release is sent, and the release tests it.
        ensure!(created.ended <= recorded.began && recorded.ended <= released.began, "{recorded:?} {released:?}");
        let test = json!({"op": "test", "path": "/metadata/uid", "value": created.answered["metadata"]["uid"]});
        ensure!(operations(&released).contains(&test), "{}", released.sent);
        // Nothing but the release made the pod.
        ensure!(released.began <= pod.began, "{released:?} {pod:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_costs_the_api_server_no_more_than_five_status_writes() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // Accepted, scheduled, (waiting,) running, over; each costs every watcher of the cluster.
        scene.run(&job("job", "sleep 1")).await?;
        let writes = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        let words = |write: &Write| write.sent["status"]["conditions"].to_string();
        ensure!(writes.len() <= 5, "{:#?}", writes.iter().map(words).collect::<Vec<_>>());
        Ok(())
    })
    .await
}

/// Whether a status write has put this UID into the references.
fn records(write: &Write, uid: &str) -> bool {
    let references = write.sent["status"]["execution"]["references"].as_array();
    references.is_some_and(|all| all.iter().any(|reference| reference["id"] == uid))
}

fn releases(write: &Write) -> bool {
    operations(write).iter().any(|operation| operation["path"] == "/spec/suspend" && operation["value"] == false)
}

fn operations(write: &Write) -> Vec<Value> {
    write.sent.as_array().cloned().unwrap_or_default()
}
