//! The pod of a native Job, as it is in truth and as it is shown, and how its task ends.

use serde_json::json;

use super::{event::Event, objects::instant};
use ayatori_controller::backend::kubernetes::{objects::NativePod, render::CONTAINER};

/// How a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Exit {
    Zero,
    One,
    /// By our signal.
    Signal,
}

impl Exit {
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Signal => 143,
        }
    }
}

/// How a task ended, and at which tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Ending {
    pub(super) exit: Exit,
    pub(super) at: u8,
}

/// What becomes of a pod whose task is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Left {
    /// It stays.
    There,
    /// Its controller deletes it, as it was told to stop.
    Going,
    /// It is gone; its last words were heard.
    Gone,
}

/// The pod of a native Job. `of` is the number of the native Job that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Pod {
    /// There is none and there was none that counts.
    None,
    /// It was deleted before it was seen to end; its native Job's controller has not counted that yet.
    Lost,
    /// Its image is not where it shall run: the task waits. The kubelet starts it once it is there, whatever is asked of
    /// the native Job: only a pod that is told to go is not started any more.
    Stuck { of: u8 },
    /// The task runs since that tick.
    Running { of: u8, since: u8 },
    /// Its node does not answer. What was heard of it last is what is shown: that the task waits, or since when it runs.
    Unheard {
        of: u8,
        heard: Option<u8>,
        task: Task,
        /// When the control plane saw that, and took the pod's readiness away.
        noticed: Option<u8>,
        /// When the native Job's controller deleted the pod, which stays until its node answers.
        deleted: Option<u8>,
    },
    /// Its node's object was deleted: the garbage collector says Failed of what was heard last, and deletes it.
    GivenUp { of: u8, heard: Option<u8> },
    /// The task is over.
    Ended { of: u8, since: u8, at: u8, exit: Exit, left: Left },
}

impl Pod {
    /// Which native Job made it.
    pub(super) fn of(self) -> Option<u8> {
        match self {
            Self::None | Self::Lost => None,
            Self::Stuck { of }
            | Self::Running { of, .. }
            | Self::Unheard { of, .. }
            | Self::GivenUp { of, .. }
            | Self::Ended { of, .. } => Some(of),
        }
    }

    /// How its task ended, where it shows that.
    pub(super) fn end(self) -> Option<Ending> {
        if let Self::Ended { exit, at, .. } = self { Some(Ending { exit, at }) } else { None }
    }
}

/// What goes on where nobody hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Task {
    Stuck,
    Running { since: u8 },
    Ended { since: u8, at: u8, exit: Exit },
}

/// What becomes by itself of a pod whose node does not answer.
pub(super) fn unheard(pod: Pod, event: Event, clock: u8) -> Option<Pod> {
    let Pod::Unheard { of, heard, task, noticed, deleted } = pod else { return None };
    let with = |task, noticed| Some(Pod::Unheard { of, heard, task, noticed, deleted });
    match (event, task) {
        // Whatever the control plane has in mind: the kubelet does not know.
        (Event::Start, Task::Stuck) => with(Task::Running { since: clock }, noticed),
        (Event::End(exit), Task::Running { since }) => with(Task::Ended { since, at: clock, exit }, noticed),
        (Event::Notice, _) if noticed.is_none() => with(task, Some(clock)),
        (Event::Answer, Task::Stuck) => Some(if deleted.is_some() { Pod::None } else { Pod::Stuck { of } }),
        (Event::Answer, Task::Running { since }) => Some(Pod::Running { of, since }),
        (Event::Answer, Task::Ended { since, at, exit }) => {
            let left = if deleted.is_some() { Left::Going } else { Left::There };
            Some(Pod::Ended { of, since, at, exit, left })
        }
        _ => None,
    }
}

/// The pod as the kubelet writes it; `uid_of` names the native Job with that number.
pub(super) fn pod_object(shown: Pod, uid_of: impl Fn(u8) -> String) -> Option<NativePod> {
    let waiting = || json!({"waiting": {"reason": "ErrImageNeverPull", "message": "not there"}});
    let running = |since| json!({"running": {"startedAt": instant(since)}});
    let (mut conditions, mut deleted_at) = (json!([]), None);
    let (of, phase, state) = match shown {
        Pod::None | Pod::Lost => return None,
        Pod::Stuck { of } => (of, "Pending", waiting()),
        Pod::Running { of, since } => (of, "Running", running(since)),
        Pod::Unheard { of, heard, noticed, deleted, .. } => {
            let unready = |at| json!([{"type": "Ready", "status": "False", "lastTransitionTime": instant(at)}]);
            (conditions, deleted_at) = (noticed.map_or(json!([]), unready), deleted.map(instant));
            heard.map_or_else(|| (of, "Pending", waiting()), |since| (of, "Running", running(since)))
        }
        Pod::GivenUp { of, heard } => {
            conditions = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]);
            (of, "Failed", heard.map_or_else(waiting, running))
        }
        Pod::Ended { of, since, at, exit, .. } => {
            let (phase, reason) = match exit {
                Exit::Zero => ("Succeeded", "Completed"),
                Exit::One | Exit::Signal => ("Failed", "Error"),
            };
            let code = exit.code();
            let terminated =
                json!({"exitCode": code, "reason": reason, "startedAt": instant(since), "finishedAt": instant(at)});
            (of, phase, json!({"terminated": terminated}))
        }
    };
    let containers = json!([{"name": CONTAINER, "containerID": "c", "state": state}]);
    let status = json!({"phase": phase, "conditions": conditions, "containerStatuses": containers});
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "n", "uid": uid_of(of)}]);
    let metadata = json!({"ownerReferences": owner, "uid": "pod", "deletionTimestamp": deleted_at});
    let object = json!({"metadata": metadata, "spec": {"nodeName": "node"}, "status": status});
    let pod: NativePod = serde_json::from_value(object).unwrap();
    Some(NativePod { gone: matches!(shown, Pod::Ended { left: Left::Gone, .. }), ..pod })
}
