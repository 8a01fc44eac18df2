//! What the controllers tell of their work, besides the status.

use crate::{events::Events, metrics::Metrics};

/// Both are told of what was written, never asked.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// For people, one a transition.
    pub events: Events,
    /// For alerts.
    pub metrics: Metrics,
}
