//! Events (spec J7): what a status write changed, for people who describe the object.
//!
//! They are told after the write has succeeded, once, as well as can be: what does not fit into its queue, or is refused
//! (a right that is missing, a namespace that goes), is dropped and not sent again. Nothing waits for them.
//!
//! Not kube's `Recorder`: it remembers every Event for six minutes to count repetitions, and searches through all of
//! them for each new one. A write is a transition here, so there is nothing to count.

use std::{fs, future::Future, sync::Arc};

use ayatori_crds::{Condition, names::GROUP};
use futures::{FutureExt, future::join_all};
use jiff::Timestamp;
use k8s_openapi::{
    api::events::v1::Event,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, Resource, api::PostParams};
use tokio::sync::mpsc;

use crate::call::bounded;

mod transitions;

/// Events that are sent at the same time; those of one object come one after the other.
const LANES: usize = 4;

/// Events that wait in each lane. One takes some milliseconds; more wait only where the API server is away.
const WAITING: usize = 256;

/// Where Events of what is cluster-wide are, as everywhere in Kubernetes.
const CLUSTER_WIDE: &str = "default";

/// Longest part of an object's name in that of its Event, in characters (ASCII). The server appends to it, and cuts.
const NAME_PART: usize = 200;

/// Tells Events. Copies share the lanes.
#[derive(Clone, Debug)]
pub struct Events {
    lanes: Arc<[mpsc::Sender<Event>]>,
    /// The pod's name, `reportingInstance`.
    instance: Arc<str>,
}

impl Events {
    /// The teller, and the task that sends what it is told; it ends once there is no teller any more.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (lanes, waiting): (Vec<_>, Vec<_>) = (0..LANES).map(|_| mpsc::channel(WAITING)).unzip();
        let sending = join_all(waiting.into_iter().map(move |waiting| send(client.clone(), waiting)));
        (Self { lanes: lanes.into(), instance: hostname().into() }, sending.map(drop))
    }

    /// Tells what is new in the conditions of `written`, as the API server answered it to our write; `before` are those
    /// that it replaced.
    pub fn tell<K>(&self, written: &K, before: &[Condition], after: &[Condition], now: Timestamp)
    where
        K: Resource<DynamicType = ()>,
    {
        let uid = written.meta().uid.as_deref().unwrap_or_default();
        let lane = uid.bytes().map(usize::from).sum::<usize>() % LANES;
        for told in transitions::between(before, after) {
            if self.lanes[lane].try_send(self.event(written, &told, now)).is_err() {
                tracing::debug!(reason = told.reason, "an Event is dropped, as too many wait");
            }
        }
    }

    fn event<K: Resource<DynamicType = ()>>(&self, of: &K, told: &transitions::Told<'_>, now: Timestamp) -> Event {
        let regarding = of.object_ref(&());
        let name: String = regarding.name.iter().flat_map(|name| name.chars()).take(NAME_PART).collect();
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: Some(regarding.namespace.clone().unwrap_or_else(|| CLUSTER_WIDE.to_owned())),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            type_: Some(told.type_.to_owned()),
            reason: Some(told.reason.to_owned()),
            action: Some(told.action.to_owned()),
            note: Some(told.note.to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some(format!("{GROUP}/ayatori")),
            reporting_instance: Some(self.instance.to_string()),
            ..Event::default()
        }
    }
}

/// That of a pod is its name.
fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("unknown").to_owned()
}

/// Sends one at a time, each once.
async fn send(client: Client, mut waiting: mpsc::Receiver<Event>) {
    let mut fails = false;
    while let Some(event) = waiting.recv().await {
        let namespace = event.metadata.namespace.as_deref().unwrap_or(CLUSTER_WIDE);
        let events = Api::<Event>::namespaced(client.clone(), namespace);
        match bounded(events.create(&PostParams::default(), &event)).await {
            Ok(_) => fails = false,
            // The first of several in a row says enough.
            Err(error) if fails => tracing::debug!(namespace, %error, "an Event is dropped"),
            Err(error) => {
                tracing::warn!(namespace, %error, "an Event is dropped; whatever it says is in the status too");
                fails = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use ayatori_crds::Job;
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn job(name: &str, reason: &str, message: &str) -> Job {
        let condition = json!({"type": "Succeeded", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
            "metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": "7"},
            "spec": {"task": {"image": "app:1"}}, "status": {"conditions": [condition]},
        }))
        .unwrap()
    }

    /// An API server that answers every request with this, and counts them.
    fn server(code: StatusCode) -> (Client, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let service = tower::service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            let status = json!({"kind": "Status", "code": code.as_u16(), "reason": "Forbidden", "message": "no"});
            let answer = Response::builder().status(code).body(Body::from(status.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(answer.unwrap()) }
        });
        (Client::new(service, "n"), asked)
    }

    #[tokio::test]
    async fn an_event_that_is_refused_is_sent_once_and_the_next_one_too() {
        for code in [StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::TOO_MANY_REQUESTS] {
            let (client, asked) = server(code);
            let (events, sending) = Events::new(client);
            for name in ["a", "b", "c"] {
                let job = job(name, "ProcessFailed", "");
                events.tell(&job, &[], job.conditions(), Timestamp::UNIX_EPOCH);
            }
            drop(events);
            sending.await;
            assert_eq!(asked.load(Ordering::SeqCst), 3, "{code}");
        }
    }

    #[tokio::test]
    async fn a_full_queue_blocks_nobody() {
        let (client, asked) = server(StatusCode::FORBIDDEN);
        let (events, sending) = Events::new(client);
        let job = job("a", "ProcessFailed", "");
        for _ in 0..WAITING * 2 {
            events.tell(&job, &[], job.conditions(), Timestamp::UNIX_EPOCH);
        }
        drop(events);
        sending.await;
        assert_eq!(asked.load(Ordering::SeqCst), WAITING);
    }

    #[tokio::test]
    async fn an_event_names_who_says_it_of_whom_and_repeats_the_condition() {
        let (client, _) = server(StatusCode::OK);
        let (events, _sending) = Events::new(client);
        let job = job(&"x".repeat(253), "ProcessFailed", "the task exited with code 3");
        let told = transitions::between(&[], job.conditions());
        let event = events.event(&job, &told[0], Timestamp::UNIX_EPOCH);
        let event: Value = serde_json::to_value(event).unwrap();
        for (path, expected) in [
            ("/type", "Warning"),
            ("/reason", "ProcessFailed"),
            ("/action", "Executing"),
            ("/note", "the task exited with code 3"),
            ("/metadata/namespace", "n"),
            ("/regarding/kind", "Job"),
            ("/regarding/uid", "u"),
            ("/reportingController", "execution.ayatori.ddupan.top/ayatori"),
        ] {
            assert_eq!(event.pointer(path), Some(&json!(expected)), "{path}");
        }
        assert!(event["metadata"]["generateName"].as_str().unwrap().len() < 253, "the server would refuse it");
        assert!(!event["reportingInstance"].as_str().unwrap().is_empty(), "the server asks for one");
    }
}
