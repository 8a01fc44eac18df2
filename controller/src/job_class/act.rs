//! Writes the status of classes.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::JobClass;
use jiff::Timestamp;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::decide::{View, decide};
use crate::{
    backend::Backend,
    call::{CallError, bounded, found},
    patch, queue,
    stores::{Change, Stores},
};

/// How often a class that names a RuntimeClass is looked at without a change: RuntimeClasses are got, not watched.
const RUNTIME_CLASS_TICK: Duration = Duration::from_secs(60);

/// Runs the JobClass controller until `stop` ends.
pub async fn run(
    client: Client,
    stores: Stores,
    backend: Arc<dyn Backend>,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let store = stores.classes.clone();
    let classes = store.clone();
    let visit = move |class: Arc<JobClass>| {
        let (client, stores, backend) = (client.clone(), stores.clone(), Arc::clone(&backend));
        async move { visit(&client, &stores, backend.as_ref(), &class).await }
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

async fn visit(
    client: &Client,
    stores: &Stores,
    backend: &dyn Backend,
    class: &JobClass,
) -> Result<Option<Duration>, CallError> {
    let parameters = stores.kubernetes_parameters.get(&ObjectRef::new(&class.spec.parameters_ref.name));
    let runtime_class = parameters.as_ref().and_then(|parameters| parameters.spec.runtime_class_name.as_deref());
    let runtime_class = match runtime_class {
        Some(name) => {
            let runtime_classes = Api::<RuntimeClass>::all(client.clone());
            Some((name, found(bounded(runtime_classes.get(name)).await)?.is_some()))
        }
        None => None,
    };
    let view = View { class, settings: backend.settings(&class.spec.parameters_ref), runtime_class };
    if let Some(status) = decide(&view, Timestamp::now()) {
        let patch = Patch::Merge(patch::status(&class.metadata, &status));
        let classes = Api::<JobClass>::all(client.clone());
        found(bounded(classes.patch_status(&class.name_any(), &PatchParams::default(), &patch)).await)?;
    }
    Ok(runtime_class.map(|_| RUNTIME_CLASS_TICK))
}
