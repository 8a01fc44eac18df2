//! Validation of the settings of both adapters (spec B8): what the schema cannot say of them, and that nothing that a
//! class uses is deleted.

use std::marker::PhantomData;
use std::sync::Arc;

use ayatori_crds::names::{GROUP, VERSION};
use ayatori_crds::rules::{FieldError, parameters};
use ayatori_crds::{KubernetesExecutionParametersSpec, OpenSandboxExecutionParametersSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use crate::answer::Subject;
use crate::lookups::Lookups;
use crate::outline::Outline;
use crate::warnings::first_few;
use crate::{Answer, Operation, Request, Review};

/// Serves [`crate::configuration::VALIDATE_KUBERNETES_PARAMETERS`].
pub type KubernetesParametersValidation = ParametersValidation<KubernetesExecutionParametersSpec>;
/// Serves [`crate::configuration::VALIDATE_OPENSANDBOX_PARAMETERS`].
pub type OpenSandboxParametersValidation = ParametersValidation<OpenSandboxExecutionParametersSpec>;

/// The settings of an adapter, as far as they are reviewed.
pub trait Settings: DeserializeOwned + PartialEq + Send + Sync + 'static {
    /// The kind of their object.
    const KIND: &'static str;
    /// Its plural.
    const RESOURCE: &'static str;

    /// Every fault.
    fn errors(&self) -> Vec<FieldError>;
}

impl Settings for KubernetesExecutionParametersSpec {
    const KIND: &'static str = "KubernetesExecutionParameters";
    const RESOURCE: &'static str = "kubernetesexecutionparameters";

    fn errors(&self) -> Vec<FieldError> {
        parameters::kubernetes_errors(self)
    }
}

impl Settings for OpenSandboxExecutionParametersSpec {
    const KIND: &'static str = "OpenSandboxExecutionParameters";
    const RESOURCE: &'static str = "opensandboxexecutionparameters";

    fn errors(&self) -> Vec<FieldError> {
        parameters::opensandbox_errors(self)
    }
}

/// Reviews one kind of settings.
#[derive(Debug)]
pub struct ParametersValidation<S> {
    lookups: Arc<dyn Lookups>,
    settings: PhantomData<fn() -> S>,
}

/// Settings as they are sent.
#[derive(Deserialize)]
struct Sent<S> {
    spec: S,
}

/// What identifies settings that are stored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Held {
    metadata: HeldMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HeldMetadata {
    name: String,
    uid: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
}

impl<S: Settings> ParametersValidation<S> {
    /// Finds the classes that use settings by `lookups`.
    #[must_use]
    pub fn new(lookups: Arc<dyn Lookups>) -> Self {
        Self { lookups, settings: PhantomData }
    }

    async fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.operation, request.object, request.old_object) {
            (Operation::Create, Some(object), _) => judge::<S>(request, object, None),
            (Operation::Update, Some(object), old) => judge::<S>(request, object, old),
            (Operation::Delete, _, old) => self.delete(request, old).await,
            _ => Answer::allowed(),
        }
    }

    /// Settings that a class uses stay. The list is read live: what is deleted is gone, whatever a store knows.
    async fn delete(&self, request: &Request<'_>, old: Option<&RawValue>) -> Answer {
        let old: Held = old.and_then(|old| serde_json::from_str(old.get()).ok()).unwrap_or_default();
        // It was let go already, and comes again because it still has a finalizer.
        if old.metadata.deletion_timestamp.is_some() {
            return Answer::allowed();
        }
        let classes = match self.lookups.live_classes().await {
            Ok(classes) => classes,
            Err(error) => return Answer::internal_error(format!("{error}; try again")),
        };
        // A request that deletes a whole collection names none of its objects.
        let (name, uid) = (old.metadata.name.as_str(), old.metadata.uid.as_deref());
        let users = parameters::used_by(S::KIND, name, uid, classes.iter().map(|class| &**class));
        let (noun, verb) = if users.len() == 1 { ("JobClass", "uses") } else { ("JobClasses", "use") };
        match users.as_slice() {
            [] => Answer::allowed(),
            all => {
                let why = format!("{noun} {} {verb} it: delete what uses it first", first_few(all));
                Answer::forbidden(&Subject::of(request), &why)
            }
        }
    }
}

/// New settings, or changed ones: those that did not change are not judged again.
fn judge<S: Settings>(request: &Request<'_>, object: &RawValue, old: Option<&RawValue>) -> Answer {
    if old.is_some_and(|old| Outline::of(object).same_text(&Outline::of(old))) {
        return Answer::allowed();
    }
    let spec = match serde_json::from_str::<Sent<S>>(object.get()) {
        Ok(Sent { spec }) => spec,
        Err(error) => return Answer::bad_request(format!("cannot read the {}: {error}", S::KIND)),
    };
    let held = old.and_then(|old| serde_json::from_str::<Sent<S>>(old.get()).ok());
    if held.is_some_and(|held| held.spec == spec) {
        return Answer::allowed();
    }
    match spec.errors().as_slice() {
        [] => Answer::allowed(),
        faults => Answer::invalid(&Subject::of(request), faults),
    }
}

impl<S: Settings> Review for ParametersValidation<S> {
    fn resource(&self) -> [&str; 3] {
        [GROUP, VERSION, S::RESOURCE]
    }

    fn review<'a>(&'a self, request: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        self.answer(request).boxed()
    }
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
