//! What a namespace does to its Jobs: it goes, it is full, something is missing in it, a name is used again (spec E5, F3,
//! I10).

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::{
    eventually,
    product::{
        audit::Write,
        jobs::{class, condition, has_started, job, message, native_name, parameters, uid, with},
        scene::{BOUND, QUIET, Scene, offer},
        shared::in_namespace,
    },
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::{
    ends::{ends_as, one_pod, verdict},
    pods::at_term,
};

pub(crate) async fn a_namespace_goes_with_its_running_jobs_and_what_they_refer_to() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.kubectl().ok(&["create", "configmap", "settings", "--from-literal=key=value"])?;
        let script = at_term("sleep 1.2; exit 143");
        let mut manifest = job("job", &script);
        let reference = json!({"configMapKeyRef": {"name": "settings", "key": "key"}});
        manifest["spec"]["task"]["env"] = json!([{"name": "KEY", "valueFrom": reference}]);
        let jobs = try_join_all(["one", "two", "three"].map(|name| {
            let mut manifest = manifest.clone();
            manifest["metadata"]["name"] = json!(name);
            async move { scene.start(&manifest).await }
        }))
        .await?;
        let namespaces = Api::<Namespace>::all(scene.client.clone());
        namespaces.delete(&scene.namespace, &DeleteParams::default()).await?;
        eventually("the namespace is gone", BOUND, async || {
            let left = namespaces.get_opt(&scene.namespace).await?.and_then(|namespace| namespace.status);
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await?;
        // Each had its verdict before it went, with the code that was seen, and nothing was started anew.
        let statuses = scene.audit().writes("execution.ayatori.ddupan.top/jobs/status")?;
        for job in &jobs {
            let of_it = |write: &&Write| write.answered["metadata"]["uid"] == uid(job);
            let status = &statuses.iter().rfind(of_it).context("no status was written")?.answered["status"];
            ensure!(status["completionTime"].is_string() && status["result"]["exitCode"] == 143, "{status}");
            one_pod(scene, job)?;
        }
        Ok(())
    })
    .await
}

/// Sets the quota `full`, and waits until it holds.
pub(crate) async fn forbid(scene: &Scene, resource: &str) -> anyhow::Result<()> {
    scene.kubectl().ok(&["create", "quota", "full", &format!("--hard={resource}=0")])?;
    let quotas = Api::<ResourceQuota>::namespaced(scene.client.clone(), &scene.namespace);
    eventually("the quota holds", BOUND, async || {
        let status = quotas.get("full").await?.status.context("no status")?;
        ensure!(status.hard.is_some_and(|hard| hard.contains_key(resource)), "it is not counted yet");
        Ok(())
    })
    .await
}

pub(crate) async fn a_quota_of_native_jobs_that_is_full_says_so_and_the_job_runs_once_it_is_raised()
-> anyhow::Result<()> {
    in_namespace(async |scene| {
        forbid(scene, "count/jobs.batch").await?;
        scene.create(&job("job", "exit 0")).await?;
        let refused = scene.until_condition("job", "Scheduled", "False/BackendRefused").await?;
        let words = message(&refused, "Scheduled");
        ensure!(words.contains("exceeded quota: full"), "{words}");
        scene.kubectl().ok(&["delete", "quota", "full"])?;
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_task_that_pod_security_refuses_says_so_and_runs_once_it_may() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let label = "pod-security.kubernetes.io/enforce";
        scene.kubectl().ok(&["label", "namespace", &scene.namespace, &format!("{label}=restricted")])?;
        scene.create(&job("job", "exit 0")).await?;
        let says = |job: &Job| message(job, "Succeeded").contains("violates PodSecurity");
        let waiting = scene.until("job", "it says that it is refused", says).await?;
        ensure!(condition(&waiting, "Succeeded") == "Unknown/Scheduling" && !has_started(&waiting));
        scene.kubectl().ok(&["label", "namespace", &scene.namespace, &format!("{label}-")])?;
        ends_as(scene, "True/Completed", Some(0)).await.map(drop)
    })
    .await
}

pub(crate) async fn a_missing_service_account_is_awaited() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-account", scene.namespace);
        let mut settings = parameters(&name);
        settings["spec"]["serviceAccountName"] = json!("late");
        offer(&scene.client, &class(&name), &settings).await?;
        scene.create(&with(job("job", "exit 0"), "jobClassName", json!(name))).await?;
        let waiting = scene.until_condition("job", "Scheduled", "False/BackendRefused").await?;
        let why = message(&waiting, "Scheduled");
        ensure!(why == "waiting for ServiceAccount \"late\" to be created", "{why}");
        tokio::time::sleep(QUIET).await;
        ensure!(scene.native_job(&waiting).await?.is_none(), "it fell back to another ServiceAccount");
        scene.kubectl().ok(&["create", "serviceaccount", "late"])?;
        let over = ends_as(scene, "True/Completed", Some(0)).await?;
        let account = scene.pod_of(&over).await?.spec.and_then(|spec| spec.service_account_name);
        ensure!(account.as_deref() == Some("late"), "{account:?}");
        Ok(())
    })
    .await
}

pub(crate) async fn a_job_of_the_same_name_shares_nothing_with_the_one_before() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let first = scene.start(&job("job", &at_term("exit 3"))).await?;
        scene.delete("job").await?;
        scene.until_gone("job").await?;
        // What the first one ran on may be there still.
        let second = scene.run(&job("job", "exit 4")).await?;
        ensure!(uid(&second) != uid(&first) && native_name(&second) != native_name(&first));
        ensure!(verdict(&second) == ("False/ProcessFailed".to_owned(), Some(4)), "{:?}", second.status);
        let references = serde_json::to_value(second.status.as_ref().and_then(|status| status.execution.as_ref()))?;
        let native = scene.native_job(&second).await?.context("no native Job")?;
        ensure!(references["references"] == json!([{"type": "Job", "id": native.metadata.uid}]), "{references}");
        scene.gone(&first).await?;
        // The end of the first one took nothing of the second.
        ensure!(scene.native_job(&second).await?.is_some() && scene.pods_of(&second).await?.len() == 1);
        Ok(())
    })
    .await
}

pub(crate) async fn a_job_that_is_deleted_with_its_children_orphaned_leaves_nothing_running() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let running = scene.start(&job("job", &at_term("exit 143"))).await?;
        ensure!(has_started(&running));
        scene.kubectl().ok(&["delete", "ajob", "job", "--cascade=orphan", "--timeout=60s"])?;
        // The garbage collector takes our owner reference off; the finalizer makes sure that we come first.
        scene.gone(&running).await
    })
    .await
}
