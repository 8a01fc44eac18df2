//! The API objects of the model, and what a patch makes of them. The patches are those of production.

use std::fmt;

use ayatori_crds::{
    ConditionStatus, Job, KubernetesExecutionParametersSpec,
    conditions::{self, Wanted},
    job::DesiredState,
};
use jiff::Timestamp;
use json_patch::Patch as Operations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{
    kept::{Answers, Kept, Shelf},
    state::Ruling,
};
use ayatori_controller::backend::{Observation, kubernetes::objects::NativeJob};

/// The name of every Job: two UIDs follow each other under it.
pub(super) const JOB_NAME: &str = "j";
/// The namespace of everything.
pub(super) const NAMESPACE: &str = "n";
/// The UID of a native Job that somebody else put under our name.
pub(super) const FOREIGN: &str = "foreign";
/// Seconds that one tick of the clock takes: the deadline and the TTL of the Jobs here.
pub(super) const TICK: i64 = 60;
/// What a refused request is told.
pub(super) const REFUSED: &str = "exceeded quota";
/// What a resourceVersion is called while a request is on its way: whether it is still the newest is for the server.
const SEEN: &str = "seen";

/// The first instant of the model; everything is made then.
pub(super) const BEGIN: &str = "2026-01-01T00:00:00Z";
/// The same in seconds: the time is asked for in every step.
const BEGIN_SECOND: i64 = 1_767_225_600;

/// The time after so many ticks.
pub(super) fn instant(tick: u8) -> Timestamp {
    Timestamp::from_second(BEGIN_SECOND + i64::from(tick) * TICK).unwrap()
}

/// A patch as production builds it, without its resourceVersion.
pub(super) struct Patch {
    body: Body,
    /// It is refused where the object has changed since it was seen.
    pub(super) guarded: bool,
}

enum Body {
    Merge(Value),
    Operations(Operations),
}

impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            Body::Merge(value) => write!(f, "{value}"),
            Body::Operations(operations) => write!(f, "{operations}"),
        }
    }
}

/// A limit that an execution is to get: its identifier, and when its time ends.
pub(super) type Limit = (String, Timestamp);

/// What became of an object under a patch; None where a test in the patch failed.
type Patched<K> = Answers<(Kept<K>, Kept<Patch>), Option<Kept<K>>>;

/// All objects, patches and observations that were met, and what became of them.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) jobs: Shelf<Job>,
    natives: Shelf<NativeJob>,
    patches: Shelf<Patch>,
    observations: Shelf<Observation>,
    texts: Shelf<String>,
    limits: Shelf<Limit>,
    patched_jobs: Patched<Job>,
    patched_natives: Patched<NativeJob>,
    deleted_jobs: Answers<Kept<Job>, Kept<Job>>,
    cancelled_jobs: Answers<Kept<Job>, Kept<Job>>,
    ruled_jobs: Answers<(Kept<Job>, Ruling), Kept<Job>>,
}

impl Objects {
    pub(super) fn job(&self, job: Job) -> Kept<Job> {
        self.jobs.keep(serde_json::to_string(&job).unwrap(), job)
    }

    pub(super) fn native(&self, native: NativeJob) -> Kept<NativeJob> {
        self.natives.keep(serde_json::to_string(&native).unwrap(), native)
    }

    pub(super) fn observation(&self, observation: Observation) -> Kept<Observation> {
        self.observations.keep(format!("{observation:?}"), observation)
    }

    pub(super) fn text(&self, text: String) -> Kept<String> {
        self.texts.keep(text.clone(), text)
    }

    pub(super) fn limit(&self, id: String, ends: Timestamp) -> Kept<Limit> {
        self.limits.keep(format!("{id} {ends}"), (id, ends))
    }

    /// The Job once its deletion was asked for.
    pub(super) fn deleting(&self, job: Kept<Job>) -> Kept<Job> {
        self.deleted_jobs.of(job, |job| {
            let mut job = Job::clone(job);
            job.metadata.deletion_timestamp = Some(Time(instant(0)));
            self.job(job)
        })
    }

    /// The Job once its cancellation was asked for.
    pub(super) fn cancelled(&self, job: Kept<Job>) -> Kept<Job> {
        self.cancelled_jobs.of(job, |job| {
            let mut job = Job::clone(job);
            job.spec.desired_state = DesiredState::Cancelled;
            // The API server counts changes of the spec.
            job.metadata.generation = job.metadata.generation.map(|generation| generation + 1);
            self.job(job)
        })
    }

    /// The Job once an administrator has ruled on it, through its status.
    pub(super) fn ruled(&self, job: Kept<Job>, ruling: Ruling) -> Kept<Job> {
        self.ruled_jobs.of((job, ruling), |_| {
            let mut job = Job::clone(&job);
            let generation = job.metadata.generation;
            let wanted = Wanted {
                type_: ruling.condition(),
                status: ConditionStatus::True,
                reason: "Ruling",
                message: "ann: the node burnt down".to_owned(),
            };
            conditions::set(&mut job.status.get_or_insert_default().conditions, wanted, generation, instant(0));
            self.job(job)
        })
    }

    /// A JSON merge patch, or a list of JSON patch operations. `guarded` says whether its resourceVersion counts.
    pub(super) fn patch(&self, mut body: Value, guarded: bool) -> Kept<Patch> {
        let text = format!("{guarded} {body}");
        let has_version = match &mut body {
            Value::Array(operations) => {
                let before = operations.len();
                operations.retain(|operation| operation["path"] != "/metadata/resourceVersion");
                operations.len() < before
            }
            body => {
                body["metadata"].as_object_mut().is_some_and(|metadata| metadata.remove("resourceVersion").is_some())
            }
        };
        let body =
            if body.is_array() { Body::Operations(serde_json::from_value(body).unwrap()) } else { Body::Merge(body) };
        self.patches.keep(text, Patch { body, guarded: has_version && guarded })
    }

    /// None where the patch tests for something else.
    pub(super) fn patched_job(&self, job: Kept<Job>, patch: Kept<Patch>) -> Option<Kept<Job>> {
        self.patched_jobs.of((job, patch), |_| {
            applied(serde_json::to_value(&*job).unwrap(), &patch)
                .map(|value| self.job(serde_json::from_value(value).unwrap()))
        })
    }

    /// None where the patch tests for something else.
    pub(super) fn patched_native(&self, native: Kept<NativeJob>, patch: Kept<Patch>) -> Option<Kept<NativeJob>> {
        self.patched_natives.of((native, patch), |_| {
            let value = applied(serde_json::to_value(&*native).unwrap(), &patch)?;
            Some(self.native(serde_json::from_value(value).unwrap()))
        })
    }
}

fn applied(mut object: Value, patch: &Patch) -> Option<Value> {
    match &patch.body {
        Body::Merge(body) => json_patch::merge(&mut object, body),
        Body::Operations(operations) => json_patch::patch(&mut object, operations).ok()?,
    }
    Some(object)
}

/// The object as a request sees it: with a resourceVersion.
pub(super) fn seen(job: &Job) -> Job {
    let mut job = job.clone();
    job.metadata.resource_version = Some(SEEN.to_owned());
    job
}

/// What a user creates. `protected`: through our webhook, which adds the finalizer.
pub(super) fn new_job(uid: &str, finalizers: &[&str], deadline: bool, ttl: bool) -> Job {
    let seconds = |wanted: bool| wanted.then_some(TICK);
    serde_json::from_value(json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
        "metadata": {"name": JOB_NAME, "namespace": NAMESPACE, "uid": uid, "generation": 1, "creationTimestamp": BEGIN,
            "finalizers": finalizers},
        "spec": {"jobClassName": "c", "task": {"image": "app:1"}, "activeDeadlineSeconds": seconds(deadline),
            "ttlSecondsAfterFinished": seconds(ttl)},
    }))
    .unwrap()
}

/// The settings of the class.
pub(super) fn parameters() -> KubernetesExecutionParametersSpec {
    serde_json::from_value(json!({"serviceAccountName": "s"})).unwrap()
}

/// A native Job that is not ours and stands under our name.
pub(super) fn foreign_native(name: &str) -> NativeJob {
    serde_json::from_value(
        json!({"metadata": {"name": name, "namespace": NAMESPACE, "uid": FOREIGN}, "spec": {"suspend": true}}),
    )
    .unwrap()
}
