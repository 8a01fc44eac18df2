//! What the watches have shown: one reflector a kind, shared by the webhook and the controllers.

use std::{fmt::Debug, sync::Arc, time::Duration};

use ayatori_crds::{
    Job, JobClass, KubernetesExecutionParameters, OpenSandboxExecutionParameters,
    names::{API_VERSION, JOB_NAME_ANNOTATION, JOB_UID_LABEL},
};
use futures::{Stream, StreamExt, future::BoxFuture};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher::{self, Event},
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::{broadcast, mpsc};

use crate::backend::kubernetes::objects::{NativeJob, NativePod};

pub mod job_index;
mod pods;

use job_index::JobIndex;
pub use pods::PodIndex;

/// A namespace with only its metadata: rules read its labels and annotations.
#[derive(Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = Namespace)]
pub struct NamespaceMetadata {
    /// Name, labels, annotations.
    pub metadata: ObjectMeta,
}

/// Something that a watch showed, for whoever decides what must be looked at again.
#[derive(Clone, Debug)]
pub enum Change {
    /// A Job was written.
    Job(ObjectRef<Job>),
    /// A class was written or went.
    Class(String),
    /// The settings object of a class was written or went.
    Parameters(String),
    /// A namespace was written.
    Namespace(String),
    /// A native Job or pod that carries the marks of this Job was written or went.
    Execution(ObjectRef<Job>),
}

/// Readers of all stores.
#[derive(Clone, Debug)]
pub struct Stores {
    /// Jobs.
    pub jobs: Store<Job>,
    /// Those that are not over, by class and by what they wait for.
    pub job_index: Arc<JobIndex>,
    /// Classes.
    pub classes: Store<JobClass>,
    /// Settings of the Kubernetes adapter.
    pub kubernetes_parameters: Store<KubernetesExecutionParameters>,
    /// Settings of the OpenSandbox adapter: rules of admission read them.
    pub opensandbox_parameters: Store<OpenSandboxExecutionParameters>,
    /// Namespaces.
    pub namespaces: Store<NamespaceMetadata>,
    /// Native Jobs with our marks.
    pub native_jobs: Store<NativeJob>,
    /// Pods with our marks, by Job UID.
    pub pods: Arc<PodIndex>,
}

/// The watches behind the stores: a task each, essential to the process.
pub type Watch = BoxFuture<'static, ()>;

/// Changes that a slow reader may lag behind. A reader that missed some looks at everything again.
const CHANGE_BUFFER: usize = 4096;

/// Time after which the API server ends a watch, so that a silently dead connection is noticed. Below the idle cut of
/// common load balancers (240 s).
const WATCH_TIMEOUT: Duration = Duration::from_secs(200);

/// Time without a word after which a connection is given up. Longer than the API server keeps a watch; without it one
/// whose server has gone silently would be waited for without end where it has not answered yet, and a store stand still.
pub const CONNECTION_SILENCE: Duration = Duration::from_secs(WATCH_TIMEOUT.as_secs() + 15);

/// Makes the stores, the watches that fill them, and the channel that tells of changes.
#[must_use]
pub fn stores(client: &Client) -> (Stores, Vec<Watch>, broadcast::Sender<Change>) {
    let (changes, _) = broadcast::channel(CHANGE_BUFFER);
    let everything = watch_config();
    let ours = watch_config().labels(JOB_UID_LABEL);
    let job_index = Arc::new(JobIndex::default());
    let index = Arc::clone(&job_index);
    let (jobs, watch_jobs) =
        watch_with(Api::<Job>::all(client.clone()), everything.clone(), &changes, move |store, job| {
            let key = ObjectRef::from_obj(job);
            index.set(&key, store.get(&key).as_deref());
            Some(Change::Job(key))
        });
    let (classes, watch_classes) = watch(Api::<JobClass>::all(client.clone()), everything.clone(), &changes, |class| {
        Some(Change::Class(class.name_any()))
    });
    let (kubernetes_parameters, watch_parameters) =
        watch(Api::<KubernetesExecutionParameters>::all(client.clone()), everything.clone(), &changes, |parameters| {
            Some(Change::Parameters(parameters.name_any()))
        });
    // Nothing here waits for a change of these.
    let (opensandbox_parameters, watch_opensandbox_parameters) =
        watch(Api::<OpenSandboxExecutionParameters>::all(client.clone()), everything.clone(), &changes, |_| None);
    let (namespaces, watch_namespaces) =
        watch(Api::<NamespaceMetadata>::all(client.clone()), everything, &changes, |namespace| {
            Some(Change::Namespace(namespace.name_any()))
        });
    let (native_jobs, watch_native_jobs) =
        watch(Api::<NativeJob>::all(client.clone()), ours.clone(), &changes, |native| execution(native.meta()));
    let pods = Arc::new(PodIndex::default());
    let watch_pods = pods::watch(Api::<NativePod>::all(client.clone()), ours, Arc::clone(&pods), changes.clone());
    let stores = Stores {
        jobs,
        job_index,
        classes,
        kubernetes_parameters,
        opensandbox_parameters,
        namespaces,
        native_jobs,
        pods,
    };
    let watches = vec![
        watch_jobs,
        watch_classes,
        watch_parameters,
        watch_opensandbox_parameters,
        watch_namespaces,
        watch_native_jobs,
        watch_pods,
    ];
    (stores, watches, changes)
}

fn watch_config() -> watcher::Config {
    watcher::Config::default().timeout(u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX))
}

impl Stores {
    /// Waits until every store has been filled once.
    ///
    /// # Errors
    /// Where a watch ended before it filled its store.
    pub async fn synced(&self) -> Result<(), reflector::store::WriterDropped> {
        self.jobs.wait_until_ready().await?;
        self.classes.wait_until_ready().await?;
        self.kubernetes_parameters.wait_until_ready().await?;
        self.opensandbox_parameters.wait_until_ready().await?;
        self.namespaces.wait_until_ready().await?;
        self.native_jobs.wait_until_ready().await?;
        self.pods.synced().await;
        Ok(())
    }
}

/// The Job that a native Job or pod belongs to: by owner, else by its marks (an annotation can be stripped, an owner
/// reference too). Whether either is true is judged by who looks.
fn execution(metadata: &ObjectMeta) -> Option<Change> {
    let owner = metadata.owner_references.iter().flatten().find(|owner| owner.api_version == API_VERSION);
    let annotated = || metadata.annotations.as_ref()?.get(JOB_NAME_ANNOTATION).map(String::as_str);
    let name = owner.map(|owner| owner.name.as_str()).or_else(annotated)?;
    let mut job = ObjectRef::new(name).within(metadata.namespace.as_deref()?);
    job.extra.uid = metadata.labels.as_ref()?.get(JOB_UID_LABEL).cloned();
    Some(Change::Execution(job))
}

fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    changes: &broadcast::Sender<Change>,
    change: impl Fn(&K) -> Option<Change> + Send + 'static,
) -> (Store<K>, Watch)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch_with(api, config, changes, move |_, object| change(object))
}

/// As [`watch`]; `change` sees the store as it is after the change.
fn watch_with<K>(
    api: Api<K>,
    config: watcher::Config,
    changes: &broadcast::Sender<Change>,
    change: impl Fn(&Store<K>, &K) -> Option<Change> + Send + 'static,
) -> (Store<K>, Watch)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (reader, writer) = reflector::store();
    let store = reader.clone();
    let changes = changes.clone();
    let events = pruned(api, config);
    (
        reader,
        Box::pin(reflect(writer, events, move |object| {
            if let Some(change) = change(&store, object) {
                // Nobody listening is no fault: a webhook-only process has no controllers.
                let _ = changes.send(change);
            }
        })),
    )
}

/// Events of a watch, with `managedFields` dropped and errors logged and backed off.
fn pruned<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher::watcher(api, config)
        .default_backoff()
        .filter_map(|event| async {
            event
                .inspect_err(
                    |error| tracing::warn!(kind = %K::kind(&()), %error, "the watch failed and is begun again"),
                )
                .ok()
        })
        .map(|mut event| {
            if let Event::Apply(object) | Event::InitApply(object) = &mut event {
                object.meta_mut().managed_fields = None;
            }
            event
        })
}

async fn reflect<K>(mut writer: Writer<K>, events: impl Stream<Item = Event<K>> + Send, mut tell: impl FnMut(&K) + Send)
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        // What went while the watch was down is not in the new list: it is told from the old one.
        let before = if matches!(event, Event::InitDone) { writer.as_reader().state() } else { vec![] };
        writer.apply_watcher_event(&event);
        match &event {
            Event::Apply(object) | Event::Delete(object) => tell(object),
            Event::InitDone => before.iter().chain(&writer.as_reader().state()).for_each(|object| tell(object)),
            Event::Init | Event::InitApply(_) => {}
        }
    }
}

/// Queues what each change concerns: everything at first, and again after falling behind.
pub(crate) async fn forward<T: Send + 'static>(
    mut changes: broadcast::Receiver<Change>,
    queue: mpsc::Sender<T>,
    mut affected: impl FnMut(Option<Change>) -> Vec<T> + Send,
) {
    let mut change = None;
    loop {
        for request in affected(change) {
            if queue.send(request).await.is_err() {
                return;
            }
        }
        change = match changes.recv().await {
            Ok(change) => Some(change),
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "fell behind the watches; everything is looked at again");
                None
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
    }
}
