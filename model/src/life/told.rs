//! What a Job's status says, read without the code that is checked.

use ayatori_crds::{
    Job,
    conditions::{self, STOPPING},
};

/// Its terminal status is there.
pub(super) fn is_over(job: &Job) -> bool {
    job.status.as_ref().is_some_and(|status| status.completion_time.is_some())
}

/// Our stop is recorded.
pub(super) fn is_stopped(job: &Job) -> bool {
    conditions::find(job.conditions(), STOPPING).is_some()
}

/// Its result is told to be unknown.
pub(super) fn is_in_doubt(job: &Job) -> bool {
    conditions::says_unknown(job.conditions())
}
