//! What must hold in every world, after every move (spec section 9).

use ayatori_crds::{JobState, JobStatus};

use super::world::{Pod, World};

impl World {
    /// The invariants of spec section 9, over the versions of the Job since `first`.
    pub(super) fn violation(&self, first: usize) -> Option<String> {
        if self.starts > 1 {
            return Some(format!("I1: {} starts", self.starts));
        }
        for pair in self.jobs[first..].windows(2) {
            let (Some(before), Some(after)) = (&pair[0], &pair[1]) else { continue };
            let (old, new) = (before.status.clone().unwrap_or_default(), after.status.clone().unwrap_or_default());
            if old.completion_time.is_some()
                && (&old.completion_time, &old.result) != (&new.completion_time, &new.result)
            {
                return Some("I2: a terminal status changed".into());
            }
            if old.start_time.is_some() && old.start_time != new.start_time {
                return Some("I3: startTime moved".into());
            }
            let references = |status: &JobStatus| status.execution.clone().unwrap_or_default().references;
            if !references(&old).iter().all(|reference| references(&new).contains(reference)) {
                return Some("I6: a reference changed".into());
            }
            let (from, to) = (JobState::of(before), JobState::of(after));
            if !from.may_become(to) {
                return Some(format!("{from:?} became {to:?}"));
            }
        }
        let alive = self.native().is_some_and(|native| native.pod == Pod::Running);
        if self.jobs.last().is_some_and(Option::is_none) && alive {
            return Some("I8: the Job is gone while its execution runs".into());
        }
        None
    }
}
