//! One controller of the model: what it sees, what the production code decides on that, and the request that production
//! sends for it. The only place that knows how a view is made.

use std::collections::BTreeMap;

use ayatori_crds::{Job, names::BACKEND_CLEANUP_FINALIZER, rules::Policy};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    World,
    around::Around,
    kept::Kept,
    objects::{Limit, Patch, TICK, instant, seen},
    pod::{Pod, pod_object},
    state::{index, native_uid},
    weakened::Without,
};
use ayatori_controller::{
    backend::{
        Observation, Request,
        kubernetes::{
            limit,
            objects::NativeJob,
            observe::{Sought, observe},
            render::native_job,
        },
    },
    job::{
        decide::{Step, decide},
        patience::Patience,
        view::{ClassView, View, recorded_id},
    },
    patch,
};

/// The type under which a native Job's UID is recorded.
pub(super) const REFERENCE_TYPE: &str = "Job";
/// One tick, whatever is waited for.
const PATIENCE: Patience = Patience {
    permanent: SignedDuration::from_secs(TICK),
    authorization: SignedDuration::from_secs(TICK),
    transient: SignedDuration::from_secs(TICK),
    unknown_after: SignedDuration::from_secs(TICK),
};
/// The word of the classes here.
pub(super) const CONTROLLER_NAME: &str = "k";

/// Everything that a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) job: Kept<Job>,
    pub(super) job_is_live: bool,
    pub(super) observation: Kept<Observation>,
    pub(super) observation_is_live: bool,
    pub(super) explanation: Option<&'static str>,
    pub(super) backend_fails: bool,
    pub(super) around: Around,
    /// The limit of the native Job in the store, which only a weakened controller asks for.
    pub(super) limit: Option<i64>,
    pub(super) clock: u8,
}

/// What a controller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing before something changes.
    Rest,
    /// Nothing before some time.
    Wait,
    ReadJob,
    ReadExecution,
    AskWhy,
    Send(Body),
}

/// A request as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Body {
    /// A patch of the Job or of its status.
    Job(Kept<Patch>),
    Create(Kept<NativeJob>),
    Release(Kept<Patch>),
    Stop(Kept<Patch>),
    Delete(Kept<String>),
    /// Two requests in production, as the next one.
    Limit(Kept<Limit>),
    /// Two requests in production; the second one carries what the first one read.
    Unprotect(Kept<String>),
}

impl World {
    /// What the production code decides.
    pub(super) fn next(&self, seen: Seen) -> Next {
        self.decisions.of(seen, |seen| self.decided(seen))
    }

    fn decided(&self, known: &Seen) -> Next {
        let mut job = seen(&known.job);
        let mut observation = Observation::clone(&known.observation);
        if let Some(without) = self.without {
            without.observation(&known.job, &mut observation, known.limit);
            without.job(&mut job, &observation);
        }
        let labels = BTreeMap::new();
        let mut class = self.classes.get(known.around).cloned();
        let mut settings = known.around.settings();
        if let Some(without) = self.without {
            let accepted = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
            class.iter_mut().for_each(|class| without.class(class, accepted));
            without.settings(&mut settings, accepted);
        }
        let view = View {
            job: &job,
            job_is_live: known.job_is_live,
            policy: Policy::default(),
            class: class.as_ref().map_or_else(|| ClassView::Absent("c".to_owned()), ClassView::Present),
            namespace_labels: Some(&labels),
            namespace_is_going: false,
            namespace_is_live: true,
            settings,
            controller_name: CONTROLLER_NAME,
            adapter: "kubernetes",
            reference_type: REFERENCE_TYPE,
            observation,
            observation_is_live: known.observation_is_live || self.without.is_some_and(|without| without.looks(&job)),
            references: None,
            explanation: known.explanation.map(|said| if self.without == Some(Without::WhyTold) { "" } else { said }),
            backend_fails: known.backend_fails,
            patience: PATIENCE,
        };
        self.sent(&job, decide(&view, instant(known.clock)))
    }

    fn sent(&self, job: &Job, step: Step) -> Next {
        let id = |id: String| self.objects.text(id);
        match step {
            Step::Wait => Next::Rest,
            Step::WaitUntil(_) => Next::Wait,
            Step::ReadJob => Next::ReadJob,
            Step::ReadExecution => Next::ReadExecution,
            Step::ReadNamespace => unreachable!("the class here selects no namespaces"),
            Step::ReadReference(..) => unreachable!("the task here needs no objects"),
            Step::AskWhy(_) => Next::AskWhy,
            Step::WriteStatus(status) => Next::Send(Body::Job(self.patch(patch::status(&job.metadata, &status)))),
            Step::AddFinalizer => {
                let finalizer = ayatori_crds::names::JOB_CLEANUP_FINALIZER;
                Next::Send(Body::Job(self.patch(patch::add_finalizer(&job.metadata, finalizer))))
            }
            Step::RemoveFinalizer => {
                let finalizer = ayatori_crds::names::JOB_CLEANUP_FINALIZER;
                patch::remove_finalizer(&job.metadata, finalizer)
                    .map_or(Next::Rest, |body| Next::Send(Body::Job(self.patch(body))))
            }
            Step::Backend(request) => Next::Send(match request {
                Request::Prepare => Body::Create(self.rendered(job)),
                Request::Release { id } => Body::Release(self.patch(patch::release(&id))),
                Request::Stop { id } => {
                    Body::Stop(self.patch(patch::set_by_uid(&id, "/spec/activeDeadlineSeconds", &json!(0))))
                }
                Request::Limit { id, ends } => Body::Limit(self.objects.limit(id, ends)),
                Request::Delete { id: uid } => Body::Delete(id(uid)),
                Request::Unprotect { id: uid } => Body::Unprotect(id(uid)),
            }),
        }
    }

    /// The native Job as production renders it, without a UID yet.
    fn rendered(&self, job: &Job) -> Kept<NativeJob> {
        let resources = job.status.as_ref().and_then(|status| status.effective_resources.clone()).unwrap_or_default();
        let rendered = native_job(job, &resources, "c", &self.parameters);
        let mut native: NativeJob = serde_json::from_value(serde_json::to_value(rendered).unwrap()).unwrap();
        if self.without == Some(Without::Suspension) {
            native.spec.suspend = false;
        }
        self.objects.native(native)
    }

    /// The patch as it is sent, with what a weakened controller leaves out.
    pub(super) fn patch(&self, mut body: Value) -> Kept<Patch> {
        if let Some(without) = self.without {
            without.patch(&mut body);
        }
        let guarded = !(self.without == Some(Without::StatusVersion) && body.is_object());
        self.objects.patch(body, guarded)
    }

    /// The patch that takes our finalizer off a native Job.
    pub(super) fn unprotecting(&self, native: Kept<NativeJob>) -> Option<Kept<Patch>> {
        self.unprotections.of(native, |native| {
            let mut metadata = native.metadata.clone();
            metadata.resource_version = Some("read right before".to_owned());
            patch::remove_finalizer(&metadata, BACKEND_CLEANUP_FINALIZER).map(|body| self.objects.patch(body, false))
        })
    }

    /// The patch that gives a native Job a limit of its own.
    pub(super) fn limiting(&self, native: Kept<NativeJob>, wanted: Kept<Limit>) -> Kept<Patch> {
        self.limits.of((native, wanted), |(native, wanted)| {
            let mut metadata = native.metadata.clone();
            metadata.resource_version = Some("read right before".to_owned());
            let seconds = limit::seconds(native, wanted.1);
            self.objects.patch(patch::set_where_seen(&metadata, "/spec/activeDeadlineSeconds", &json!(seconds)), false)
        })
    }

    /// What the production adapter says of these objects.
    pub(super) fn observation(&self, job: Kept<Job>, native: Option<Kept<NativeJob>>, pod: Pod) -> Kept<Observation> {
        self.observed.of((job, native, pod), |_| {
            let pod = pod_object(pod, |number| native_uid(index(&job), number));
            let sought = Sought {
                job_uid: job.metadata.uid.as_deref().unwrap(),
                recorded: recorded_id(&job, REFERENCE_TYPE).filter(|_| self.without != Some(Without::NeverAgain)),
                started: job.status.as_ref().is_some_and(|status| status.start_time.is_some()),
            };
            let pods: Vec<_> = pod.iter().collect();
            self.objects.observation(observe(sought, native.as_deref(), &pods))
        })
    }
}
