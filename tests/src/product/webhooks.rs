//! The webhook configurations, while they are away: as after somebody deleted them, or with `failurePolicy: Ignore` and
//! a dead webhook.

use anyhow::Context;
use serde_json::Value;

use super::kubectl::Kubectl;

/// What was taken away.
#[derive(Debug)]
pub struct Webhooks(String);

const KINDS: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";

impl Webhooks {
    /// Deletes them. The API server goes on asking them for a moment.
    pub fn remove(kubectl: &Kubectl) -> anyhow::Result<Self> {
        let list = kubectl.ok(&["get", KINDS, "-o", "json"])?.stdout;
        let mut list: Value = serde_json::from_str(&list)?;
        for item in list["items"].as_array_mut().into_iter().flatten() {
            let metadata = item["metadata"].as_object_mut().context("an object has metadata")?;
            metadata.retain(|key, _| key == "name");
        }
        kubectl.ok(&["delete", KINDS, "--all"])?;
        Ok(Self(list.to_string()))
    }

    /// Creates them again, with the certificates that they had.
    pub fn restore(&self, kubectl: &Kubectl) -> anyhow::Result<()> {
        kubectl.ok_with(&["create", "-f", "-"], &self.0).map(drop)
    }
}
