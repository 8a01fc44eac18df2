//! Rules of a task that hold whatever its class says (spec B2).

use super::{FieldError, image};
use crate::{job::TaskSpec, names::RESERVED_ENV_PREFIX};

/// Every fault of the task: its image reference, and names of variables that are the platform's own.
#[must_use]
pub fn errors(task: &TaskSpec) -> Vec<FieldError> {
    let reserved = task.env.iter().enumerate().filter(|(_, variable)| variable.name.starts_with(RESERVED_ENV_PREFIX));
    image::error("spec.task.image", &task.image)
        .into_iter()
        .chain(reserved.map(|(index, variable)| {
            FieldError::invalid(
                format!("spec.task.env[{index}].name"),
                variable.name.as_str(),
                format!("must not begin with {RESERVED_ENV_PREFIX}, which is kept for the platform"),
            )
        }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::EnvVar;

    #[test]
    fn every_fault_is_told_with_its_place() {
        let variable = |name: &str| EnvVar { name: name.into(), value: Some(String::new()), value_from: None };
        let task = TaskSpec {
            image: "No Image".into(),
            env: vec![variable("HOME"), variable("AYATORI_JOB_UID"), variable("ayatori_ok")],
            ..TaskSpec::default()
        };
        let fields: Vec<String> = errors(&task).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["spec.task.image", "spec.task.env[1].name"]);
        assert_eq!(errors(&TaskSpec { image: "app:1".into(), ..TaskSpec::default() }), []);
    }
}
