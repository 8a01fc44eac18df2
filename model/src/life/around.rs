//! What stands around a Job: its class, the settings that the class names, and what the cluster refuses. The names stay
//! the same; what carries them may go, and come back as something else.

use ayatori_crds::{
    ConditionStatus, Job, JobClass,
    conditions::{self, ACCEPTED, READY, reason},
};
use serde_json::json;

use super::{controller::CONTROLLER_NAME, objects::BEGIN};
use ayatori_controller::backend::Settings;

/// What a class says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Says {
    /// It is accepted, and takes new starts.
    Ready,
    /// It is accepted; its backend takes no new starts.
    Unready,
    /// It contradicts itself.
    Unaccepted,
    /// It is accepted and ready, and is being deleted.
    Deleting,
    /// It is for somebody else's controller.
    OfAnother,
}

impl Says {
    const ALL: [Self; 5] = [Self::Ready, Self::Unready, Self::Unaccepted, Self::Deleting, Self::OfAnother];
}

/// What carries the names: which of two UIDs, where something does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Around {
    pub(super) class: Option<(u8, Says)>,
    pub(super) settings: Option<u8>,
}

impl Around {
    /// All is well.
    pub(super) const CALM: Self = Self { class: Some((0, Says::Ready)), settings: Some(0) };

    /// What one change can make of it. A UID does not come back.
    pub(super) fn changed(self) -> Vec<Self> {
        let (class, settings) = (self.class, self.settings);
        let edited = class.filter(|(_, says)| *says != Says::Deleting).into_iter().flat_map(|(uid, _)| {
            [Says::Ready, Says::Unready, Says::Unaccepted, Says::Deleting].map(|says| Some((uid, says)))
        });
        let anew = [None, Some((1, Says::Ready)), Some((1, Says::OfAnother))];
        let anew = anew.into_iter().filter(|_| class.is_none_or(|(uid, _)| uid == 0));
        let of_class = edited.chain(anew).map(|class| Self { class, settings });
        let of_settings = [None, Some(1)].map(|settings| Self { class, settings });
        of_class.chain(of_settings).filter(|changed| *changed != self).collect()
    }

    /// What may mend it.
    pub(super) fn mended(self) -> Vec<Self> {
        let class = match self.class {
            Some((uid, Says::Unready | Says::Unaccepted)) => Some((uid, Says::Ready)),
            None => Some((1, Says::Ready)),
            kept => kept,
        };
        let settings = self.settings.or(Some(1));
        [Self { class, ..self }, Self { settings, ..self }].into_iter().filter(|mended| *mended != self).collect()
    }

    /// Whether a Job would be accepted.
    fn accepts(self) -> bool {
        matches!(self.class, Some((_, Says::Ready | Says::Unready))) && self.settings.is_some()
    }

    /// Whether it is for somebody else's controller.
    pub(super) fn is_of_another(self) -> bool {
        matches!(self.class, Some((_, Says::OfAnother)))
    }

    pub(super) fn class_uid(self) -> Option<String> {
        self.class.map(|(uid, _)| format!("class-{uid}"))
    }

    pub(super) fn settings_uid(self) -> Option<String> {
        self.settings.map(|uid| format!("settings-{uid}"))
    }

    /// What the adapter shows of the settings: those of a class that is there.
    pub(super) fn settings(self) -> Settings {
        let uid = self.settings_uid().filter(|_| self.class.is_some());
        uid.map_or(Settings::Missing, |uid| Settings::Present { uid })
    }

    /// Whether this is what the Job was accepted with.
    fn accepted(self, job: &Job) -> bool {
        let resolved = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
        resolved.is_some_and(|resolved| {
            self.class_uid().as_ref() == Some(&resolved.uid) && self.settings_uid() == resolved.parameters_ref.uid
        })
    }

    /// What is wrong with a request of a controller that saw this around the Job: `creates` is whether it makes the
    /// execution, `after` the Job as a write left it.
    pub(super) fn broken_by(self, job: &Job, creates: bool, after: Option<&Job>) -> Option<&'static str> {
        let was_accepted = conditions::is_true(job.conditions(), ACCEPTED);
        let is_accepted = after.is_some_and(|after| conditions::is_true(after.conditions(), ACCEPTED));
        match () {
            () if creates && !self.accepted(job) => {
                Some("C2: an execution was made with a class or settings that its Job was not accepted with")
            }
            () if creates && matches!(self.class, Some((_, Says::Unready))) => {
                Some("D1: an execution was made of a class that is not ready")
            }
            () if !was_accepted && is_accepted && !self.accepts() => {
                Some("C1: a Job was accepted by a class that does not accept")
            }
            () => None,
        }
    }

    /// What is wrong with a Job without an execution when nothing changes any more; None where it has to wait, and says
    /// for what.
    pub(super) fn wrong_for(self, job: &Job) -> Option<&'static str> {
        let says = |type_, reasons: &[&str]| {
            let condition = conditions::find(job.conditions(), type_);
            condition.is_some_and(|found| found.status == ConditionStatus::False && reasons.contains(&&*found.reason))
        };
        let resolved = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
        let told = match resolved {
            _ if self.is_of_another() && resolved.is_none() => true,
            None if self.accepts() => false,
            None => says(ACCEPTED, &[reason::JOB_CLASS_NOT_FOUND, reason::JOB_CLASS_NOT_ACCEPTED]),
            Some(accepted) if self.class_uid().as_ref() != Some(&accepted.uid) => {
                says(conditions::SCHEDULED, &[reason::JOB_CLASS_REPLACED])
            }
            Some(accepted) if self.settings_uid() != accepted.parameters_ref.uid => {
                says(conditions::SCHEDULED, &[reason::PARAMETERS_REPLACED])
            }
            Some(_) if matches!(self.class, Some((_, Says::Unready))) => {
                says(conditions::SCHEDULED, &[reason::RUNTIME_CLASS_NOT_FOUND])
            }
            Some(_) => false,
        };
        (!told).then_some("a Job is stuck, or does not say what it waits for")
    }
}

/// Each class that may stand there.
pub(super) struct Classes([[JobClass; Says::ALL.len()]; 2]);

impl Default for Classes {
    fn default() -> Self {
        Self([0, 1].map(|uid| Says::ALL.map(|says| class(uid, says))))
    }
}

impl Classes {
    pub(super) fn get(&self, around: Around) -> Option<&JobClass> {
        let (uid, says) = around.class?;
        Some(&self.0[usize::from(uid)][says as usize])
    }
}

fn class(uid: u8, says: Says) -> JobClass {
    let condition = |type_: &str, is: bool, reason: &str| {
        let status = if is { "True" } else { "False" };
        json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": BEGIN})
    };
    let unready = says == Says::Unready;
    let ready_reason = if unready { reason::RUNTIME_CLASS_NOT_FOUND } else { reason::BACKEND_REACHABLE };
    serde_json::from_value(json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass",
        "metadata": {"name": "c", "uid": format!("class-{uid}"),
            "deletionTimestamp": (says == Says::Deleting).then_some(BEGIN)},
        "spec": {"controllerName": if says == Says::OfAnother { "another" } else { CONTROLLER_NAME },
            "parametersRef": {"group": "g", "kind": "K", "name": "p"}},
        "status": {"conditions": [
            condition(ACCEPTED, says != Says::Unaccepted, reason::CLASS_ACCEPTED),
            condition(READY, !unready, ready_reason),
        ]},
    }))
    .unwrap()
}
