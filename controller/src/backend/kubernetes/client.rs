//! The requests of the Kubernetes adapter. It decides nothing: every request was decided in `job::decide`.

use std::time::Duration;

use ayatori_crds::{
    Job,
    conditions::reason,
    job_class::ParametersReference,
    names::{BACKEND_CLEANUP_FINALIZER, GROUP, JOB_UID_LABEL, KUBERNETES_CONTROLLER},
    rules::class_policy::Controller,
};
use futures::future::BoxFuture;
use k8s_openapi::api::{batch::v1::Job as BatchJob, node::v1::RuntimeClass};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, PatchParams, PostParams, Preconditions},
    core::Request as HttpRequest,
    runtime::reflector::ObjectRef,
};
use serde_json::{Value, json};

use super::{
    objects::{NativeJob, NativePod},
    observe::{Sought, observe},
    render::{native_job, native_name},
    verdict::cut,
};
use crate::{
    backend::{Backend, Observation, Readiness, Request, Settings},
    call::{CallError, bounded, found},
    job::view::recorded_id,
    patch,
    stores::Stores,
};

/// The reference type of a native Job's UID (spec A9).
const REFERENCE_TYPE: &str = "Job";

/// How often a RuntimeClass is looked at without a change: they are got, not watched.
const RUNTIME_CLASS_TICK: Duration = Duration::from_secs(60);

/// Pods that one live look reads at most: there is one, or something is very wrong.
const POD_LIMIT: u32 = 8;

/// Runs Jobs as native Jobs.
pub struct KubernetesBackend {
    client: Client,
    stores: Stores,
}

impl std::fmt::Debug for KubernetesBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesBackend").finish_non_exhaustive()
    }
}

impl KubernetesBackend {
    /// The adapter. `client` reaches the cluster where native Jobs live; no safety rule rests on its being our own.
    #[must_use]
    pub fn new(client: Client, stores: Stores) -> Self {
        Self { client, stores }
    }

    fn native_jobs(&self, job: &Job) -> Api<NativeJob> {
        Api::namespaced(self.client.clone(), job.metadata.namespace.as_deref().unwrap_or_default())
    }

    fn seen(job: &Job, native: Option<&NativeJob>, pods: &[&NativePod]) -> Observation {
        let sought = Sought {
            job_uid: uid(job),
            recorded: recorded_id(job, REFERENCE_TYPE),
            started: job.status.as_ref().is_some_and(|status| status.start_time.is_some()),
        };
        observe(sought, native, pods)
    }

    /// The watched pods beside a native Job that was just answered.
    fn with_watched_pods(&self, job: &Job, native: Option<&NativeJob>) -> Observation {
        let pods = self.stores.pods.of_job(uid(job));
        let pods: Vec<&NativePod> = pods.iter().map(AsRef::as_ref).collect();
        Self::seen(job, native, &pods)
    }

    /// Ready where the RuntimeClass that the settings name exists.
    async fn runtime_class(&self, reference: &ParametersReference) -> Result<(Readiness, Option<Duration>), CallError> {
        let parameters = self.stores.kubernetes_parameters.get(&ObjectRef::new(&reference.name));
        let Some(name) = parameters.as_ref().and_then(|parameters| parameters.spec.runtime_class_name.as_deref())
        else {
            return Ok((Readiness::Ready, None));
        };
        let runtime_classes = Api::<RuntimeClass>::all(self.client.clone());
        let readiness = match found(bounded(runtime_classes.get(name)).await)? {
            Some(_) => Readiness::Ready,
            None => Readiness::NotReady {
                reason: reason::RUNTIME_CLASS_NOT_FOUND,
                message: format!("waiting for RuntimeClass {name:?} to be created"),
            },
        };
        Ok((readiness, Some(RUNTIME_CLASS_TICK)))
    }

    async fn read_live(&self, job: &Job) -> Result<Observation, CallError> {
        let native = found(bounded(self.native_jobs(job).get(&native_name(uid(job)))).await)?;
        let pods: Api<NativePod> =
            Api::namespaced(self.client.clone(), job.metadata.namespace.as_deref().unwrap_or_default());
        let selected = ListParams::default().labels(&format!("{JOB_UID_LABEL}={}", uid(job))).limit(POD_LIMIT);
        let pods = if native.is_some() { bounded(pods.list(&selected)).await?.items } else { vec![] };
        Ok(Self::seen(job, native.as_ref(), &pods.iter().collect::<Vec<_>>()))
    }

    async fn carry_out(&self, job: &Job, request: Request) -> Result<Observation, CallError> {
        match request {
            Request::Prepare => self.prepare(job).await,
            Request::Release { id } => match self.patch(job, patch::release(&id)).await {
                // A test failed: it was released before, or is another one. What is true is read.
                Err(CallError::Refused(_)) => self.read_live(job).await,
                answer => answer,
            },
            // 0, not 1: on a suspended native Job it makes a release that lands late harmless (spec F1).
            Request::Stop { id } => {
                self.patch(job, patch::set_by_uid(&id, "/spec/activeDeadlineSeconds", &json!(0))).await
            }
            Request::Delete { id } => self.delete(job, id).await,
            Request::Unprotect { id } => self.unprotect(job, &id).await,
        }
    }

    async fn prepare(&self, job: &Job) -> Result<Observation, CallError> {
        let Some(native) = self.rendered(job) else { return self.read_live(job).await };
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let body = serde_json::to_vec(&native).map_err(kube::Error::SerdeError)?;
        let request = HttpRequest::new(BatchJob::url_path(&(), Some(namespace)))
            .create(&PostParams::default(), body)
            .map_err(kube::Error::BuildRequest)?;
        match bounded(self.client.request::<NativeJob>(request)).await {
            Ok(native) => Ok(self.with_watched_pods(job, Some(&native))),
            // An answer was lost, or a store lagged: whether it is ours is judged by what is there.
            Err(CallError::AlreadyExists(_)) => self.read_live(job).await,
            // A quota, a policy, a field that this cluster does not take. A namespace that goes needs no word.
            Err(CallError::Refused(why)) => Ok(Observation::Refused { why: cut(&why) }),
            Err(error) => Err(error),
        }
    }

    /// The native Job to create; None where the settings went since they were looked at.
    fn rendered(&self, job: &Job) -> Option<BatchJob> {
        let status = job.status.as_ref()?;
        let class = status.resolved_job_class.as_ref()?;
        let parameters = self.stores.kubernetes_parameters.get(&ObjectRef::new(&class.parameters_ref.name))?;
        if parameters.metadata.uid != class.parameters_ref.uid {
            return None;
        }
        Some(native_job(job, status.effective_resources.as_ref()?, &class.name, &parameters.spec))
    }

    async fn patch(&self, job: &Job, operations: Value) -> Result<Observation, CallError> {
        let patch = patch::json_patch(operations)?;
        let call = self.native_jobs(job);
        let name = native_name(uid(job));
        let native = bounded(call.patch(&name, &PatchParams::default(), &patch)).await?;
        Ok(self.with_watched_pods(job, Some(&native)))
    }

    async fn delete(&self, job: &Job, id: String) -> Result<Observation, CallError> {
        // Background, said aloud: the default orphans the pods.
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(id), resource_version: None }),
            ..DeleteParams::background()
        };
        let name = native_name(uid(job));
        // The answer holds the object where its deletion takes its time, a Status where it was gone at once.
        let native =
            found(bounded(self.native_jobs(job).delete(&name, &parameters)).await)?.and_then(|answer| answer.left());
        Ok(self.with_watched_pods(job, native.as_ref()))
    }

    /// The patch names the place of the finalizer, so the object is read right before.
    async fn unprotect(&self, job: &Job, id: &str) -> Result<Observation, CallError> {
        let Some(native) = found(bounded(self.native_jobs(job).get(&native_name(uid(job)))).await)? else {
            return Ok(Observation::Absent);
        };
        let ours = native.metadata.uid.as_deref() == Some(id);
        let Some(operations) = patch::remove_finalizer(&native.metadata, BACKEND_CLEANUP_FINALIZER).filter(|_| ours)
        else {
            return Ok(self.with_watched_pods(job, Some(&native)));
        };
        found(self.patch(job, operations).await)?;
        self.read_live(job).await
    }
}

fn uid(job: &Job) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

impl Backend for KubernetesBackend {
    fn controller_name(&self) -> &'static str {
        KUBERNETES_CONTROLLER
    }

    fn adapter(&self) -> &'static str {
        "kubernetes"
    }

    fn reference_type(&self) -> &'static str {
        REFERENCE_TYPE
    }

    fn settings(&self, reference: &ParametersReference) -> Settings {
        if reference.group != GROUP || Some(reference.kind.as_str()) != Controller::Kubernetes.parameters_kind() {
            return Settings::Missing;
        }
        let parameters = self.stores.kubernetes_parameters.get(&ObjectRef::new(&reference.name));
        match parameters.and_then(|parameters| parameters.metadata.uid.clone()) {
            Some(uid) if reference.uid.as_ref().is_none_or(|pinned| *pinned == uid) => Settings::Present { uid },
            _ => Settings::Missing,
        }
    }

    fn readiness<'a>(
        &'a self,
        reference: &'a ParametersReference,
    ) -> BoxFuture<'a, Result<(Readiness, Option<Duration>), CallError>> {
        Box::pin(self.runtime_class(reference))
    }

    fn observe(&self, job: &Job) -> Observation {
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let native = self.stores.native_jobs.get(&ObjectRef::new(&native_name(uid(job))).within(namespace));
        self.with_watched_pods(job, native.as_deref())
    }

    fn read<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Observation, CallError>> {
        Box::pin(self.read_live(job))
    }

    fn send<'a>(&'a self, job: &'a Job, request: Request) -> BoxFuture<'a, Result<Observation, CallError>> {
        Box::pin(self.carry_out(job, request))
    }
}
