//! What a class of the OpenSandbox adapter asks of a task (spec B2, G8).

use super::FieldError;
use crate::{OpenSandboxExecutionParametersSpec, job::TaskSpec};

/// The fault of a task without a command: in a sandbox the image's own entrypoint is overridden, so nothing would run.
#[must_use]
pub fn command_error(task: &TaskSpec, class_name: &str) -> Option<FieldError> {
    task.command.is_empty().then(|| {
        let detail = format!(
            "JobClass {class_name:?} runs tasks in sandboxes, where the image's own entrypoint is not used: say what to run"
        );
        FieldError::required("spec.task.command", detail)
    })
}

/// Whether anything of the task is for the settings to allow: only then they need to be known.
#[must_use]
pub fn asks_for_permission(task: &TaskSpec) -> bool {
    !task.image_pull_secrets.is_empty() || secret_variables(task).next().is_some()
}

/// Every part of a task that the class's settings do not allow: values of Secrets and registry credentials would leave
/// the cluster.
#[must_use]
pub fn permission_errors(
    task: &TaskSpec,
    class_name: &str,
    settings: &OpenSandboxExecutionParametersSpec,
) -> Vec<FieldError> {
    let mut errors = vec![];
    if settings.allow_image_auth != Some(true) && !task.image_pull_secrets.is_empty() {
        let detail = format!(
            "JobClass {class_name:?} passes no registry credentials on: use an image that needs none, or another class"
        );
        errors.push(FieldError::forbidden("spec.task.imagePullSecrets", detail));
    }
    if settings.allow_secret_env != Some(true) {
        errors.extend(secret_variables(task).map(|index| {
            let detail = format!(
                "JobClass {class_name:?} passes no values of Secrets on: use a value, a ConfigMap, or another class"
            );
            FieldError::forbidden(format!("spec.task.env[{index}].valueFrom.secretKeyRef"), detail)
        }));
    }
    errors
}

/// The variables that take their value from a Secret, by their place. An optional one counts: the Secret may be there.
fn secret_variables(task: &TaskSpec) -> impl Iterator<Item = usize> {
    let is_secret = |variable: &crate::job::EnvVar| {
        variable.value_from.as_ref().is_some_and(|source| source.secret_key_ref.is_some())
    };
    task.env.iter().enumerate().filter(move |(_, variable)| is_secret(variable)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(secret_env: Option<bool>, image_auth: Option<bool>) -> OpenSandboxExecutionParametersSpec {
        OpenSandboxExecutionParametersSpec {
            allow_secret_env: secret_env,
            allow_image_auth: image_auth,
            ..OpenSandboxExecutionParametersSpec::default()
        }
    }

    fn task() -> TaskSpec {
        serde_json::from_value(json!({
            "image": "app:1", "command": ["run"], "imagePullSecrets": [{"name": "registry"}],
            "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}
            ]
        }))
        .unwrap()
    }

    fn fields(settings: &OpenSandboxExecutionParametersSpec) -> Vec<String> {
        permission_errors(&task(), "boxed", settings).into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn what_is_not_allowed_is_forbidden_and_silence_allows_nothing() {
        let (credentials, secret) = ("spec.task.imagePullSecrets", "spec.task.env[1].valueFrom.secretKeyRef");
        assert_eq!(fields(&settings(None, None)), [credentials, secret]);
        assert_eq!(fields(&settings(Some(false), Some(true))), [secret]);
        assert_eq!(fields(&settings(Some(true), Some(false))), [credentials]);
        assert_eq!(fields(&settings(Some(true), Some(true))), [""; 0]);
    }

    #[test]
    fn only_secrets_and_credentials_ask_for_permission() {
        assert!(asks_for_permission(&task()));
        let plain = TaskSpec { env: task().env[..1].to_vec(), image_pull_secrets: vec![], ..task() };
        assert!(!asks_for_permission(&plain));
        assert_eq!(permission_errors(&plain, "boxed", &settings(None, None)), []);
    }

    #[test]
    fn a_command_must_be_given() {
        assert_eq!(command_error(&task(), "boxed"), None);
        let without = TaskSpec { command: vec![], args: vec!["x".into()], ..task() };
        assert_eq!(command_error(&without, "boxed").unwrap().field, "spec.task.command");
    }
}
