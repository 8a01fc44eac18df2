//! Gathers what is seen of a Job in one visit: what the stores have, and over it what answers have shown.

use std::{collections::BTreeMap, sync::Arc};

use ayatori_crds::{
    Job, JobClass,
    rules::default_class::{DefaultClass, default_class},
};
use kube::{ResourceExt, runtime::reflector::ObjectRef};

use super::{
    options::Options,
    references::Answers,
    view::{ClassView, View},
};
use crate::{
    backend::{Backend, Observation, Settings},
    stores::{NamespaceMetadata, Stores},
};

/// What a visit has seen.
pub(super) struct Seen {
    pub(super) job: Arc<Job>,
    /// The Job came with an answer.
    pub(super) job_is_live: bool,
    /// The namespace as it was answered; without anything where it is gone.
    pub(super) namespace: Option<NamespaceMetadata>,
    /// The execution as it was answered.
    pub(super) observation: Option<Observation>,
    /// That answer shows all of the execution.
    pub(super) observation_is_live: bool,
    /// What was read of Secrets and ConfigMaps.
    pub(super) references: Answers,
    /// What the backend's records said.
    pub(super) explanation: Option<String>,
    /// A request to the backend failed.
    pub(super) backend_fails: bool,
}

impl Seen {
    /// A visit begins with what the store has.
    pub(super) fn of(job: Arc<Job>) -> Self {
        Self {
            job,
            job_is_live: false,
            namespace: None,
            observation: None,
            observation_is_live: false,
            references: Answers::new(),
            explanation: None,
            backend_fails: false,
        }
    }

    /// Calls `decide` with the view of this moment.
    pub(super) fn view<T>(
        &self,
        stores: &Stores,
        backend: &dyn Backend,
        options: &Options,
        decide: impl FnOnce(&View<'_>) -> T,
    ) -> T {
        let job = self.job.as_ref();
        let stored = stores.namespaces.get(&ObjectRef::new(job.metadata.namespace.as_deref().unwrap_or_default()));
        let namespace = self.namespace.as_ref().or(stored.as_deref());
        let found = class_of(job, stored.as_deref(), stores);
        let class = match &found {
            FoundClass::NoDefault => ClassView::NoDefault,
            FoundClass::Ambiguous(names) => ClassView::AmbiguousDefault(names.clone()),
            FoundClass::Named(name, None) => ClassView::Absent(name.clone()),
            FoundClass::Named(_, Some(class)) => ClassView::Present(class),
        };
        let settings = match &class {
            ClassView::Present(class) => backend.settings(&class.spec.parameters_ref),
            _ => Settings::Missing,
        };
        decide(&View {
            job,
            job_is_live: self.job_is_live,
            policy: options.policy,
            class,
            namespace_labels: namespace.map(ResourceExt::labels),
            namespace_is_going: namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()),
            namespace_is_live: self.namespace.is_some(),
            settings,
            controller_name: backend.controller_name(),
            adapter: backend.adapter(),
            reference_type: backend.reference_type(),
            observation: self.observation.clone().unwrap_or_else(|| backend.observe(job)),
            observation_is_live: self.observation_is_live,
            backend_fails: self.backend_fails,
            references: options.reference_checks.then_some(&self.references),
            explanation: self.explanation.as_deref(),
            patience: options.patience,
        })
    }
}

/// The class of a Job, as the stores have it.
enum FoundClass {
    NoDefault,
    Ambiguous(Vec<String>),
    Named(String, Option<Arc<JobClass>>),
}

/// What was resolved at acceptance; before that, what the Job or the defaults name.
fn class_of(job: &Job, namespace: Option<&NamespaceMetadata>, stores: &Stores) -> FoundClass {
    let resolved = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
    let named = resolved.map(|class| class.name.clone()).or_else(|| job.spec.job_class_name.clone());
    let name = match named.filter(|name| !name.is_empty()) {
        Some(name) => name,
        None => {
            let none = BTreeMap::new();
            let annotations = namespace.map_or(&none, ResourceExt::annotations);
            let classes = stores.classes.state();
            match default_class(annotations, classes.iter().map(AsRef::as_ref)) {
                DefaultClass::Named(name) => name,
                DefaultClass::None => return FoundClass::NoDefault,
                DefaultClass::Ambiguous(names) => return FoundClass::Ambiguous(names),
            }
        }
    };
    let class = stores.classes.get(&ObjectRef::new(&name));
    FoundClass::Named(name, class)
}
