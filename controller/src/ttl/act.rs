//! Deletes finished Jobs: a live read first, then a DELETE that an accepted edit always wins against.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::Job;
use jiff::Timestamp;
use kube::{
    Api, Client, ResourceExt,
    api::Preconditions,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::decide::{Step, decide};
use crate::{
    call::{CallError, bounded, found},
    queue,
    stores::Change,
    write,
};

/// Runs the TTL controller until `stop` ends.
pub async fn run(
    client: Client,
    jobs: Store<Job>,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let store = jobs.clone();
    let affected = move |change: Option<Change>| match change {
        Some(Change::Job(job)) => vec![job],
        Some(_) => vec![],
        None => store.state().iter().map(|job| ObjectRef::from_obj(job.as_ref())).collect(),
    };
    let visit = move |job: Arc<Job>| {
        let client = client.clone();
        async move { visit(&client, &job).await }
    };
    queue::run(jobs, changes, affected, visit, stop).await;
}

async fn visit(client: &Client, seen: &Job) -> Result<Option<Duration>, CallError> {
    match decide(seen, Timestamp::now()) {
        Step::Nothing => return Ok(None),
        Step::WaitUntil(expiry) => return Ok(Some(until(expiry))),
        Step::Delete => {}
    }
    let jobs: Api<Job> = Api::namespaced(client.clone(), &seen.namespace().unwrap_or_default());
    let Some(live) = found(bounded(jobs.get(&seen.name_any())).await)? else { return Ok(None) };
    if live.metadata.uid != seen.metadata.uid {
        return Ok(None);
    }
    match decide(&live, Timestamp::now()) {
        Step::Nothing => Ok(None),
        Step::WaitUntil(expiry) => Ok(Some(until(expiry))),
        Step::Delete => delete(&jobs, &live).await,
    }
}

/// With UID and resourceVersion: whoever wrote the Job since it was read wins.
async fn delete(jobs: &Api<Job>, live: &Job) -> Result<Option<Duration>, CallError> {
    let preconditions =
        Preconditions { uid: live.metadata.uid.clone(), resource_version: live.metadata.resource_version.clone() };
    write::deletion(jobs, &live.name_any(), preconditions).await?;
    tracing::info!(namespace = live.namespace(), name = live.name_any(), uid = live.uid(), "deleted by its TTL");
    Ok(None)
}

fn until(time: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default()
}
