//! Carries out what was decided on classes.

use std::{future::Future, sync::Arc, time::Duration};

use ayatori_crds::{
    JobClass,
    conditions::{DEFAULT_CONFLICT, is_true},
    names::JOB_CLASS_PROTECTION_FINALIZER,
    rules::{class_policy::Controller, default_class::is_marked_default},
};
use kube::{
    Api, Client, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use tokio::sync::broadcast;

use super::{
    decide::{Step, View, decide},
    holders,
    status::is_ours,
};
use crate::{
    backend::Backend,
    call::CallError,
    clock::Clock,
    events::Events,
    patch, queue,
    stores::{Change, Stores, job_index::JobIndex},
    telemetry::Telemetry,
    write,
};

/// Steps that one visit may take. The longest way takes 4; more would be a loop, and backs off as a failure.
const STEPS_A_VISIT: usize = 8;

/// Runs the JobClass controller until `stop` ends.
pub async fn run(
    client: Client,
    stores: Stores,
    backend: Arc<dyn Backend>,
    clock: Clock,
    telemetry: Telemetry,
    changes: broadcast::Receiver<Change>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (store, classes) = (stores.classes.clone(), stores.classes.clone());
    let Telemetry { events, metrics } = telemetry;
    let controller =
        Arc::new(ClassController { client, classes: stores.classes, jobs: stores.job_index, backend, clock, events });
    let visit = move |class: Arc<JobClass>| {
        let controller = Arc::clone(&controller);
        async move { controller.visit(class).await }
    };
    queue::run(store, changes, move |change| affected(&classes, change), visit, metrics.reconciles("jobclass"), stop)
        .await;
}

fn affected(classes: &Store<JobClass>, change: Option<Change>) -> Vec<ObjectRef<JobClass>> {
    let all = |filter: &dyn Fn(&JobClass) -> bool| {
        let all = classes.state().into_iter().filter(|class| filter(class));
        all.map(|class| ObjectRef::from_obj(class.as_ref())).collect()
    };
    match change {
        // Whether it is the only default is said at each of them.
        Some(Change::Class(name)) => all(&|class| {
            class.name_any() == name || is_marked_default(class) || is_true(class.conditions(), DEFAULT_CONFLICT)
        }),
        Some(Change::Parameters(name)) => all(&|class| class.spec.parameters_ref.name == name),
        // Only one that is being deleted waits for Jobs.
        Some(Change::Job(_)) => all(&|class| class.metadata.deletion_timestamp.is_some()),
        Some(Change::Namespace(_) | Change::Execution(_)) => vec![],
        None => all(&|_| true),
    }
}

struct ClassController {
    client: Client,
    classes: Store<JobClass>,
    jobs: Arc<JobIndex>,
    backend: Arc<dyn Backend>,
    clock: Clock,
    events: Events,
}

impl ClassController {
    async fn visit(&self, seen: Arc<JobClass>) -> Result<Option<Duration>, CallError> {
        if !is_ours(&seen, Controller::of(&seen.spec.controller_name)) {
            return Ok(None);
        }
        let (reference, uid) = (&seen.spec.parameters_ref, seen.uid().unwrap_or_default());
        // A look that fails does not keep the rest from being said; it is tried again as a failure.
        let (readiness, look_again) = match self.backend.readiness(reference).await {
            Ok((readiness, tick)) => (Some(readiness), Ok(tick.map(|tick| queue::spread(tick, &uid)))),
            Err(error) => (None, Err(error)),
        };
        let classes = Api::<JobClass>::all(self.client.clone());
        let (mut class, mut live) = (JobClass::clone(&seen), None);
        for _ in 0..STEPS_A_VISIT {
            let view = View {
                class: &class,
                settings: self.backend.settings(reference),
                readiness: readiness.clone(),
                defaults: self.defaults(),
                holders_are_live: live.is_some(),
                holders: live.clone().unwrap_or_else(|| self.jobs.holders(&uid)),
            };
            let (metadata, name) = (&class.metadata, class.name_any());
            let answered = match decide(&view, self.clock.now()) {
                Step::Wait => return look_again,
                Step::ReadHolders => {
                    live = Some(holders::live(&self.client, &uid).await?);
                    continue;
                }
                Step::WriteStatus(status) => {
                    let written = write::status(&classes, metadata, &status).await?;
                    if let Some(written) = &written {
                        self.events.tell(written, class.conditions(), written.conditions(), self.clock.now());
                    }
                    written
                }
                Step::AddFinalizer => {
                    let operations = patch::add_finalizer(metadata, JOB_CLASS_PROTECTION_FINALIZER);
                    write::operations(&classes, &name, operations).await?
                }
                Step::RemoveFinalizer => match patch::remove_finalizer(metadata, JOB_CLASS_PROTECTION_FINALIZER) {
                    Some(operations) => write::operations(&classes, &name, operations).await?,
                    None => None,
                },
            };
            match answered.filter(|answered| answered.metadata.uid == class.metadata.uid) {
                Some(answered) => class = answered,
                None => return Ok(None),
            }
        }
        Err(CallError::Unsettled(STEPS_A_VISIT))
    }

    fn defaults(&self) -> Vec<String> {
        let all = self.classes.state();
        let mut names: Vec<_> =
            all.iter().filter(|class| is_marked_default(class)).map(|class| class.name_any()).collect();
        names.sort_unstable();
        names
    }
}
