//! A state of the world, small enough to keep millions of them.

use ayatori_crds::{Job, conditions};

use super::{
    around::Around, cluster::Execution, controller::Body, event::Event, kept::Kept, objects::FOREIGN, pod::Pod,
};
use ayatori_controller::backend::{Observation, kubernetes::objects::NativeJob};

/// The two UIDs that follow each other under the one name.
pub(super) const UIDS: [&str; 2] = ["uid-0", "uid-1"];

/// Which of the two UIDs a Job has.
pub(super) fn index(job: &Job) -> usize {
    UIDS.iter().position(|uid| job.metadata.uid.as_deref() == Some(uid)).unwrap()
}

/// The UID of the native Job with that number of that Job.
pub(super) fn native_uid(job: usize, number: u8) -> String {
    if number == 0 { FOREIGN.to_owned() } else { format!("native-{job}-{number}") }
}

/// How many of each may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Left {
    /// A controller's stores stop following.
    pub(super) stale: u8,
    /// A request is thought lost and lands later.
    pub(super) late: u8,
    /// Somebody or something meddles with an execution.
    pub(super) meddling: u8,
    /// The node of a pod stops answering.
    pub(super) silences: u8,
    /// The clock moves on.
    pub(super) ticks: u8,
    /// The user cancels.
    pub(super) cancels: u8,
    /// The user deletes.
    pub(super) deletes: u8,
    /// The user makes a Job anew under the same name.
    pub(super) creates: u8,
    /// An administrator rules.
    pub(super) rulings: u8,
    /// The cluster begins to refuse what is made.
    pub(super) refusals: u8,
    /// The class changes, or its settings.
    pub(super) changes: u8,
}

/// The whole world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// What stands under the Job's name.
    pub(super) job: Option<Kept<Job>>,
    /// One a Job UID.
    pub(super) executions: [Execution; 2],
    /// Where there are two: in order, as it does not matter which is which.
    pub(super) controllers: [Controller; 2],
    /// Requests that were thought lost, in order.
    pub(super) late: Vec<Request>,
    pub(super) clock: u8,
    /// A quota is full: the cluster makes neither native Jobs nor pods. A policy refuses releases.
    pub(super) refuses: bool,
    /// The class, and its settings.
    pub(super) around: Around,
    pub(super) left: Left,
    /// What was broken on the way here: nothing follows.
    pub(super) broken: Option<&'static str>,
}

/// One controller: it decides by what it has seen, which may be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Controller {
    /// Where its stores have stopped following.
    pub(super) stores: Stores,
    /// The visit that it is in, paused before its next step.
    pub(super) visit: Option<Visit>,
    /// A Job that it has read and found expired; the DELETE is its next step.
    pub(super) expired: Option<JobVersion>,
}

/// What the stores of a controller show where they have stopped; None where they follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Stores {
    pub(super) job: Option<Option<JobVersion>>,
    pub(super) natives: Option<[Option<Kept<NativeJob>>; 2]>,
    pub(super) pods: Option<[Pod; 2]>,
    pub(super) around: Option<Around>,
}

/// A Job as it was at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct JobVersion {
    pub(super) job: Kept<Job>,
    /// Nobody has written it since.
    pub(super) newest: bool,
}

/// What was seen in a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Visit {
    pub(super) job: JobVersion,
    pub(super) job_is_live: bool,
    /// What an answer or a live look has shown, and whether it was a look.
    pub(super) observed: Option<(Kept<Observation>, bool)>,
    /// What the backend's records said when they were asked why nothing shows.
    pub(super) explanation: Option<&'static str>,
    /// A request to the backend failed, and the visit went on.
    pub(super) backend_fails: bool,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Request {
    /// Which UID it was decided for.
    pub(super) uid: usize,
    /// The Job has not been written since it was decided.
    pub(super) newest: bool,
    pub(super) body: Body,
}

/// Which stores stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    Jobs,
    Natives,
    Pods,
    Around,
    All,
}

/// What an administrator rules, by a condition that only who may write `jobs/status` can set (spec E4, F3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ruling {
    BackendLost,
    Released,
}

impl Ruling {
    pub(super) const ALL: [Self; 2] = [Self::BackendLost, Self::Released];

    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::BackendLost => conditions::BACKEND_LOST,
            Self::Released => conditions::RELEASED,
        }
    }

    /// Whether it stands in the Job.
    pub(super) fn is_on(self, job: &Job) -> bool {
        conditions::is_true(job.conditions(), self.condition())
    }
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A controller takes its next step: at most one request, answered. Whether it lives on to see the answer is
    /// [`Action::Die`]'s.
    Step(usize),
    /// A controller's visit ends: it died, or an answer was lost.
    Die(usize),
    /// A controller sends its next request, gives it up, and it lands later.
    SendLate(usize),
    /// A request of a controller to the backend fails, whether it was carried out or not, in a visit that goes on.
    BackendFails(usize, bool),
    /// A request that was thought lost lands.
    Land(usize),
    Stop(usize, Stopping),
    Follow(usize),
    /// A controller reads the Job live and finds its TTL over.
    Expire(usize),
    /// It deletes what it has read.
    DeleteExpired(usize),
    /// A leftover native Job is swept: one step.
    Sweep(usize),
    Cluster(usize, Event),
    Tick,
    Rule(Ruling),
    Change(Around),
    Refuse,
    /// The quota has room again.
    Relent,
    Cancel,
    Delete,
    Create,
}

impl State {
    /// The Job with that UID, where it is there.
    pub(super) fn job_of(&self, uid: usize) -> Option<Kept<Job>> {
        self.job.filter(|job| index(job) == uid)
    }

    /// What a controller's store shows of the Job.
    pub(super) fn stored_job(&self, which: usize) -> Option<JobVersion> {
        let newest = self.job.map(|job| JobVersion { job, newest: true });
        self.controllers[which].stores.job.unwrap_or(newest)
    }

    /// What a controller's stores show of the class and its settings.
    pub(super) fn stored_around(&self, which: usize) -> Around {
        self.controllers[which].stores.around.unwrap_or(self.around)
    }

    /// What a controller's stores show of the execution of that UID.
    pub(super) fn stored_execution(&self, which: usize, uid: usize) -> (Option<Kept<NativeJob>>, Pod) {
        let stores = self.controllers[which].stores;
        let current = self.executions[uid];
        let native = stores.natives.map_or(current.native, |natives| natives[uid]);
        let pod = stores.pods.map_or(current.pod, |pods| pods[uid]);
        (native, pod)
    }
}
