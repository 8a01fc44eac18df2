//! Native Jobs with our marks whose Job is gone (spec D7), whatever way they were orphaned: a create that landed late, a
//! Job whose finalizer was stripped by hand. They are stopped and released, so that no finalizer of ours keeps a
//! namespace alive.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::{
    Job,
    names::{BACKEND_CLEANUP_FINALIZER, JOB_NAME_ANNOTATION, JOB_UID_LABEL},
};
use kube::{
    Api, Client, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::{
    objects::{NativeJob, condition_is_true},
    render::native_name,
    send::NativeJobs,
};
use crate::{
    call::{CallError, bounded, found},
    metrics::Metrics,
    queue,
    stores::{Change, Stores},
};

/// The next step for a leftover: one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It may run: stop it for good.
    Stop,
    /// It is over, or can never run: delete it.
    Delete,
    /// It is being deleted: take our finalizer off.
    Unprotect,
    /// Nothing until it changes.
    Wait,
}

/// What is next for a native Job whose Job is gone: pure.
#[must_use]
pub fn decide(native: &NativeJob) -> Step {
    let protected = native.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == BACKEND_CLEANUP_FINALIZER);
    let stopped = native.spec.active_deadline_seconds == Some(0);
    let conditions = &native.status.conditions;
    let over = ["Complete", "Failed"].iter().any(|type_| condition_is_true(conditions, type_).is_some());
    match () {
        () if !protected => Step::Wait,
        // Its controller does not stop what is being deleted; its pod goes with it.
        () if native.metadata.deletion_timestamp.is_some() => Step::Unprotect,
        () if over || (stopped && native.spec.suspend) => Step::Delete,
        () if stopped => Step::Wait,
        () => Step::Stop,
    }
}

/// Sweeps leftovers until `stop` ends.
pub async fn run(
    client: Client,
    stores: Stores,
    changes: broadcast::Receiver<Change>,
    metrics: Metrics,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let natives = stores.native_jobs.clone();
    let store = natives.clone();
    let visit = move |native: Arc<NativeJob>| {
        let (client, jobs) = (client.clone(), stores.jobs.clone());
        async move { visit(&client, &jobs, &native).await }
    };
    queue::run(natives, changes, move |change| affected(&store, change), visit, metrics.reconciles("leftovers"), stop)
        .await;
}

fn affected(natives: &Store<NativeJob>, change: Option<Change>) -> Vec<ObjectRef<NativeJob>> {
    match change {
        Some(Change::Job(job) | Change::Execution(job)) => {
            let (uid, namespace) = (job.extra.uid, job.namespace);
            uid.zip(namespace)
                .map(|(uid, namespace)| ObjectRef::new(&native_name(&uid)).within(&namespace))
                .into_iter()
                .collect()
        }
        Some(Change::Class(_) | Change::Parameters(_) | Change::Namespace(_)) => vec![],
        None => natives.state().iter().map(|native| ObjectRef::from_obj(native.as_ref())).collect(),
    }
}

async fn visit(client: &Client, jobs: &Store<Job>, native: &NativeJob) -> Result<Option<Duration>, CallError> {
    let step = decide(native);
    let Some(job) = marks(native) else { return Ok(None) };
    // Whether the Job is gone is asked live only where the store does not have it, under whatever name.
    if step == Step::Wait || is_known(jobs, &job) {
        return Ok(None);
    }
    let namespace = job.namespace.as_deref().unwrap_or_default();
    let live = found(bounded(Api::<Job>::namespaced(client.clone(), namespace).get(&job.name)).await)?;
    if is_of(live.as_ref(), &job) {
        return Ok(None);
    }
    tracing::info!(namespace, name = native.name_any(), job = job.name, ?step, "sweeping what a Job left behind");
    carry_out(&NativeJobs::of(client, namespace), native, step).await?;
    // Each step changes the native Job, and the change brings the next look.
    Ok(None)
}

/// The Job that the marks name, with its UID; None for what is not ours. Its name is that of the owner: an annotation,
/// which is left where an owner reference was stripped, can be edited by anybody who may write native Jobs.
#[must_use]
pub fn marks(native: &NativeJob) -> Option<ObjectRef<Job>> {
    let uid = native.metadata.labels.as_ref()?.get(JOB_UID_LABEL)?;
    let owner = native.metadata.owner_references.iter().flatten().find(|owner| owner.uid == *uid);
    let annotated = || native.metadata.annotations.as_ref()?.get(JOB_NAME_ANNOTATION);
    let name = owner.map(|owner| &owner.name).or_else(annotated)?;
    if native.metadata.name.as_deref() != Some(native_name(uid).as_str()) {
        return None;
    }
    let mut job = ObjectRef::new(name).within(native.metadata.namespace.as_deref()?);
    job.extra.uid = Some(uid.clone());
    Some(job)
}

/// Under the name that the marks say, else under any: those are searched only for what looks like a leftover.
fn is_known(jobs: &Store<Job>, reference: &ObjectRef<Job>) -> bool {
    is_of(jobs.get(reference).as_deref(), reference) || jobs.find(|job| is_of(Some(job), reference)).is_some()
}

fn is_of(job: Option<&Job>, reference: &ObjectRef<Job>) -> bool {
    job.is_some_and(|job| job.metadata.uid == reference.extra.uid)
}

async fn carry_out(natives: &NativeJobs, native: &NativeJob, step: Step) -> Result<(), CallError> {
    let name = native.name_any();
    let uid = native.metadata.uid.clone().unwrap_or_default();
    match step {
        Step::Wait => return Ok(()),
        Step::Stop => natives.stop(&name, &uid).await?,
        Step::Unprotect => natives.unprotect(&native.metadata).await?,
        Step::Delete => natives.delete(&name, uid).await?,
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::*;

    fn native(suspend: bool, deadline: Option<i64>, condition: Option<&str>, metadata: &Value) -> NativeJob {
        let conditions: Vec<Value> = condition.iter().map(|type_| json!({"type": type_, "status": "True"})).collect();
        let mut all = json!({"finalizers": [BACKEND_CLEANUP_FINALIZER], "namespace": "n", "name": "ay-u",
            "labels": {JOB_UID_LABEL: "u"}, "annotations": {JOB_NAME_ANNOTATION: "j"}});
        json_patch::merge(&mut all, metadata);
        serde_json::from_value(json!({"metadata": all, "spec": {"suspend": suspend, "activeDeadlineSeconds": deadline},
            "status": {"conditions": conditions}}))
        .unwrap()
    }

    #[test]
    fn a_leftover_is_stopped_then_deleted_then_let_go() {
        let none = json!({});
        assert_eq!(decide(&native(true, None, None, &none)), Step::Stop, "a release may still land");
        assert_eq!(decide(&native(true, Some(0), None, &none)), Step::Delete);
        assert_eq!(decide(&native(false, None, None, &none)), Step::Stop);
        assert_eq!(decide(&native(false, Some(0), None, &none)), Step::Wait);
        assert_eq!(decide(&native(false, Some(0), Some("Failed"), &none)), Step::Delete);
        assert_eq!(decide(&native(false, None, Some("Complete"), &none)), Step::Delete);
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(decide(&native(false, None, None, &going)), Step::Unprotect);
        assert_eq!(decide(&native(false, None, None, &json!({"finalizers": null}))), Step::Wait);
    }

    #[test]
    fn a_job_that_is_there_is_known_by_its_uid_whatever_the_marks_call_it() {
        let (store, mut writer) = kube::runtime::reflector::store();
        let job = json!({"apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
            "metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": {"task": {"image": "app:1"}}});
        writer.apply_watcher_event(&Event::Apply(serde_json::from_value(job).unwrap()));
        let known = |annotation: &str| {
            let metadata = json!({"annotations": {JOB_NAME_ANNOTATION: annotation}});
            is_known(&store, &marks(&native(true, None, None, &metadata)).unwrap())
        };
        assert!(known("j") && known("edited"));
        let gone = json!({"name": "ay-v", "labels": {JOB_UID_LABEL: "v"}});
        assert!(!is_known(&store, &marks(&native(true, None, None, &gone)).unwrap()), "a new UID under the old name");
    }

    #[test]
    fn only_what_carries_all_our_marks_is_ever_touched() {
        let none = json!({});
        let named = |metadata: &Value| marks(&native(true, None, None, metadata)).map(|job| job.name);
        assert_eq!(marks(&native(true, None, None, &none)).unwrap().extra.uid.as_deref(), Some("u"));
        assert_eq!(named(&none).as_deref(), Some("j"));
        let owned = |uid: &str| {
            json!({"annotations": {JOB_NAME_ANNOTATION: "edited"},
                "ownerReferences": [{"apiVersion": "x/v1", "kind": "Job", "name": "owner", "uid": uid}]})
        };
        assert_eq!(named(&owned("u")).as_deref(), Some("owner"), "anybody may edit an annotation");
        assert_eq!(named(&owned("another")).as_deref(), Some("edited"));
        for strange in [json!({"labels": null}), json!({"annotations": null}), json!({"name": "ay-other"})] {
            assert_eq!(marks(&native(true, None, None, &strange)), None, "{strange}");
        }
    }
}
