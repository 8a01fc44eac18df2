//! What the API server says was done, in a test's namespace.

use std::{collections::HashMap, fs, path::PathBuf};

use crate::Cluster;
use ayatori_crds::names::JOB_UID_LABEL;
use serde_json::Value;

/// The audit log, as far as a namespace goes.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    /// None: all of them.
    namespace: Option<String>,
}

/// A request that was carried out.
#[derive(Debug, Clone)]
pub struct Write {
    /// `create`, `update`, `patch` or `delete`.
    pub verb: String,
    /// The object's name, also where the server made it.
    pub name: String,
    /// The body as it was sent.
    pub sent: Value,
    /// The object as it was answered.
    pub answered: Value,
    /// When it came, and when it was answered: microseconds, in a form that sorts.
    pub began: String,
    /// When it was answered, in the same form.
    pub ended: String,
}

impl Audit {
    /// The part of the log that speaks of a namespace.
    pub fn of(cluster: &Cluster, namespace: &str) -> Self {
        Self { log: cluster.audit_log(), namespace: Some(namespace.to_owned()) }
    }

    /// All of the log.
    pub fn everywhere(cluster: &Cluster) -> Self {
        Self { log: cluster.audit_log(), namespace: None }
    }

    /// The successful writes to a resource: `batch/jobs`, `execution.ayatori.ddupan.top/jobs/status`, `/pods`; in the
    /// order of their answers.
    pub fn writes(&self, resource: &str) -> anyhow::Result<Vec<Write>> {
        let text = fs::read_to_string(&self.log)?;
        // Of a long log hardly a line is about this namespace, and to read JSON takes long.
        let lines = text.lines().filter(|line| self.namespace.as_ref().is_none_or(|of| line.contains(of.as_str())));
        // The last line may be half written; a look that finds too little is repeated.
        let events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let wanted = events.filter(|event| {
            event["stage"] == "ResponseComplete"
                && self.namespace.as_ref().is_none_or(|of| event["objectRef"]["namespace"] == of.as_str())
                && event["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300)
                && ["create", "update", "patch", "delete"].iter().any(|verb| event["verb"] == *verb)
                && resource_of(event) == resource
        });
        Ok(wanted.map(|event| write(&event)).collect())
    }

    /// The pods that were ever made, by Job UID.
    pub fn pods_made(&self) -> anyhow::Result<HashMap<String, usize>> {
        let mut made = HashMap::new();
        for pod in self.writes("/pods")?.iter().filter(|write| write.verb == "create") {
            let uid = pod.answered["metadata"]["labels"][JOB_UID_LABEL].as_str().unwrap_or("none");
            *made.entry(uid.to_owned()).or_default() += 1;
        }
        Ok(made)
    }
}

fn resource_of(event: &Value) -> String {
    let reference = &event["objectRef"];
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let sub = text("subresource");
    let slash = if sub.is_empty() { "" } else { "/" };
    format!("{}/{}{slash}{sub}", text("apiGroup"), text("resource"))
}

fn write(event: &Value) -> Write {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answered = event["responseObject"].clone();
    let named = [text(&event["objectRef"]["name"]), text(&answered["metadata"]["name"])];
    Write {
        verb: text(&event["verb"]),
        name: named.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        sent: event["requestObject"].clone(),
        answered,
        began: text(&event["requestReceivedTimestamp"]),
        ended: text(&event["stageTimestamp"]),
    }
}
