//! What the webhook asks about the cluster, from the stores that it shares with the controllers.

use std::{fmt::Display, sync::Arc};

use ayatori_controller::{
    call::{CallError, bounded, found},
    stores::{NamespaceMetadata, Stores},
};
use ayatori_crds::{JobClass, OpenSandboxExecutionParameters, rules::references::Referent};
use ayatori_webhook::lookups::{Live, LookupError, Lookups, NamespaceMeta};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource,
    api::{GetParams, ListParams},
    core::Request,
    runtime::reflector::ObjectRef,
};
use serde::de::IgnoredAny;

/// The stores, and the API server behind them.
pub(crate) struct StoreLookups {
    client: Client,
    stores: Stores,
}

impl StoreLookups {
    pub(crate) fn new(client: Client, stores: Stores) -> Self {
        Self { client, stores }
    }
}

impl std::fmt::Debug for StoreLookups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreLookups").finish_non_exhaustive()
    }
}

fn meta(namespace: &NamespaceMetadata) -> Arc<NamespaceMeta> {
    Arc::new(NamespaceMeta {
        labels: namespace.metadata.labels.clone().unwrap_or_default(),
        annotations: namespace.metadata.annotations.clone().unwrap_or_default(),
    })
}

fn failed(what: impl Display) -> impl FnOnce(CallError) -> LookupError {
    move |error| LookupError { what: what.to_string(), why: error.to_string() }
}

impl Lookups for StoreLookups {
    fn namespace(&self, name: &str) -> Option<Arc<NamespaceMeta>> {
        self.stores.namespaces.get(&ObjectRef::new(name)).map(|namespace| meta(&namespace))
    }

    fn class(&self, name: &str) -> Option<Arc<JobClass>> {
        self.stores.classes.get(&ObjectRef::new(name))
    }

    fn classes(&self) -> Vec<Arc<JobClass>> {
        self.stores.classes.state()
    }

    fn sandbox_parameters(&self, name: &str) -> Option<Arc<OpenSandboxExecutionParameters>> {
        self.stores.opensandbox_parameters.get(&ObjectRef::new(name))
    }

    fn live_namespace<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<NamespaceMeta>>> {
        Box::pin(async move {
            let namespaces = Api::<NamespaceMetadata>::all(self.client.clone());
            let live = found(bounded(namespaces.get(name)).await).map_err(failed(format!("namespace {name:?}")))?;
            Ok(live.as_ref().map(meta))
        })
    }

    fn live_class<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<JobClass>>> {
        Box::pin(async move {
            let classes = Api::<JobClass>::all(self.client.clone());
            let live = found(bounded(classes.get(name)).await).map_err(failed(format!("JobClass {name:?}")))?;
            Ok(live.map(Arc::new))
        })
    }

    fn live_classes(&self) -> Live<'_, Vec<Arc<JobClass>>> {
        Box::pin(async move {
            let classes = Api::<JobClass>::all(self.client.clone());
            let list = bounded(classes.list(&ListParams::default())).await.map_err(failed("the JobClasses"))?;
            Ok(list.items.into_iter().map(Arc::new).collect())
        })
    }

    fn live_sandbox_parameters<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<OpenSandboxExecutionParameters>>> {
        Box::pin(async move {
            let parameters = Api::<OpenSandboxExecutionParameters>::all(self.client.clone());
            let what = || format!("OpenSandboxExecutionParameters {name:?}");
            let live = found(bounded(parameters.get(name)).await).map_err(failed(what()))?;
            Ok(live.map(Arc::new))
        })
    }

    fn live_exists<'a>(&'a self, namespace: &'a str, referent: Referent, name: &'a str) -> Live<'a, bool> {
        let path = match referent {
            Referent::Secret => Secret::url_path(&(), Some(namespace)),
            Referent::ConfigMap => ConfigMap::url_path(&(), Some(namespace)),
        };
        Box::pin(async move {
            // The metadata only, and not even that is kept: an annotation can hold the value of a Secret.
            let look = async {
                let request = Request::new(path).get_metadata(name, &GetParams::default());
                self.client.request::<IgnoredAny>(request.map_err(kube::Error::BuildRequest)?).await
            };
            let what = || format!("{} {name:?}", referent.as_str());
            Ok(found(bounded(look).await).map_err(failed(what()))?.is_some())
        })
    }
}
