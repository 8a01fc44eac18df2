//! Puts the finalizer on settings that a class names, and takes it off.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::{JobClass, KubernetesExecutionParameters, names::PARAMETERS_PROTECTION_FINALIZER};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ListParams,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::decide::{Step, View, decide, names};
use crate::{
    call::{CallError, bounded},
    metrics::Metrics,
    patch, queue,
    stores::{Change, Stores},
    write,
};

/// Runs the controller of the Kubernetes adapter's settings until `stop` ends.
pub async fn run(
    client: Client,
    stores: Stores,
    changes: broadcast::Receiver<Change>,
    metrics: Metrics,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let all = stores.kubernetes_parameters.clone();
    let (settings, classes) = (all.clone(), stores.classes.clone());
    let visit = move |parameters: Arc<KubernetesExecutionParameters>| {
        let (client, classes) = (client.clone(), classes.clone());
        async move { visit(&client, &classes, &parameters).await }
    };
    let affected = move |change| affected(&settings, &stores.classes, change);
    queue::run(all, changes, affected, visit, metrics.reconciles("parameters"), stop).await;
}

/// A class concerns the settings that it names, and, where it is gone, those that wait to go.
fn affected(
    settings: &Store<KubernetesExecutionParameters>,
    classes: &Store<JobClass>,
    change: Option<Change>,
) -> Vec<ObjectRef<KubernetesExecutionParameters>> {
    let all = |filter: &dyn Fn(&KubernetesExecutionParameters) -> bool| {
        let all = settings.state().into_iter().filter(|parameters| filter(parameters));
        all.map(|parameters| ObjectRef::from_obj(parameters.as_ref())).collect()
    };
    match change {
        Some(Change::Parameters(name)) => vec![ObjectRef::new(&name)],
        Some(Change::Class(name)) => {
            let class = classes.get(&ObjectRef::new(&name));
            let named =
                |name: Option<&String>| class.as_ref().is_some_and(|c| name == Some(&c.spec.parameters_ref.name));
            all(&|parameters| {
                parameters.metadata.deletion_timestamp.is_some() || named(parameters.metadata.name.as_ref())
            })
        }
        Some(Change::Job(_) | Change::Namespace(_) | Change::Execution(_)) => vec![],
        None => all(&|_| true),
    }
}

async fn visit(
    client: &Client,
    classes: &Store<JobClass>,
    parameters: &KubernetesExecutionParameters,
) -> Result<Option<Duration>, CallError> {
    let metadata = &parameters.metadata;
    let used = classes.state().iter().any(|class| is_named(class, parameters));
    let mut step = decide(&View { metadata, used, used_is_live: false });
    if step == Step::ReadClasses {
        let live = bounded(Api::<JobClass>::all(client.clone()).list(&ListParams::default())).await?;
        let used = live.items.iter().any(|class| is_named(class, parameters));
        step = decide(&View { metadata, used, used_is_live: true });
    }
    let name = parameters.name_any();
    let operations = match step {
        Step::AddFinalizer => Some(patch::add_finalizer(metadata, PARAMETERS_PROTECTION_FINALIZER)),
        Step::RemoveFinalizer => patch::remove_finalizer(metadata, PARAMETERS_PROTECTION_FINALIZER),
        Step::ReadClasses | Step::Wait => None,
    };
    if let Some(operations) = operations {
        let all = Api::<KubernetesExecutionParameters>::all(client.clone());
        write::operations(&all, &name, operations).await?;
    } else if metadata.deletion_timestamp.is_some() {
        tracing::info!(name, "the deletion of these parameters waits for the JobClasses that name them");
    }
    Ok(None)
}

fn is_named(class: &JobClass, parameters: &KubernetesExecutionParameters) -> bool {
    names(class, &KubernetesExecutionParameters::kind(&()), &parameters.metadata)
}
