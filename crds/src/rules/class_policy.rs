//! Whether a JobClass makes sense by itself (spec B8, H1).

use super::{FieldError, namespace, resources};
use crate::{
    JobClassSpec,
    names::{CONTROLLER_DOMAIN, GROUP, KUBERNETES_CONTROLLER, OPENSANDBOX_CONTROLLER},
};

/// Whose class it is, by its `controllerName`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// The adapter that runs native Jobs.
    Kubernetes,
    /// The adapter that runs sandboxes.
    OpenSandbox,
    /// Under our domain, but no adapter that this program knows.
    Unsupported,
    /// Under another domain: never touched.
    Foreign,
}

impl Controller {
    /// Reads a `controllerName`.
    #[must_use]
    pub fn of(controller_name: &str) -> Self {
        match controller_name {
            KUBERNETES_CONTROLLER => Self::Kubernetes,
            OPENSANDBOX_CONTROLLER => Self::OpenSandbox,
            name if name.starts_with(CONTROLLER_DOMAIN) => Self::Unsupported,
            _ => Self::Foreign,
        }
    }

    /// The kind of parameters that the adapter takes; None where it is not ours to say.
    #[must_use]
    pub const fn parameters_kind(self) -> Option<&'static str> {
        match self {
            Self::Kubernetes => Some("KubernetesExecutionParameters"),
            Self::OpenSandbox => Some("OpenSandboxExecutionParameters"),
            Self::Unsupported | Self::Foreign => None,
        }
    }
}

/// The fault of `parametersRef`, if the adapter does not take what it names.
#[must_use]
pub fn parameters_reference_error(class: &JobClassSpec) -> Option<FieldError> {
    let kind = Controller::of(&class.controller_name).parameters_kind()?;
    let reference = &class.parameters_ref;
    if reference.group != GROUP {
        Some(FieldError::invalid("spec.parametersRef.group", reference.group.as_str(), format!("must be {GROUP}")))
    } else if reference.kind != kind {
        let detail = format!("must be {kind}, which {} takes", class.controller_name);
        Some(FieldError::invalid("spec.parametersRef.kind", reference.kind.as_str(), detail))
    } else if reference.name.is_empty() {
        Some(FieldError::required("spec.parametersRef.name", format!("must name a {kind}")))
    } else {
        None
    }
}

/// Every fault of a class's spec. A class under another domain is not ours to judge.
#[must_use]
pub fn errors(class: &JobClassSpec) -> Vec<FieldError> {
    if Controller::of(&class.controller_name) == Controller::Foreign {
        return vec![];
    }
    parameters_reference_error(class)
        .into_iter()
        .chain(class.allowed_namespaces.iter().flat_map(namespace::selector_errors))
        .chain(class.resources.iter().flat_map(resources::policy_errors))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_class::ParametersReference;

    fn class(controller: &str, group: &str, kind: &str, name: &str) -> JobClassSpec {
        JobClassSpec {
            controller_name: controller.into(),
            parameters_ref: ParametersReference {
                group: group.into(),
                kind: kind.into(),
                name: name.into(),
                uid: None,
            },
            ..JobClassSpec::default()
        }
    }

    #[test]
    fn parameters_of_the_wrong_kind_are_a_fault_only_of_our_adapters() {
        let field = |class: &JobClassSpec| errors(class).first().map(|error| error.field.clone());
        assert_eq!(field(&class(KUBERNETES_CONTROLLER, GROUP, "KubernetesExecutionParameters", "p")), None);
        let wrong = class(KUBERNETES_CONTROLLER, GROUP, "OpenSandboxExecutionParameters", "p");
        assert_eq!(field(&wrong).as_deref(), Some("spec.parametersRef.kind"));
        let wrong = class(OPENSANDBOX_CONTROLLER, "", "ConfigMap", "p");
        assert_eq!(field(&wrong).as_deref(), Some("spec.parametersRef.group"));
        let wrong = class(KUBERNETES_CONTROLLER, GROUP, "KubernetesExecutionParameters", "");
        assert_eq!(field(&wrong).as_deref(), Some("spec.parametersRef.name"));
        assert_eq!(field(&class("other.example/x", "", "Anything", "")), None);
        assert_eq!(field(&class("execution.ayatori.ddupan.top/later", "", "Anything", "")), None);
    }

    #[test]
    fn the_owner_of_a_class_follows_from_its_controller_name() {
        assert_eq!(Controller::of(KUBERNETES_CONTROLLER), Controller::Kubernetes);
        assert_eq!(Controller::of("execution.ayatori.ddupan.top/later"), Controller::Unsupported);
        assert_eq!(Controller::of("execution.ayatori.ddupan.top.evil/kubernetes"), Controller::Foreign);
    }
}
