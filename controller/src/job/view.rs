//! What is seen of a Job and around it when its next step is decided.

use std::collections::BTreeMap;

use ayatori_crds::{Job, JobClass, rules::Policy};

use super::{patience::Patience, references::Answers};
use crate::backend::{Execution, Observation, Settings};

/// Everything that a decision rests on. Gathered from the stores; [`View::job`] and [`View::observation`] may be fresher.
#[derive(Debug)]
pub struct View<'a> {
    /// The Job.
    pub job: &'a Job,
    /// The Job came with an answer of the API server in this visit, not from a store that may lag.
    pub job_is_live: bool,
    /// What the platform asks of every Job.
    pub policy: Policy,
    /// The class that the Job names, or that the defaults give.
    pub class: ClassView<'a>,
    /// Labels of the Job's namespace; None where it is not known (yet).
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// The namespace is being deleted.
    pub namespace_is_going: bool,
    /// The namespace was read in this visit, not taken from a store that may lag.
    pub namespace_is_live: bool,
    /// The class's settings object.
    pub settings: Settings,
    /// The `controllerName` of the classes that the adapter serves.
    pub controller_name: &'static str,
    /// The adapter's word for `status.execution.adapter`, and the type of its reference.
    pub adapter: &'static str,
    /// The type under which the execution's identifier is recorded.
    pub reference_type: &'static str,
    /// What the backend shows.
    pub observation: Observation,
    /// The observation was read in this visit, not taken from a store that may lag.
    pub observation_is_live: bool,
    /// Whether Secrets and ConfigMaps are looked at before an acceptance, and what was read of them in this visit (spec
    /// C3). None: they are left to the backend.
    pub references: Option<&'a Answers>,
    /// What the backend's records said in this visit of an execution that shows nothing; empty where they say nothing.
    pub explanation: Option<&'a str>,
    /// A request to the backend failed in this visit.
    pub backend_fails: bool,
    /// How long is waited for what may still come.
    pub patience: Patience,
}

/// The class of a Job.
#[derive(Debug, Clone)]
pub enum ClassView<'a> {
    /// The Job names none and there is no default (spec B1).
    NoDefault,
    /// The Job names none and several are marked as the default.
    AmbiguousDefault(Vec<String>),
    /// It is named, but not there.
    Absent(String),
    /// It is there.
    Present(&'a JobClass),
}

impl View<'_> {
    /// The execution that the backend shows: the recorded one, once one is recorded. A store that lags may show as left
    /// behind what is not, so that is believed only of a live look.
    #[must_use]
    pub fn execution(&self) -> Option<&Execution> {
        let Observation::Present(execution) = &self.observation else { return None };
        let is_it = self.recorded_id().is_none_or(|id| id == execution.id);
        (is_it && (execution.orphaned.is_none() || self.observation_is_live)).then_some(execution)
    }

    /// The recorded identifier of the execution.
    #[must_use]
    pub fn recorded_id(&self) -> Option<&str> {
        recorded_id(self.job, self.reference_type)
    }
}

/// The identifier that is recorded in a Job's status under that reference type.
#[must_use]
pub fn recorded_id<'a>(job: &'a Job, reference_type: &str) -> Option<&'a str> {
    let execution = job.status.as_ref()?.execution.as_ref()?;
    execution.references.iter().find(|reference| reference.type_ == reference_type).map(|found| found.id.as_str())
}
