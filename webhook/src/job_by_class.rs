//! What a Job's class says of it (spec B2, B3, G8).

use std::sync::Arc;

use ayatori_crds::conditions::{self, ACCEPTED};
use ayatori_crds::rules::class_policy::{self, Controller};
use ayatori_crds::rules::{FieldError, namespace, resources, sandbox};
use ayatori_crds::{JobClass, JobSpec, OpenSandboxExecutionParameters};

use crate::lookups::{self, Freshness, LookupError, Lookups, NamespaceMeta};
use crate::warnings::first_few;

/// The verdict of a class on a Job.
#[derive(Debug)]
pub(crate) struct ByClass {
    /// What is refused.
    pub(crate) faults: Vec<FieldError>,
    /// What may be cured by waiting.
    pub(crate) warning: Option<String>,
}

/// Everything around a Job that its class's verdict rests on.
#[derive(Debug, Default)]
struct Around {
    class: Option<Arc<JobClass>>,
    namespace: Arc<NamespaceMeta>,
    /// All of them, where the class does not allow the namespace: for what may be used instead.
    classes: Vec<Arc<JobClass>>,
    sandbox_parameters: Option<Arc<OpenSandboxExecutionParameters>>,
}

/// The verdict by what is known at this freshness.
pub(crate) async fn by_class(
    lookups: &dyn Lookups,
    spec: &JobSpec,
    namespace: &str,
    freshness: Freshness,
) -> Result<ByClass, LookupError> {
    let name = spec.job_class_name.as_deref().unwrap_or_default();
    let mut around = Around::default();
    if !name.is_empty() {
        around.class = lookups::class(lookups, name, freshness).await?;
    }
    if let Some(class) = around.class.clone() {
        if class.spec.allowed_namespaces.is_some() {
            around.namespace = lookups::namespace(lookups, namespace, freshness).await?;
            if !namespace::is_allowed(&class.spec, &around.namespace.labels) {
                around.classes = lookups.classes();
            }
        }
        if is_sandbox(&class) && sandbox::asks_for_permission(&spec.task) {
            let settings = &class.spec.parameters_ref;
            around.sandbox_parameters = lookups::sandbox_parameters(lookups, &settings.name, freshness).await?;
        }
    }
    Ok(judge(spec, name, namespace, &around))
}

impl Around {
    /// What this namespace may use instead of a class that does not allow it (spec B4: what would be right).
    fn instead(&self) -> String {
        let usable = self.classes.iter().filter(|class| {
            is_living(class)
                && conditions::is_true(class.conditions(), ACCEPTED)
                && namespace::is_allowed(&class.spec, &self.namespace.labels)
        });
        let mut names: Vec<String> =
            usable.flat_map(|class| &class.metadata.name).map(|name| format!("{name:?}")).collect();
        // A store has no order; a message that changes from try to try looks like two faults.
        names.sort_unstable();
        match names.as_slice() {
            [] => "no class does: ask for one".to_owned(),
            some => format!("use one that does ({})", first_few(some)),
        }
    }
}

fn is_living(class: &JobClass) -> bool {
    class.metadata.deletion_timestamp.is_none()
}

fn is_sandbox(class: &JobClass) -> bool {
    Controller::of(&class.spec.controller_name) == Controller::OpenSandbox
}

/// Pure. Without a class only what is wrong under any class is found. A class that is not accepted is warned of, as
/// waiting may cure it, but counts all the same; one whose own spec is faulty does not: it would refuse every Job for a
/// fault that is not the Job's.
fn judge(spec: &JobSpec, name: &str, namespace: &str, around: &Around) -> ByClass {
    let class = around.class.as_deref().filter(|class| is_living(class));
    let sound = class.filter(|class| class_policy::errors(&class.spec).is_empty());
    let mut faults = Vec::new();
    if sound.is_some_and(|class| !namespace::is_allowed(&class.spec, &around.namespace.labels)) {
        faults.push(namespace::not_allowed(name, namespace, &around.instead()));
    }
    let policy = sound.and_then(|class| class.spec.resources.as_ref());
    faults.extend(resources::effective(spec.resources.as_ref(), policy, name).err().into_iter().flatten());
    if let Some(class) = sound.filter(|class| is_sandbox(class)) {
        faults.extend(sandbox::command_error(&spec.task, name));
        // Settings that are not there allow and forbid nothing: the class waits for them.
        let settings = around.sandbox_parameters.as_deref().filter(|settings| {
            let pinned = class.spec.parameters_ref.uid.as_ref();
            pinned.is_none_or(|pinned| settings.metadata.uid.as_ref() == Some(pinned))
        });
        faults.extend(settings.iter().flat_map(|found| sandbox::permission_errors(&spec.task, name, &found.spec)));
    }
    let warning = match class {
        _ if name.is_empty() => None,
        None if around.class.is_some() => {
            Some(format!("JobClass {name:?} is being deleted: the Job waits until it is there again"))
        }
        None => Some(format!("JobClass {name:?} does not exist: the Job waits until it does")),
        Some(class) if !conditions::is_true(class.conditions(), ACCEPTED) => {
            let condition = conditions::find(class.conditions(), ACCEPTED);
            let reason = condition.map_or("not looked at yet", |condition| &condition.reason);
            Some(format!("JobClass {name:?} is not accepted ({reason}): the Job waits until it is"))
        }
        Some(_) => None,
    };
    ByClass { faults, warning }
}
