//! What a test does in its namespace.

use std::time::Duration;

use crate::{
    Cluster, eventually,
    record::{Invariant, Recorder},
    suite::with_namespace,
};
use anyhow::{Context, ensure};
use ayatori_crds::{
    Job, JobClass, KubernetesExecutionParameters,
    conditions::{ACCEPTED, is_true},
    names::{BACKEND_CLEANUP_FINALIZER, JOB_UID_LABEL},
};
use k8s_openapi::api::{batch::v1::Job as NativeJob, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    audit::Audit,
    jobs::{class, condition, is_over, native_name, parameters, uid},
    kubectl::Kubectl,
};

/// A Job needs 3 to 5 s; the bound is for a busy machine.
pub const BOUND: Duration = Duration::from_secs(90);

/// Long enough to see that something does not happen: what would happen does so within a tenth of a second.
pub const QUIET: Duration = Duration::from_millis(1500);

/// A namespace of a cluster where an ayatori runs.
pub struct Scene {
    /// The cluster.
    pub cluster: &'static Cluster,
    /// The administrator.
    pub client: Client,
    /// The test's namespace.
    pub namespace: String,
    /// Its Jobs.
    pub jobs: Api<Job>,
    /// Its native Jobs.
    pub native_jobs: Api<NativeJob>,
    /// Its pods.
    pub pods: Api<Pod>,
    recorder: &'static Recorder,
}

/// Runs a test in a namespace of its own, and then looks at the record of every version that was written there.
pub async fn recorded<T>(cluster: &'static Cluster, recorder: &'static Recorder, test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&Scene) -> anyhow::Result<()>,
{
    with_namespace(cluster, async |namespace| {
        let scene = Scene::new(cluster, recorder, namespace).await?;
        let outcome = test(&scene).await;
        match (outcome, recorder.check(&scene.client, namespace).await) {
            (Err(failed), Err(broken)) => Err(failed.context(format!("{broken:#}"))),
            (outcome, record) => outcome.and(record),
        }
    })
    .await
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Scene {
    /// The scene in a namespace that exists.
    async fn new(cluster: &'static Cluster, recorder: &'static Recorder, namespace: &str) -> anyhow::Result<Self> {
        let client = cluster.client().await?;
        Ok(Self {
            cluster,
            namespace: namespace.to_owned(),
            jobs: Api::namespaced(client.clone(), namespace),
            native_jobs: Api::namespaced(client.clone(), namespace),
            pods: Api::namespaced(client.clone(), namespace),
            client,
            recorder,
        })
    }

    /// Says that this test breaks an invariant by hand, as an administrator may, so that its record does not fail it.
    pub fn tolerate(&self, invariant: Invariant) {
        self.recorder.tolerate(&self.namespace, invariant);
    }

    /// kubectl in that namespace.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::of(self.cluster).within(&self.namespace)
    }

    /// The audit log of that namespace.
    pub fn audit(&self) -> Audit {
        Audit::of(self.cluster, &self.namespace)
    }

    /// Creates a Job.
    pub async fn create(&self, job: &Value) -> anyhow::Result<Job> {
        Ok(self.jobs.create(&PostParams::default(), &object(job)?).await?)
    }

    /// Creates a Job and waits until it is over.
    pub async fn run(&self, job: &Value) -> anyhow::Result<Job> {
        let created = self.create(job).await?;
        self.over(created.metadata.name.as_deref().context("a name")?).await
    }

    /// Creates a Job whose task says `ready` and goes on; waits until it does and the status says so too.
    pub async fn start(&self, job: &Value) -> anyhow::Result<Job> {
        let created = self.create(job).await?;
        self.says(&created, "ready").await?;
        let name = created.metadata.name.as_deref().context("a name")?;
        self.until_condition(name, "Succeeded", "Unknown/Running").await
    }

    /// The one pod of a Job.
    pub async fn pod_of(&self, job: &Job) -> anyhow::Result<Pod> {
        let mut pods = self.pods_of(job).await?;
        ensure!(pods.len() == 1, "{} pods", pods.len());
        pods.pop().context("no pod")
    }

    /// How many pods were ever made for a Job.
    pub fn pods_made_for(&self, job: &Job) -> anyhow::Result<usize> {
        let writes = self.audit().writes("/pods")?;
        let made = writes.iter().filter(|write| write.verb == "create");
        Ok(made.filter(|write| write.answered["metadata"]["labels"][JOB_UID_LABEL] == uid(job)).count())
    }

    /// Waits until the Job is as it is looked for.
    pub async fn until(&self, name: &str, what: &str, is: impl Fn(&Job) -> bool) -> anyhow::Result<Job> {
        eventually(&format!("Job {name}: {what}"), BOUND, async || {
            let job = self.jobs.get(name).await?;
            ensure!(is(&job), "its status is {}", serde_json::to_string(&job.status)?);
            Ok(job)
        })
        .await
    }

    /// Waits for a condition to be `Status/Reason`.
    pub async fn until_condition(&self, name: &str, type_: &str, wanted: &str) -> anyhow::Result<Job> {
        self.until(name, &format!("{type_}={wanted}"), |job| condition(job, type_) == wanted).await
    }

    /// Waits until the Job is over.
    pub async fn over(&self, name: &str) -> anyhow::Result<Job> {
        self.until(name, "it is over", is_over).await
    }

    /// Sends a merge patch.
    pub async fn patch(&self, name: &str, patch: Value) -> anyhow::Result<Job> {
        Ok(self.jobs.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Asks for its cancellation.
    pub async fn cancel(&self, name: &str) -> anyhow::Result<Job> {
        self.patch(name, json!({"spec": {"desiredState": "Cancelled"}})).await
    }

    /// Asks for its deletion.
    pub async fn delete(&self, name: &str) -> anyhow::Result<()> {
        self.jobs.delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Takes the native Job of a task away that runs [`UNTIL_KILLED`](super::jobs::UNTIL_KILLED), and its pod by force,
    /// so that nothing says how the task has ended.
    pub async fn take_away(&self, job: &Job) -> anyhow::Result<()> {
        let pod = self.pod_of(job).await?.metadata.name.context("a name")?;
        self.take_native_job_away(job).await?;
        let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.pods.patch(&pod, &PatchParams::default(), &strip).await?;
        self.pods.delete(&pod, &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }).await?;
        Ok(())
    }

    /// Deletes the native Job of a Job, and strips our finalizer, which holds it.
    pub async fn take_native_job_away(&self, job: &Job) -> anyhow::Result<()> {
        let name = native_name(job);
        self.native_jobs.delete(&name, &DeleteParams::background()).await?;
        let held = self.native_jobs.get(&name).await?;
        ensure!(held.metadata.finalizers.iter().flatten().any(|held| held == BACKEND_CLEANUP_FINALIZER));
        let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.native_jobs.patch(&name, &PatchParams::default(), &strip).await?;
        Ok(())
    }

    /// Waits until the Job is gone, and what it ran on with it.
    pub async fn gone(&self, job: &Job) -> anyhow::Result<()> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        eventually(&format!("Job {name} is gone"), BOUND, async || {
            let left = self.jobs.get_opt(name).await?.filter(|left| left.metadata.uid == job.metadata.uid);
            ensure!(left.is_none(), "it is there: {}", serde_json::to_string(&left)?);
            Ok(())
        })
        .await?;
        eventually("its native Job and pods are gone", BOUND, async || {
            ensure!(self.native_job(job).await?.is_none(), "the native Job is there");
            ensure!(self.pods_of(job).await?.is_empty(), "a pod is there");
            Ok(())
        })
        .await
    }

    /// Waits until there is no Job of that name.
    pub async fn until_gone(&self, name: &str) -> anyhow::Result<()> {
        eventually(&format!("Job {name} is gone"), BOUND, async || {
            let left = self.jobs.get_opt(name).await?;
            ensure!(left.is_none(), "it is there: {}", serde_json::to_string(&left)?);
            Ok(())
        })
        .await
    }

    /// Its native Job, if there is one.
    pub async fn native_job(&self, job: &Job) -> anyhow::Result<Option<NativeJob>> {
        let found = self.native_jobs.list(&self.belonging_to(job)).await?.items;
        ensure!(found.len() < 2, "{} native Jobs", found.len());
        Ok(found.into_iter().next())
    }

    /// Its pods.
    pub async fn pods_of(&self, job: &Job) -> anyhow::Result<Vec<Pod>> {
        Ok(self.pods.list(&self.belonging_to(job)).await?.items)
    }

    fn belonging_to(&self, job: &Job) -> ListParams {
        ListParams::default().labels(&format!("{JOB_UID_LABEL}={}", uid(job)))
    }

    /// What the task has written.
    pub async fn log(&self, job: &Job) -> anyhow::Result<String> {
        let pods = self.pods_of(job).await?;
        let name = pods.first().and_then(|pod| pod.metadata.name.as_deref()).context("no pod")?;
        Ok(self.pods.logs(name, &LogParams::default()).await?)
    }

    /// Waits until the task has written that.
    pub async fn says(&self, job: &Job, text: &str) -> anyhow::Result<()> {
        eventually(&format!("the task says {text:?}"), BOUND, async || {
            let log = self.log(job).await?;
            ensure!(log.contains(text), "{log:?}");
            Ok(())
        })
        .await
    }
}

/// A manifest as the type of its kind.
pub fn object<T: DeserializeOwned>(value: &Value) -> anyhow::Result<T> {
    serde_json::from_value(value.clone()).with_context(|| value.to_string())
}

/// Makes a class of that name with parameters, and waits until Jobs may use it.
pub async fn offer_class(client: &Client, name: &str) -> anyhow::Result<()> {
    offer(client, &class(name), &parameters(name)).await
}

/// As [`offer_class`], with other values.
pub async fn offer(client: &Client, class: &Value, parameters: &Value) -> anyhow::Result<()> {
    let (classes, settings) = (Api::<JobClass>::all(client.clone()), Api::all(client.clone()));
    let parameters: KubernetesExecutionParameters = object(parameters)?;
    settings.create(&PostParams::default(), &parameters).await?;
    let class: JobClass = object(class)?;
    let name = classes.create(&PostParams::default(), &class).await?.metadata.name.unwrap_or_default();
    eventually(&format!("class {name} is accepted"), BOUND, async || {
        let status = classes.get(&name).await?.status.unwrap_or_default();
        ensure!(is_true(&status.conditions, ACCEPTED), "{}", serde_json::to_string(&status)?);
        Ok(())
    })
    .await
}
