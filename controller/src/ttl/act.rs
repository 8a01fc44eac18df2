//! Deletes finished Jobs: a live read first, then a DELETE that an accepted edit always wins against.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::Job;
use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::Preconditions,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::decide::{Step, decide};
use crate::{
    call::{CallError, bounded, found},
    clock::Clock,
    metrics::Metrics,
    queue,
    stores::Change,
    write,
};

/// Runs the TTL controller until `stop` ends.
pub async fn run(
    client: Client,
    jobs: Store<Job>,
    clock: Clock,
    changes: broadcast::Receiver<Change>,
    metrics: Metrics,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let store = jobs.clone();
    let affected = move |change: Option<Change>| match change {
        Some(Change::Job(job)) => vec![job],
        Some(_) => vec![],
        None => store.state().iter().map(|job| ObjectRef::from_obj(job.as_ref())).collect(),
    };
    let reconciles = metrics.reconciles("ttl");
    let visit = move |job: Arc<Job>| {
        let (client, clock, metrics) = (client.clone(), clock.clone(), metrics.clone());
        async move { visit(&client, &clock, &metrics, &job).await }
    };
    queue::run(jobs, changes, affected, visit, reconciles, stop).await;
}

async fn visit(client: &Client, clock: &Clock, metrics: &Metrics, seen: &Job) -> Result<Option<Duration>, CallError> {
    match decide(seen, clock.now()) {
        Step::Nothing => return Ok(None),
        Step::WaitUntil(expiry) => return Ok(Some(until(expiry, clock.now()))),
        Step::Delete(_) => {}
    }
    let jobs: Api<Job> = Api::namespaced(client.clone(), &seen.namespace().unwrap_or_default());
    let Some(live) = found(bounded(jobs.get(&seen.name_any())).await)? else { return Ok(None) };
    if live.metadata.uid != seen.metadata.uid {
        return Ok(None);
    }
    // By a time that the API server has reached, too: never earlier than its clock says (spec F4).
    let now = clock.at_least();
    match decide(&live, now) {
        Step::Nothing => Ok(None),
        Step::WaitUntil(expiry) => Ok(Some(until(expiry, now))),
        Step::Delete(expiry) => delete(&jobs, &live, metrics, now.duration_since(expiry)).await,
    }
}

/// With UID and resourceVersion: whoever wrote the Job since it was read wins.
async fn delete(
    jobs: &Api<Job>,
    live: &Job,
    metrics: &Metrics,
    lag: SignedDuration,
) -> Result<Option<Duration>, CallError> {
    let preconditions =
        Preconditions { uid: live.metadata.uid.clone(), resource_version: live.metadata.resource_version.clone() };
    write::deletion(jobs, &live.name_any(), preconditions).await?;
    metrics.deleted_by_ttl(lag);
    let (namespace, name, lag_ms) = (live.namespace(), live.name_any(), lag.as_millis());
    tracing::info!(namespace, name, uid = live.uid(), lag_ms, "deleted by its TTL");
    Ok(None)
}

fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
