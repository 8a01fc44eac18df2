//! The world of the walks: API server, backend, two controllers, a network that loses and delays.

use std::collections::BTreeMap;

use ayatori_crds::{Job, JobClass, conditions::reason, job::DesiredState, names::JOB_CLEANUP_FINALIZER, rules::Policy};
use jiff::Timestamp;
use serde_json::json;

use crate::{
    backend::{End, Execution, Observation, Phase, Request, Settings},
    job::{
        decide::{Step, decide},
        patience::Patience,
        view::{ClassView, View, recorded_id},
    },
};

/// A promise that a weakened world breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    Nothing,
    /// Status writes ignore the resourceVersion.
    StatusPrecondition,
    /// A release ignores the identifier.
    ReleaseTest,
    /// A release can take effect twice.
    ReleaseMark,
    /// What is prepared runs at once.
    Suspension,
}

/// The execution on the backend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Native {
    id: u32,
    suspended: bool,
    /// The mark of the one release.
    released: bool,
    /// Its controller has given up: failed, with no pod left.
    failed: bool,
    stop: bool,
    deleting: bool,
    protected: bool,
    /// It had a pod, which may be gone.
    ran: bool,
    pub(super) pod: Pod,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pod {
    None,
    Running,
    Ended(i32),
    Killed,
}

/// A request on its way.
#[derive(Clone, Debug)]
struct Sent {
    step: Step,
    /// The version of the Job that it was decided on.
    version: usize,
}

/// A controller: what it has seen. Live views are those of an answer in the same visit.
#[derive(Clone, Debug, Default)]
struct Controller {
    job_version: usize,
    native_version: usize,
    live_job: bool,
    live_native: bool,
}

pub(super) struct World {
    broken: Broken,
    /// Every version of the Job; None once it is gone.
    pub(super) jobs: Vec<Option<Job>>,
    /// Every version of what stands under the execution's name.
    natives: Vec<Option<Native>>,
    controllers: [Controller; 2],
    late: Vec<Sent>,
    pub(super) starts: u32,
    next_id: u32,
    clock: i64,
    class: JobClass,
}

impl World {
    pub(super) fn new(broken: Broken) -> Self {
        let job: Job = serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
            "metadata": {"name": "j", "namespace": "n", "uid": "u", "creationTimestamp": "1970-01-01T00:00:01Z"},
            "spec": {"jobClassName": "c", "task": {"image": "app:1"}},
        }))
        .unwrap();
        let class = serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass",
            "metadata": {"name": "c", "uid": "class-uid"},
            "spec": {"controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"}},
            "status": {"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                "lastTransitionTime": "1970-01-01T00:00:01Z"}]},
        }))
        .unwrap();
        Self {
            broken,
            jobs: vec![Some(job)],
            natives: vec![None],
            controllers: Default::default(),
            late: vec![],
            starts: 0,
            next_id: 1,
            clock: 100,
            class,
        }
    }

    pub(super) fn job(&self) -> Option<&Job> {
        self.jobs.last().and_then(Option::as_ref)
    }

    pub(super) fn native(&self) -> Option<&Native> {
        self.natives.last().and_then(Option::as_ref)
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock).unwrap()
    }

    /// What a controller decides on what it has seen.
    fn decide(&self, which: usize) -> Option<Step> {
        let seen = &self.controllers[which];
        let job = self.jobs[seen.job_version].as_ref()?;
        let labels = BTreeMap::new();
        let view = View {
            job,
            job_is_live: seen.live_job,
            policy: Policy::default(),
            class: ClassView::Present(&self.class),
            namespace_labels: Some(&labels),
            namespace_is_live: true,
            settings: Settings::Present { uid: "parameters-uid".into() },
            controller_name: "k",
            adapter: "kubernetes",
            reference_type: "Job",
            observation: self.observe(job, seen.native_version),
            observation_is_live: seen.live_native,
            references: None,
            explanation: None,
            backend_fails: false,
            patience: Patience::default(),
        };
        Some(decide(&view, self.now()))
    }

    /// What the adapter would say of that version of the backend (its five promises, and no more).
    fn observe(&self, job: &Job, version: usize) -> Observation {
        let Some(native) = &self.natives[version] else { return Observation::Absent };
        let id = format!("native-{}", native.id);
        let recorded = recorded_id(job, "Job");
        if recorded.is_some_and(|recorded| recorded != id) {
            return Observation::Absent;
        }
        let end = |success, exit_code| {
            Phase::Ended(End {
                success,
                reason: if success { reason::COMPLETED } else { reason::PROCESS_FAILED },
                message: String::new(),
                exit_code: Some(exit_code),
                started_at: Some(self.now()),
                finished_at: Some(self.now()),
            })
        };
        let phase = match native.pod {
            Pod::Running => Phase::Running { started_at: self.now() },
            Pod::Ended(code) => end(code == 0, code),
            Pod::Killed => end(false, 143),
            Pod::None if native.failed => Phase::Lost { why: String::new() },
            Pod::None if native.suspended && !native.released => Phase::Prepared,
            Pod::None if native.suspended && native.stop => Phase::Lost { why: String::new() },
            Pod::None if native.suspended => Phase::Unknown { why: String::new() },
            Pod::None if native.stop => Phase::Stopped,
            Pod::None if native.ran => Phase::Unknown { why: String::new() },
            Pod::None => Phase::Waiting { why: String::new(), failure: None },
        };
        Observation::Present(Execution {
            id,
            phase,
            stop_requested: native.stop,
            deletion_requested: native.deleting,
            protected: native.protected,
            silence: None,
            limited: native.stop,
            limit_reached: None,
            copies: 1,
        })
    }

    fn write_job(&mut self, change: impl FnOnce(&mut Job)) {
        if let Some(mut job) = self.job().cloned() {
            change(&mut job);
            let gone =
                job.metadata.deletion_timestamp.is_some() && job.metadata.finalizers.iter().flatten().next().is_none();
            self.jobs.push((!gone).then_some(job));
        }
    }

    fn write_native(&mut self, native: Option<Native>) {
        let gone = native.as_ref().is_some_and(|native| native.deleting && !native.protected);
        self.natives.push(native.filter(|_| !gone));
    }

    fn change_native(&mut self, id: &str, tested: bool, change: impl FnOnce(&mut Native)) {
        if let Some(mut native) = self.native().cloned()
            && (!tested || format!("native-{}", native.id) == id)
        {
            change(&mut native);
            self.write_native(Some(native));
        }
    }

    /// What is over stays as it is, whoever meddles.
    fn meddle(&mut self, change: impl FnOnce(&mut Native)) {
        if let Some(mut native) = self.native().cloned()
            && matches!(native.pod, Pod::None | Pod::Running)
        {
            change(&mut native);
            self.write_native(Some(native));
        }
    }

    /// The servers carry a request out, whenever it lands.
    fn land(&mut self, sent: Sent) {
        let current = sent.version == self.jobs.len() - 1;
        match sent.step {
            Step::AddFinalizer if current => {
                self.write_job(|job| job.metadata.finalizers = Some(vec![JOB_CLEANUP_FINALIZER.into()]));
            }
            Step::RemoveFinalizer if current => {
                self.write_job(|job| job.metadata.finalizers = None);
            }
            Step::WriteStatus(status) if current || self.broken == Broken::StatusPrecondition => {
                self.write_job(|job| job.status = Some(*status));
            }
            Step::Backend(Request::Prepare) if self.native().is_none() => {
                let suspended = self.broken != Broken::Suspension;
                let (id, pod) = (self.next_id, Pod::None);
                self.next_id += 1;
                self.write_native(Some(Native {
                    id,
                    suspended,
                    released: false,
                    failed: false,
                    ran: false,
                    stop: false,
                    deleting: false,
                    protected: true,
                    pod,
                }));
            }
            Step::Backend(Request::Release { id }) => {
                let tested = self.broken != Broken::ReleaseTest;
                let once = self.broken != Broken::ReleaseMark;
                self.change_native(&id, tested, |native| {
                    if !once || !native.released {
                        (native.suspended, native.released) = (false, true);
                    }
                });
            }
            Step::Backend(Request::Stop { id }) => self.change_native(&id, true, |native| native.stop = true),
            Step::Backend(Request::Delete { id }) => self.change_native(&id, true, |native| native.deleting = true),
            Step::Backend(Request::Unprotect { id }) => {
                self.change_native(&id, true, |native| native.protected = false);
            }
            _ => {}
        }
    }

    /// One step of a controller. `fate`: answered, lost on the way, carried out with the answer lost, or late.
    fn act(&mut self, which: usize, fate: u8) {
        let Some(step) = self.decide(which) else { return };
        let (jobs, natives) = (self.jobs.len(), self.natives.len());
        let sent = Sent { step: step.clone(), version: self.controllers[which].job_version };
        match step {
            Step::Wait | Step::WaitUntil(_) => {
                return self.controllers[which] =
                    Controller { live_job: false, live_native: false, ..self.controllers[which] };
            }
            Step::ReadJob => {
                self.controllers[which].job_version = jobs - 1;
                return self.controllers[which].live_job = true;
            }
            Step::ReadExecution => {
                self.controllers[which].native_version = natives - 1;
                return self.controllers[which].live_native = true;
            }
            _ => {}
        }
        let of_backend = matches!(sent.step, Step::Backend(_));
        match fate {
            0..=5 => {
                self.land(sent);
                let seen = &mut self.controllers[which];
                if of_backend {
                    seen.native_version = self.natives.len() - 1;
                    seen.live_native = false;
                } else if self.jobs.len() > jobs {
                    seen.job_version = self.jobs.len() - 1;
                    seen.live_job = true;
                } else {
                    self.restart(which);
                }
            }
            6 => self.restart(which),
            7 => {
                self.land(sent);
                self.restart(which);
            }
            _ => {
                if self.late.len() < 4 {
                    self.late.push(sent);
                }
                self.restart(which);
            }
        }
    }

    /// A visit ends or the process dies: nothing is live any more. The stores stay where they are.
    fn restart(&mut self, which: usize) {
        self.controllers[which].live_job = false;
        self.controllers[which].live_native = false;
    }

    /// A store shows something newer, not necessarily the newest.
    fn catch_up(&mut self, which: usize, by: usize) {
        let (jobs, natives) = (self.jobs.len() - 1, self.natives.len() - 1);
        let seen = &mut self.controllers[which];
        if by.is_multiple_of(2) {
            seen.job_version = jobs.min(seen.job_version + by);
        } else {
            seen.native_version = natives.min(seen.native_version + by);
        }
        self.restart(which);
    }

    /// The backend's own life.
    fn live(&mut self, how: u8) {
        let Some(mut native) = self.native().cloned() else { return };
        match native.pod {
            Pod::None if !native.suspended && !native.stop && !native.failed && !native.deleting => {
                (native.pod, native.ran) = (Pod::Running, true);
                self.starts += 1;
            }
            Pod::Running if native.stop => native.pod = Pod::Killed,
            Pod::Running if how.is_multiple_of(2) => native.pod = Pod::Ended(i32::from(how % 3)),
            _ => return,
        }
        self.write_native(Some(native));
    }

    pub(super) fn go(&mut self, action: u16) {
        let (kind, fate) = (action % 16, (action >> 8) as u8);
        let which = usize::from(action >> 7 & 1);
        self.clock += 1;
        match kind {
            0..=6 => self.act(which, fate % 10),
            7..=9 => self.catch_up(which, usize::from(fate % 5) + 1),
            10 | 11 => self.live(fate),
            12 if !self.late.is_empty() => {
                let sent = self.late.remove(usize::from(fate) % self.late.len());
                self.land(sent);
            }
            13 if fate < 40 => self.write_job(|job| job.spec.desired_state = DesiredState::Cancelled),
            14 if fate < 30 => self.write_job(|job| {
                job.metadata.deletion_timestamp = serde_json::from_value(json!("1970-01-01T00:01:00Z")).unwrap();
            }),
            // Somebody suspends it: its controller deletes the pod and counts nothing.
            15 if fate < 30 => self.meddle(|native| (native.suspended, native.pod) = (true, Pod::None)),
            // Its pod is gone with its node, and its controller gives up.
            15 if fate < 45 => self.meddle(|native| (native.failed, native.pod) = (native.ran, Pod::None)),
            // Somebody strips its finalizer and deletes it; its pod, if it has one, dies with it.
            15 if fate < 60 => self.write_native(None),
            _ => {}
        }
    }

    /// Faults end: both controllers see everything and every request is answered.
    pub(super) fn settle(&mut self) {
        for round in 0..24 {
            self.clock += 1;
            self.live(if round > 12 { 4 } else { 1 });
            for which in 0..2 {
                self.controllers[which].job_version = self.jobs.len() - 1;
                self.controllers[which].native_version = self.natives.len() - 1;
                self.restart(which);
                for _ in 0..8 {
                    self.act(which, 0);
                }
            }
        }
    }
}
