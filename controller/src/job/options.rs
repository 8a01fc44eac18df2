//! What an administrator has set for the Job controller.

use ayatori_crds::rules::Policy;

use super::patience::Patience;

/// The settings of the process that decisions on Jobs rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long is waited for what may still come.
    pub patience: Patience,
    /// What the platform asks of every Job.
    pub policy: Policy,
    /// Whether Secrets and ConfigMaps are looked at before an acceptance (spec C3).
    pub reference_checks: bool,
}
