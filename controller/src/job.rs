//! The life of a Job: what is seen ([`view`]), what is next ([`decide`]), the one request ([`act`]).

pub mod accept;
pub mod act;
pub mod decide;
mod gather;
pub mod options;
pub mod patience;
pub mod references;
pub mod status;
pub mod view;

use std::{future::Future, sync::Arc};

use ayatori_crds::{
    Job, JobState,
    conditions::{ACCEPTED, is_true},
};
use kube::{
    ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use crate::{queue, stores::Change};

/// Runs the Job controller until `stop` ends.
pub async fn run(
    controller: act::JobController,
    jobs: Store<Job>,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let controller = Arc::new(controller);
    let store = jobs.clone();
    let visit = move |job| {
        let controller = Arc::clone(&controller);
        async move { controller.visit(job).await }
    };
    queue::run(jobs, changes, move |change| affected(&store, change), visit, stop).await;
}

/// The Jobs that a change concerns. A class, its parameters or a namespace concern those that wait (spec C1).
fn affected(jobs: &Store<Job>, change: Option<Change>) -> Vec<ObjectRef<Job>> {
    let waiting = |job: &Job| {
        let state = JobState::of(job);
        !is_true(job.conditions(), ACCEPTED) && !state.is_terminal() || state == JobState::Scheduling
    };
    match change {
        Some(Change::Job(job) | Change::Execution(job)) => vec![job],
        Some(Change::Class(_) | Change::Parameters(_)) => references(jobs, waiting),
        Some(Change::Namespace(name)) => {
            references(jobs, |job| job.namespace().is_some_and(|namespace| namespace == name) && waiting(job))
        }
        None => references(jobs, |_| true),
    }
}

fn references(jobs: &Store<Job>, filter: impl Fn(&Job) -> bool) -> Vec<ObjectRef<Job>> {
    jobs.state().iter().filter(|job| filter(job)).map(|job| ObjectRef::from_obj(job.as_ref())).collect()
}
