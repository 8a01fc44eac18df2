//! What is left of an execution whose native Job is gone: pure. Its pods outlive it, each for its grace period, or, where
//! somebody orphaned them, for as long as they run. They are the execution then: nothing is over while one of them may
//! run, and what they say of its end is evidence (spec section 6).

use super::{
    objects::NativePod,
    observe::{FAILED_WITHOUT_A_WORD, Sought, nothing_ran, of_pod, owned_by},
    silence, verdict, waiting,
};
use crate::backend::{Execution, Observation, Phase};

/// Reads the pods of the native Job with the `recorded` UID, which is gone. Without a word of theirs nothing is there.
pub(super) fn observe(sought: Sought<'_>, recorded: &str, pods: &[&NativePod]) -> Observation {
    let pods = owned_by(recorded, pods);
    let shown: Vec<(&NativePod, Phase)> = pods.iter().filter_map(|pod| Some((*pod, phase(sought, pod)?))).collect();
    // The oldest that may still run; where none does, the oldest that ran is the execution (spec E2).
    let goes_on = shown.iter().find(|(_, phase)| !matches!(phase, Phase::Ended(_)));
    let ran = || shown.iter().find(|(_, phase)| !nothing_ran(phase));
    // That nothing ran is a word on all of them: it says nothing of one that went without last words.
    let none_ran = || shown.first().filter(|_| shown.len() == pods.len());
    let Some((pod, phase)) = goes_on.or_else(ran).or_else(none_ran) else { return Observation::Absent };
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let left = format!("its native Job is gone; pod {name:?} is left, and goes on until it ends or is deleted");
    Observation::Present(Execution {
        id: recorded.to_owned(),
        phase: phase.clone(),
        // No request reaches it any more: its end is that of the pod.
        stop_requested: true,
        deletion_requested: true,
        protected: false,
        limited: true,
        limit_reached: None,
        silence: silence::of(pod),
        copies: pods.len(),
        orphaned: Some(left.into()),
    })
}

/// What one pod shows; None where it is gone without last words.
fn phase(sought: Sought<'_>, pod: &NativePod) -> Option<Phase> {
    match of_pod(sought, pod) {
        Some(phase) => Some(phase),
        // No other pod can come.
        None if pod.never_ran() => (!sought.started).then(|| Phase::Ended(verdict::never_bound())),
        None if pod.gone => None,
        None if pod.has_failed() => Some(Phase::Unknown { why: FAILED_WITHOUT_A_WORD.into() }),
        None => Some(waiting::phase(pod)),
    }
}
