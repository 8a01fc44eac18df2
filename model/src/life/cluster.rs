//! The cluster around a native Job: its controller, the kubelet, the garbage collector, and people who meddle. What a
//! real one was seen to do, and every order of it.

use ayatori_crds::names::{JOB_UID_LABEL, RELEASED_ANNOTATION};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    event::Event,
    kept::Kept,
    objects::{Objects, instant},
    pod::{Ending, Exit, Left, Pod, Task, unheard},
};
use ayatori_controller::backend::kubernetes::objects::{NativeCondition, NativeJob, condition_is_true};

/// What became of a task whose pod went without a word before our stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Gone {
    Not,
    /// It is over, which nobody can prove.
    Over,
    /// It runs on, where nobody hears of it.
    Astray,
}

/// What stands under the name of one Job UID's native Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Execution {
    pub(super) native: Option<Kept<NativeJob>>,
    pub(super) pod: Pod,
    /// The number of the native Job that was made last for this UID.
    pub(super) made: u8,
    /// Tasks that were started for this UID.
    pub(super) starts: u8,
    /// An administrator's ruling ended the Job: its task may go on.
    pub(super) given_up: bool,
    /// Whether it went without a word before our stop.
    pub(super) gone: Gone,
    /// What a pod that is gone had shown of the end: who has seen that may yet say so. Not what nobody could hear.
    pub(super) shown: Option<Ending>,
    /// A native Job that is gone, where it had said that its limit ended it: the same.
    pub(super) said: Option<Kept<NativeJob>>,
}

impl Execution {
    pub(super) const NONE: Self = Self {
        native: None,
        pod: Pod::None,
        made: 0,
        starts: 0,
        given_up: false,
        gone: Gone::Not,
        shown: None,
        said: None,
    };

    /// The native Job; where it is gone, what is still known of it.
    pub(super) fn known_native(&self) -> Option<Kept<NativeJob>> {
        self.native.or(self.said)
    }

    /// The task runs, whoever hears of it.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.pod, Pod::Running { .. }) || self.runs_unheard() || self.gone == Gone::Astray
    }

    /// The task runs on a node that does not answer.
    pub(super) fn runs_unheard(&self) -> bool {
        matches!(self.pod, Pod::Unheard { task: Task::Running { .. }, .. })
    }

    /// Its controller ends it, as its limit is over.
    pub(super) fn is_being_ended(&self) -> bool {
        self.native.is_some_and(|native| condition_is_true(&native.status.conditions, "FailureTarget").is_some())
    }

    /// It was made, and waits for its release.
    pub(super) fn is_prepared(&self) -> bool {
        self.native.is_some_and(|native| {
            let mark = native.metadata.annotations.as_ref().and_then(|all| all.get(RELEASED_ANNOTATION));
            native.spec.suspend
                && mark.is_some_and(|mark| mark == "false")
                && native.metadata.deletion_timestamp.is_none()
        })
    }

    /// Its node is known not to answer.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self.pod, Pod::Unheard { noticed: Some(_), .. })
    }

    /// Whether its task may start: its controller would make a pod now, or one is there that was not told to go.
    pub(super) fn may_start(&self) -> bool {
        matches!(self.pod, Pod::Stuck { .. }) || self.may_get_a_pod()
    }

    /// Whether its controller would make a pod now.
    pub(super) fn may_get_a_pod(&self) -> bool {
        self.pod == Pod::None
            && self.native.is_some_and(|native| {
                !native.spec.suspend
                    && native.metadata.deletion_timestamp.is_none()
                    && native.spec.active_deadline_seconds != Some(0)
                    && !is_finished(&native)
            })
    }

    /// The same without its pod; what that has shown stays known.
    pub(super) fn without_pod(self) -> Self {
        Self { pod: Pod::None, shown: self.pod.end().or(self.shown), ..self }
    }

    /// The same with another native Job; without one its pod goes too.
    pub(super) fn with(self, native: Option<Kept<NativeJob>>) -> Self {
        match native.filter(|native| !is_gone(native)) {
            None => Self {
                native: None,
                said: self.native.filter(|native| limit_fired(native).is_some()).or(self.said),
                ..self.without_pod()
            },
            native => Self { native, ..self },
        }
    }
}

/// The API server removes what is being deleted once no finalizer holds it.
fn is_gone(native: &NativeJob) -> bool {
    native.metadata.deletion_timestamp.is_some() && native.metadata.finalizers.iter().flatten().next().is_none()
}

/// Its limit is over: 0 is our stop; one of a second is over before the next tick, although it lets a pod start; another
/// one counts from its creation here (from its release in a real cluster).
fn is_told_to_stop(native: &NativeJob, clock: u8) -> bool {
    let made = native.metadata.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    let limit = native.spec.active_deadline_seconds;
    let over = limit.is_some_and(|seconds| seconds <= 1 || made.saturating_add(seconds) <= instant(clock).as_second());
    over && !native.spec.suspend
}

/// When it said so of its limit with that condition: that it ends it (`FailureTarget`), or ended it (`Failed`).
pub(super) fn ended_by_limit(native: &NativeJob, type_: &str) -> Option<Timestamp> {
    let said = condition_is_true(&native.status.conditions, type_)?;
    let at = said.last_transition_time.as_ref()?.0;
    (said.reason.as_deref() == Some("DeadlineExceeded")).then_some(at)
}

/// When it first said that its limit ends it.
pub(super) fn limit_fired(native: &NativeJob) -> Option<Timestamp> {
    ["FailureTarget", "Failed"].into_iter().find_map(|type_| ended_by_limit(native, type_))
}

fn is_finished(native: &NativeJob) -> bool {
    ["Complete", "Failed"].iter().any(|type_| condition_is_true(&native.status.conditions, type_).is_some())
}

impl Objects {
    /// The execution after the event; None where it cannot happen. `clock` is the tick, `orphan` whether its Job is gone.
    pub(super) fn after(&self, execution: Execution, event: Event, clock: u8, orphan: bool) -> Option<Execution> {
        let native = execution.native?;
        let number = execution.made;
        let stop = is_told_to_stop(&native, clock);
        let finished = is_finished(&native);
        let deleting = native.metadata.deletion_timestamp.is_some();
        let with_pod = |pod| Some(Execution { pod, ..execution });
        if let Pod::Unheard { .. } = execution.pod
            && let Some(pod) = unheard(execution.pod, event, clock)
        {
            let starts = execution.starts.saturating_add(u8::from(event == Event::Start));
            return Some(Execution { pod, starts, ..execution });
        }
        match (event, execution.pod) {
            (Event::Start, _) if execution.may_start() => {
                let pod = Pod::Running { of: number, since: clock };
                Some(Execution { pod, starts: execution.starts.saturating_add(1), ..execution })
            }
            (Event::Stick, _) if execution.may_get_a_pod() => with_pod(Pod::Stuck { of: number }),
            (Event::End(exit), Pod::Running { of, since }) => {
                with_pod(Pod::Ended { of, since, at: clock, exit, left: Left::There })
            }
            (Event::FallSilent, Pod::Stuck { of }) => {
                with_pod(Pod::Unheard { of, heard: None, task: Task::Stuck, noticed: None, deleted: None })
            }
            (Event::FallSilent, Pod::Running { of, since }) => {
                let task = Task::Running { since };
                with_pod(Pod::Unheard { of, heard: Some(since), task, noticed: None, deleted: None })
            }
            (Event::Kill(_), Pod::Unheard { of, heard, task, noticed, deleted: None })
                if stop && !finished && !deleting =>
            {
                let native = self.saying(native, "FailureTarget", "DeadlineExceeded", clock);
                let pod = Pod::Unheard { of, heard, task, noticed, deleted: Some(clock) };
                Some(Execution { pod, ..execution.with(Some(native)) })
            }
            (Event::Kill(exit), Pod::Running { of, since }) if stop && !finished && !deleting => {
                let native = self.saying(native, "FailureTarget", "DeadlineExceeded", clock);
                let pod = Pod::Ended { of, since, at: clock, exit, left: Left::Going };
                Some(Execution { pod, ..execution.with(Some(native)) })
            }
            (Event::Count, Pod::Ended { exit, left: Left::There, .. }) if !finished && !deleting => {
                let (type_, reason) = match exit {
                    Exit::Zero => ("Complete", "CompletionsReached"),
                    Exit::One | Exit::Signal => ("Failed", "BackoffLimitExceeded"),
                };
                Some(execution.with(Some(self.saying(native, type_, reason, clock))))
            }
            // It does not go before it is counted.
            (Event::Count, Pod::GivenUp { .. }) if execution.is_being_ended() || deleting => with_pod(Pod::None),
            (Event::Count, Pod::GivenUp { .. }) => {
                let native = self.saying(native, "Failed", "BackoffLimitExceeded", clock);
                Some(Execution { pod: Pod::None, ..execution.with(Some(native)) })
            }
            (Event::Count, Pod::Lost) if !finished && !deleting && !native.spec.suspend => {
                let native = self.saying(native, "Failed", "BackoffLimitExceeded", clock);
                Some(Execution { pod: Pod::None, ..execution.with(Some(native)) })
            }
            (Event::Stopped, Pod::Running { .. } | Pod::Unheard { .. } | Pod::GivenUp { .. }) => None,
            (Event::Stopped, pod) if stop && !finished && !deleting => {
                let pod = match pod {
                    Pod::Ended { of, since, at, exit, left: Left::Going } => {
                        Pod::Ended { of, since, at, exit, left: Left::Gone }
                    }
                    Pod::Ended { .. } => pod,
                    _ => Pod::None,
                };
                let native = self.saying(native, "Failed", "DeadlineExceeded", clock);
                Some(Execution { pod, ..execution.with(Some(native)) })
            }
            (Event::Forget, Pod::Ended { left: Left::Gone, .. }) => Some(execution.without_pod()),
            (Event::Collect, _) if orphan && is_ours(&native) => self.delete_native(execution),
            (Event::Vanish, _) => Some(execution.with(None)),
            (Event::DeleteRequest, _) if is_ours(&native) => self.delete_native(execution),
            (Event::Suspend, Pod::None | Pod::Stuck { .. } | Pod::Running { .. })
                if !native.spec.suspend && !finished =>
            {
                let mut changed = NativeJob::clone(&native);
                changed.spec.suspend = true;
                Some(Execution { pod: Pod::None, ..execution.with(Some(self.native(changed))) })
            }
            (Event::LosePod, Pod::Running { .. }) => with_pod(if deleting { Pod::None } else { Pod::Lost }),
            (Event::LoseNode, Pod::Unheard { of, heard, .. }) if !deleting && !finished => {
                with_pod(Pod::GivenUp { of, heard })
            }
            _ => None,
        }
    }

    /// A DELETE: it goes at once, or is marked where a finalizer holds it. None where nothing changes.
    pub(super) fn delete_native(&self, execution: Execution) -> Option<Execution> {
        let native = execution.native.filter(|native| native.metadata.deletion_timestamp.is_none())?;
        let mut changed = NativeJob::clone(&native);
        changed.metadata.deletion_timestamp = Some(Time(instant(0)));
        Some(execution.with(Some(self.native(changed))))
    }

    fn saying(&self, native: Kept<NativeJob>, type_: &str, reason: &str, clock: u8) -> Kept<NativeJob> {
        if condition_is_true(&native.status.conditions, type_).is_some() {
            return native;
        }
        let mut changed = NativeJob::clone(&native);
        changed.status.terminating = Some(0);
        changed.status.conditions.push(NativeCondition {
            type_: type_.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: None,
            last_transition_time: Some(Time(instant(clock))),
        });
        self.native(changed)
    }
}

/// Made by us, whoever it belongs to by now.
pub(super) fn is_ours(native: &NativeJob) -> bool {
    native.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(JOB_UID_LABEL))
}
