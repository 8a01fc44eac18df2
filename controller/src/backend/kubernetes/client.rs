//! The requests of the Kubernetes adapter. It decides nothing: every request was decided in `job::decide`.

use std::time::Duration;

use ayatori_crds::{
    Job,
    conditions::reason,
    job_class::ParametersReference,
    names::{GROUP, JOB_UID_LABEL, KUBERNETES_CONTROLLER},
    rules::class_policy::Controller,
};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::{batch::v1::Job as BatchJob, core::v1::ServiceAccount, node::v1::RuntimeClass};
use kube::{
    Api, Client, Resource,
    api::{ListParams, PostParams},
    core::Request as HttpRequest,
    runtime::reflector::ObjectRef,
};

use super::{
    limit,
    objects::{NativeJob, NativePod},
    observe::{Sought, after_refused_release, observe},
    refused_pods,
    render::{native_job, native_name},
    send::NativeJobs,
    words::cut,
};
use crate::{
    backend::{Backend, Observation, Readiness, Request, Settings},
    call::{CallError, bounded, found},
    job::view::recorded_id,
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

    fn native_jobs(&self, job: &Job) -> NativeJobs {
        NativeJobs::of(&self.client, namespace(job))
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

    /// The native Job first, so that no pod of it can come after the look at its pods. Without a native Job only a
    /// recorded UID can have pods.
    async fn read_live(&self, job: &Job) -> Result<Observation, CallError> {
        let native = self.native_jobs(job).read(&native_name(uid(job))).await?;
        let may_have_pods = native.is_some() || recorded_id(job, REFERENCE_TYPE).is_some();
        let pods: Api<NativePod> = Api::namespaced(self.client.clone(), namespace(job));
        let selected = ListParams::default().labels(&format!("{JOB_UID_LABEL}={}", uid(job))).limit(POD_LIMIT);
        let pods = if may_have_pods { bounded(pods.list(&selected)).await?.items } else { vec![] };
        let known = self.stores.pods.of_job(uid(job));
        let departed = known.iter().map(AsRef::as_ref).filter(|pod| pod.gone);
        Ok(Self::seen(job, native.as_ref(), &with_departed(&pods, departed)))
    }

    async fn carry_out(&self, job: &Job, request: Request) -> Result<Observation, CallError> {
        let (natives, name) = (self.native_jobs(job), native_name(uid(job)));
        let answered = match request {
            Request::Prepare => return self.prepare(job).await,
            Request::Release { id } => match natives.release(&name, &id).await {
                // By a policy, or because a test failed: what is true is read.
                Err(CallError::Refused(why)) => return Ok(after_refused_release(self.read_live(job).await?, &why)),
                answer => answer?,
            },
            Request::Limit { id, ends } => return self.limit(job, &id, ends).await,
            Request::Stop { id } => natives.stop(&name, &id).await?,
            Request::Delete { id } => natives.delete(&name, id).await?,
            Request::Unprotect { id } => return self.unprotect(job, &id).await,
        };
        Ok(self.with_watched_pods(job, answered.as_ref()))
    }

    async fn prepare(&self, job: &Job) -> Result<Observation, CallError> {
        let Some(native) = self.rendered(job) else { return self.read_live(job).await };
        if let Some(why) = self.missing_account(job, &native).await? {
            return Ok(Observation::Refused { why });
        }
        let body = serde_json::to_vec(&native).map_err(kube::Error::SerdeError)?;
        let request = HttpRequest::new(BatchJob::url_path(&(), Some(namespace(job))))
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

    /// What would keep the native Job from getting its pod is said before it is made (spec D1). `default` is not asked
    /// for: every namespace gets it, a moment after itself.
    async fn missing_account(&self, job: &Job, native: &BatchJob) -> Result<Option<String>, CallError> {
        let pod = native.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        let account = pod.and_then(|pod| pod.service_account_name.as_deref());
        let Some(name) = account.filter(|name| *name != "default") else { return Ok(None) };
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), namespace(job));
        Ok(match found(bounded(accounts.get_metadata(name)).await)? {
            Some(_) => None,
            None => Some(format!("waiting for ServiceAccount {name:?} to be created")),
        })
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

    /// How long the limit is follows from when it was released, and it must not undo a stop: it is read right before.
    async fn limit(&self, job: &Job, id: &str, ends: Timestamp) -> Result<Observation, CallError> {
        let natives = self.native_jobs(job);
        let Some(native) = natives.read(&native_name(uid(job))).await? else {
            return Ok(self.with_watched_pods(job, None));
        };
        let answered = match native.spec.active_deadline_seconds {
            None if native.metadata.uid.as_deref() == Some(id) => {
                natives.limit(&native.metadata, limit::seconds(&native, ends)).await?
            }
            _ => Some(native),
        };
        Ok(self.with_watched_pods(job, answered.as_ref()))
    }

    /// The patch names the place of the finalizer, so the object is read right before.
    async fn unprotect(&self, job: &Job, id: &str) -> Result<Observation, CallError> {
        let natives = self.native_jobs(job);
        let Some(native) = natives.read(&native_name(uid(job))).await? else {
            return Ok(self.with_watched_pods(job, None));
        };
        if native.metadata.uid.as_deref() != Some(id) {
            return Ok(self.with_watched_pods(job, Some(&native)));
        }
        let answered = natives.unprotect(&native.metadata).await?;
        // The answer to the patch that lets it go shows it as it was last.
        let left = answered.filter(|native| !native.is_let_go());
        Ok(self.with_watched_pods(job, left.as_ref()))
    }
}

/// What a list shows, and the last words of pods that went. A pod that went does not come back.
fn with_departed<'a>(
    listed: &'a [NativePod],
    departed: impl Iterator<Item = &'a NativePod> + Clone,
) -> Vec<&'a NativePod> {
    let is_here = |pod: &&NativePod| !departed.clone().any(|gone| gone.metadata.uid == pod.metadata.uid);
    listed.iter().filter(is_here).chain(departed.clone()).collect()
}

fn uid(job: &Job) -> &str {
    job.metadata.uid.as_deref().unwrap_or_default()
}

fn namespace(job: &Job) -> &str {
    job.metadata.namespace.as_deref().unwrap_or_default()
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
        let native = self.stores.native_jobs.get(&ObjectRef::new(&native_name(uid(job))).within(namespace(job)));
        self.with_watched_pods(job, native.as_deref())
    }

    fn read<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Observation, CallError>> {
        Box::pin(self.read_live(job))
    }

    fn explain<'a>(&'a self, job: &'a Job, id: &'a str) -> BoxFuture<'a, Result<String, CallError>> {
        Box::pin(async move { refused_pods::why(&self.client, namespace(job), &native_name(uid(job)), id).await })
    }

    fn send<'a>(&'a self, job: &'a Job, request: Request) -> BoxFuture<'a, Result<Observation, CallError>> {
        Box::pin(self.carry_out(job, request))
    }
}
