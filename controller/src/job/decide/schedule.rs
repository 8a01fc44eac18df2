//! An accepted Job whose execution is not recorded: nothing can have been started, as only a release starts, and it
//! needs the recorded identifier.

use std::time::Duration;

use ayatori_crds::{
    ConditionStatus,
    conditions::{self, reason},
};
use jiff::Timestamp;

use super::{Step, write};
use crate::{
    backend::{Observation, Request, Settings},
    job::{
        status::Draft,
        view::{ClassView, View},
    },
};

/// How long what was refused rests, or finds its name taken: it is rarely mended sooner, and nothing tells of it.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);

/// Nothing before that pause.
pub(super) fn rest(now: Timestamp) -> Step {
    now.checked_add(REFUSED_PAUSE).map_or(Step::Wait, Step::WaitUntil)
}

pub(super) fn schedule(view: &View<'_>, now: Timestamp) -> Step {
    let draft = Draft::of(view.job, now);
    match &view.observation {
        Observation::Present(execution) => {
            write(view, draft.scheduled(view.reference_type, &execution.id)).unwrap_or(Step::Wait)
        }
        Observation::Foreign => {
            let message = "another object, which is not ours, stands under the name of its execution";
            write(view, draft.unschedulable(reason::NAME_CONFLICT, message)).unwrap_or_else(|| rest(now))
        }
        Observation::Refused { why } => {
            write(view, draft.unschedulable(reason::BACKEND_REFUSED, why)).unwrap_or_else(|| rest(now))
        }
        Observation::Absent => match obstacle(view) {
            Some((reason, message)) => write(view, draft.unschedulable(reason, &message)).unwrap_or(Step::Wait),
            None => Step::Backend(Request::Prepare),
        },
    }
}

/// Why an accepted Job cannot be scheduled now (spec C2, D1): an object of the same name and another UID never takes
/// it over, and a class whose backend is not ready starts nothing new.
fn obstacle(view: &View<'_>) -> Option<(&'static str, String)> {
    let resolved = view.job.status.as_ref()?.resolved_job_class.as_ref()?;
    let name = &resolved.name;
    let class = match &view.class {
        ClassView::Present(class) if class.metadata.uid.as_deref() == Some(resolved.uid.as_str()) => class,
        _ => {
            let message = format!("JobClass {name:?} with UID {} is gone; this Job belongs to no other", resolved.uid);
            return Some((reason::JOB_CLASS_REPLACED, message));
        }
    };
    let pinned = resolved.parameters_ref.uid.as_deref();
    if !matches!(&view.settings, Settings::Present { uid } if Some(uid.as_str()) == pinned) {
        let message = format!("the parameters that JobClass {name:?} had at acceptance are gone");
        return Some((reason::PARAMETERS_REPLACED, message));
    }
    let ready = conditions::find(class.conditions(), conditions::READY)?;
    (ready.status != ConditionStatus::True).then(|| {
        let reason = reason::ALL.iter().find(|known| **known == ready.reason).unwrap_or(&reason::BACKEND_REFUSED);
        (*reason, format!("JobClass {name:?} is not ready: {}", ready.message))
    })
}
