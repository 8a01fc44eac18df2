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

use ayatori_crds::Job;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::broadcast;

use crate::{
    queue,
    stores::{Change, Stores, job_index::JobIndex},
};

/// Runs the Job controller until `stop` ends.
pub async fn run(
    controller: act::JobController,
    stores: Stores,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let controller = Arc::new(controller);
    let (jobs, index) = (stores.jobs.clone(), stores.job_index);
    let reconciles = controller.metrics().reconciles("job");
    let visit = move |job| {
        let controller = Arc::clone(&controller);
        async move { controller.visit(job).await }
    };
    queue::run(stores.jobs, changes, move |change| affected(&jobs, &index, change), visit, reconciles, stop).await;
}

/// The Jobs that a change concerns. A class, its parameters or a namespace concern those that wait (spec C1).
fn affected(jobs: &Store<Job>, index: &JobIndex, change: Option<Change>) -> Vec<ObjectRef<Job>> {
    match change {
        Some(Change::Job(job) | Change::Execution(job)) => vec![job],
        Some(Change::Class(name)) => index.waiting_for(&name),
        Some(Change::Parameters(_)) => index.waiting(),
        Some(Change::Namespace(name)) => {
            let mut waiting = index.waiting();
            waiting.retain(|job| job.namespace.as_ref() == Some(&name));
            waiting
        }
        None => jobs.state().iter().map(|job| ObjectRef::from_obj(job.as_ref())).collect(),
    }
}
