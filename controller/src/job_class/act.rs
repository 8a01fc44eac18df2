//! Writes the status of classes.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::{JobClass, rules::class_policy::Controller};
use jiff::Timestamp;
use kube::{
    Api, Client,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::decide::{View, decide, is_ours};
use crate::{backend::Backend, call::CallError, queue, stores::Change, write};

/// Runs the JobClass controller until `stop` ends.
pub async fn run(
    client: Client,
    store: Store<JobClass>,
    backend: Arc<dyn Backend>,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let classes = store.clone();
    let visit = move |class: Arc<JobClass>| {
        let (client, backend) = (client.clone(), Arc::clone(&backend));
        async move { visit(&client, backend.as_ref(), &class).await }
    };
    queue::run(store, changes, move |change| affected(&classes, change), visit, stop).await;
}

fn affected(classes: &Store<JobClass>, change: Option<Change>) -> Vec<ObjectRef<JobClass>> {
    let of_parameters = |name: &str| {
        let named = classes.state().into_iter().filter(|class| class.spec.parameters_ref.name == name);
        named.map(|class| ObjectRef::from_obj(class.as_ref())).collect()
    };
    match change {
        Some(Change::Class(name)) => vec![ObjectRef::new(&name)],
        Some(Change::Parameters(name)) => of_parameters(&name),
        Some(Change::Job(_) | Change::Namespace(_) | Change::Execution(_)) => vec![],
        None => classes.state().iter().map(|class| ObjectRef::from_obj(class.as_ref())).collect(),
    }
}

async fn visit(client: &Client, backend: &dyn Backend, class: &JobClass) -> Result<Option<Duration>, CallError> {
    if !is_ours(class, Controller::of(&class.spec.controller_name)) {
        return Ok(None);
    }
    let reference = &class.spec.parameters_ref;
    let settings = backend.settings(reference);
    // A look that fails does not keep the rest from being said; it is tried again as a failure.
    let (readiness, look_again) = match backend.readiness(reference).await {
        Ok((readiness, look_again)) => (Some(readiness), Ok(look_again)),
        Err(error) => (None, Err(error)),
    };
    let view = View { class, settings, readiness };
    if let Some(status) = decide(&view, Timestamp::now()) {
        write::status(&Api::<JobClass>::all(client.clone()), &class.metadata, &status).await?;
    }
    look_again
}
