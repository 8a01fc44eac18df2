//! Why a released native Job has no pod (spec E5). Its status says nothing of pods that were refused: the words are in
//! Events only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{Api, Client, Resource, api::ListParams};
use serde::{Deserialize, Serialize};

use super::words::cut;
use crate::call::{CallError, bounded};

/// Events that one look reads at most: refusals of one cause are counted in one Event.
const EVENT_LIMIT: u32 = 16;

/// An Event with only what is read of it.
#[derive(Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = k8s_openapi::api::core::v1::Event)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    metadata: ObjectMeta,
    #[serde(default)]
    message: String,
    last_timestamp: Option<Time>,
}

/// What was last said of a pod that was refused; empty where nothing was.
pub(super) async fn why(client: &Client, namespace: &str, native: &str, uid: &str) -> Result<String, CallError> {
    let events = Api::<Refusal>::namespaced(client.clone(), namespace);
    let fields = format!("involvedObject.uid={uid},reason=FailedCreate");
    let selected = ListParams::default().fields(&fields).limit(EVENT_LIMIT);
    Ok(told(&bounded(events.list(&selected)).await?.items, native))
}

/// The newest refusal in words that do not change from one pod to the next.
fn told(refusals: &[Refusal], native: &str) -> String {
    let when = |refusal: &Refusal| {
        let seen = refusal.last_timestamp.as_ref().or(refusal.metadata.creation_timestamp.as_ref());
        seen.map(|time| time.0)
    };
    let Some(newest) = refusals.iter().max_by_key(|refusal| when(refusal)) else { return String::new() };
    let message = newest.message.strip_prefix("Error creating: ").unwrap_or(&newest.message);
    cut(&format!("its pod is refused: {}", without_pod_name(message, native)))
}

/// Each try has a pod name of its own, with five random characters.
fn without_pod_name(message: &str, native: &str) -> String {
    let Some((before, rest)) = message.split_once(&format!("\"{native}-")) else { return message.to_owned() };
    let after = rest.split_once('"').map_or("", |(_, after)| after);
    format!("{}{}", before.trim_end(), after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(message: &str, last: &str) -> Refusal {
        serde_json::from_value(json!({"metadata": {}, "message": message, "lastTimestamp": last})).unwrap()
    }

    #[test]
    fn the_newest_refusal_is_told_without_the_random_name_of_the_pod() {
        let old = refusal("Error creating: x", "2026-01-01T00:00:00Z");
        let quota = |name: &str, at| {
            let message = format!(
                "Error creating: pods \"ay-u-{name}\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
            );
            refusal(&message, at)
        };
        let first = told(&[quota("abcde", "2026-01-01T00:00:09Z"), old.clone()], "ay-u");
        let expected = "its pod is refused: pods is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0";
        assert_eq!(first, expected);
        assert_eq!(told(&[old, quota("vwxyz", "2026-01-01T00:01:09Z")], "ay-u"), expected, "no write each time");
        assert_eq!(told(&[], "ay-u"), "");
    }
}
