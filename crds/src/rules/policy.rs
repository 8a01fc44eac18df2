//! What the platform asks of every Job, whatever its class (spec B2, section 3). It is configuration of the process, and
//! the same for webhooks and controllers.

use serde::Deserialize;

use super::{FieldError, image};
use crate::{JobSpec, job::TaskSpec};

/// The platform's policy. Without configuration it asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Policy {
    /// How long finished Jobs are kept.
    pub ttl: TtlPolicy,
    /// Which images may run.
    pub image: ImagePolicy,
}

/// Bounds of `spec.ttlSecondsAfterFinished`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TtlPolicy {
    /// Seconds that are written into a Job that names none.
    pub default: Option<i32>,
    /// The most seconds that a Job may name.
    pub maximum: Option<i32>,
    /// Whether a Job must have a TTL.
    pub required: bool,
}

/// Bounds of `spec.task.image`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ImagePolicy {
    /// Whether an image must be named by its digest.
    pub require_digest: bool,
}

/// A policy that no Job could meet, or that contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A number of seconds below zero.
    #[error("ttl.{field} is {seconds}: it must be 0 or more seconds")]
    Negative {
        /// `default` or `maximum`.
        field: &'static str,
        /// The number given.
        seconds: i32,
    },
    /// Every Job that gets the default would be refused.
    #[error("ttl.default is {default}: it must be at most {maximum}, which ttl.maximum allows")]
    DefaultOverMaximum {
        /// The default given.
        default: i32,
        /// The maximum given.
        maximum: i32,
    },
}

impl Policy {
    /// Whether the policy can be met at all.
    ///
    /// # Errors
    /// The first part that cannot.
    pub fn check(&self) -> Result<(), PolicyError> {
        let TtlPolicy { default, maximum, required: _ } = self.ttl;
        for (field, given) in [("default", default), ("maximum", maximum)] {
            if let Some(seconds) = given.filter(|seconds| *seconds < 0) {
                return Err(PolicyError::Negative { field, seconds });
            }
        }
        match (default, maximum) {
            (Some(default), Some(maximum)) if default > maximum => {
                Err(PolicyError::DefaultOverMaximum { default, maximum })
            }
            _ => Ok(()),
        }
    }

    /// Every fault of a Job under this policy.
    #[must_use]
    pub fn errors(&self, spec: &JobSpec) -> Vec<FieldError> {
        self.image_error(&spec.task).into_iter().chain(self.ttl_error(spec.ttl_seconds_after_finished)).collect()
    }

    /// The fault of a TTL: over the maximum, or absent where one is required.
    #[must_use]
    pub fn ttl_error(&self, ttl: Option<i32>) -> Option<FieldError> {
        const FIELD: &str = "spec.ttlSecondsAfterFinished";
        let maximum = self.ttl.maximum;
        match ttl {
            None if self.ttl.required => {
                let bound = maximum.map(|maximum| format!(" of at most {maximum}")).unwrap_or_default();
                Some(FieldError::required(FIELD, format!("the platform asks every Job for a TTL{bound}, in seconds")))
            }
            None => None,
            Some(ttl) => maximum.filter(|maximum| ttl > *maximum).map(|maximum| {
                FieldError::invalid(
                    FIELD,
                    ttl.to_string(),
                    format!("must be at most {maximum}, the platform's maximum"),
                )
            }),
        }
    }

    /// The fault of an image that is named by its tag where a digest is asked for. One that is no reference at all has a
    /// fault of its own.
    fn image_error(&self, task: &TaskSpec) -> Option<FieldError> {
        (self.image.require_digest && image::lacks_digest(&task.image)).then(|| {
            FieldError::invalid(
                "spec.task.image",
                task.image.as_str(),
                "must name a digest, which the platform asks for, such as registry.example/team/app@sha256:…",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(default: Option<i32>, maximum: Option<i32>, required: bool) -> Policy {
        Policy { ttl: TtlPolicy { default, maximum, required }, image: ImagePolicy::default() }
    }

    fn told(error: Option<FieldError>) -> Option<String> {
        error.map(|error| error.to_string())
    }

    #[test]
    fn without_configuration_nothing_is_asked_for() {
        let policy = Policy::default();
        assert_eq!(policy.check(), Ok(()));
        assert_eq!((policy.ttl_error(None), policy.ttl_error(Some(i32::MAX))), (None, None));
        let task = TaskSpec { image: "app:1".into(), ..TaskSpec::default() };
        assert_eq!(policy.image_error(&task), None);
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_told_with_its_place() {
        for (policy, told) in [
            (policy(Some(-1), None, false), "ttl.default is -1: it must be 0 or more seconds"),
            (policy(None, Some(-5), false), "ttl.maximum is -5: it must be 0 or more seconds"),
            (policy(Some(61), Some(60), false), "ttl.default is 61: it must be at most 60, which ttl.maximum allows"),
        ] {
            assert_eq!(policy.check().unwrap_err().to_string(), told);
        }
        assert_eq!(policy(Some(60), Some(60), true).check(), Ok(()));
        assert_eq!(policy(Some(0), Some(0), true).check(), Ok(()));
    }

    #[test]
    fn a_ttl_is_bounded_and_may_be_asked_for() {
        let bounded = policy(None, Some(60), false);
        assert_eq!((bounded.ttl_error(None), bounded.ttl_error(Some(60))), (None, None));
        assert_eq!(
            told(bounded.ttl_error(Some(61))).as_deref(),
            Some("spec.ttlSecondsAfterFinished: Invalid value: \"61\": must be at most 60, the platform's maximum")
        );
        assert_eq!(
            told(policy(None, Some(60), true).ttl_error(None)).as_deref(),
            Some(
                "spec.ttlSecondsAfterFinished: Required value: the platform asks every Job for a TTL of at most 60, in \
                 seconds"
            )
        );
        assert!(policy(None, None, true).ttl_error(None).is_some());
        assert_eq!(policy(None, None, true).ttl_error(Some(0)), None);
    }

    #[test]
    fn a_digest_may_be_asked_for() {
        let policy = Policy { image: ImagePolicy { require_digest: true }, ..Policy::default() };
        let error = |image: &str| policy.image_error(&TaskSpec { image: image.into(), ..TaskSpec::default() });
        let digest = format!("registry.example/app@sha256:{}", "a".repeat(64));
        assert_eq!(error(&digest), None);
        assert_eq!(error(&format!("registry.example/app:1@sha256:{}", "a".repeat(64))), None);
        assert_eq!(error("app:1").map(|error| error.field).as_deref(), Some("spec.task.image"));
        assert_eq!(error("No Image"), None, "that is a fault of its own");
    }
}
