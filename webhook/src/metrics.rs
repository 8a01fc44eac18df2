//! What the admission server counts (spec J5). Nothing here serves it: whoever owns a registry registers it there.
//!
//! Labels are bounded: paths, operations, codes and reasons are fixed sets, and of a field only what our own rules name.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::endpoint::Refusal;
use crate::{Answer, Operation};

/// Upper bounds of the time to an answer, in seconds. From fresh stores it takes under a millisecond; the API server asks
/// for 10 s, and none gets more than 27 s.
const ANSWER_SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];

/// The metrics of an admission server. Copies count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    requests: Family<Verdict, Counter>,
    rejections: Family<Rejection, Counter>,
    durations: Family<AtPath, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    panics: Counter,
    unreviewed: Family<Unreviewed, Counter>,
    pub(crate) connections: Connections,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verdict {
    path: &'static str,
    operation: &'static str,
    code: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Rejection {
    path: &'static str,
    reason: String,
    field: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AtPath {
    path: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Unreviewed {
    reason: &'static str,
}

/// The metrics of a listener.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections {
    open: Gauge,
    failed_handshakes: Counter,
}

/// One more in a gauge for as long as it lives, however its end comes.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn in_gauge(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let unreviewed = Family::<Unreviewed, Counter>::default();
        for reason in Refusal::REASONS {
            drop(unreviewed.get_or_create(&Unreviewed { reason }));
        }
        Self {
            requests: Family::default(),
            rejections: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(ANSWER_SECONDS)),
            in_flight: Gauge::default(),
            panics: Counter::default(),
            unreviewed,
            connections: Connections::default(),
        }
    }
}

impl Metrics {
    /// Names them in `registry`, which puts its prefix before.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "admission_requests",
            "Reviews that were answered, dry runs included, by path, operation and the code of the verdict (200: allowed)",
            self.requests.clone(),
        );
        registry.register(
            "admission_rejections",
            "Faults for which requests were refused, by path, reason and field; a request with several counts for each",
            self.rejections.clone(),
        );
        registry.register(
            "admission_duration_seconds",
            "Time from the head of a request to the answer of its review",
            self.durations.clone(),
        );
        registry.register(
            "admission_requests_in_flight",
            "Requests whose answer is not there yet",
            self.in_flight.clone(),
        );
        registry.register(
            "admission_panics",
            "Reviews that ended in a panic: a fault of ayatori's own",
            self.panics.clone(),
        );
        registry.register(
            "admission_unreviewed_requests",
            "Requests that got a plain HTTP error in place of a review, by reason",
            self.unreviewed.clone(),
        );
        registry.register("webhook_connections", "Open connections of the webhook", self.connections.open.clone());
        registry.register(
            "webhook_failed_handshakes",
            "Connections of the webhook that ended before their TLS handshake did",
            self.connections.failed_handshakes.clone(),
        );
    }

    /// A path is served: its times are there from the start, as a rate needs a zero to begin with.
    pub(crate) fn serves(&self, path: &'static str) {
        drop(self.durations.get_or_create(&AtPath { path }));
    }

    /// A review was answered. The operation is not known of a request that could not be read.
    pub(crate) fn answered(&self, path: &'static str, operation: Option<Operation>, answer: &Answer) {
        let operation = operation.map(Operation::as_str).unwrap_or_default();
        let code = match answer {
            Answer::Allowed { .. } => 200,
            Answer::Refused(status) => {
                for (reason, field) in faults(status) {
                    self.rejections.get_or_create(&Rejection { path, reason, field }).inc();
                }
                status.code.unwrap_or_default()
            }
        };
        self.requests.get_or_create(&Verdict { path, operation, code }).inc();
    }

    /// An answer took so long.
    pub(crate) fn took(&self, path: &'static str, time: Duration) {
        self.durations.get_or_create(&AtPath { path }).observe(time.as_secs_f64());
    }

    /// A request is in flight until the answer of this call is dropped.
    pub(crate) fn in_flight(&self) -> Counted {
        Counted::in_gauge(&self.in_flight)
    }

    /// A review panicked.
    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    /// How many reviews have panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }

    /// A request got no review.
    pub(crate) fn unreviewed(&self, reason: &'static str) {
        self.unreviewed.get_or_create(&Unreviewed { reason }).inc();
    }
}

impl Connections {
    /// A connection is open until the answer of this call is dropped.
    pub(crate) fn open(&self) -> Counted {
        Counted::in_gauge(&self.open)
    }

    /// A handshake failed, or did not end in time.
    pub(crate) fn handshake_failed(&self) {
        self.failed_handshakes.inc();
    }
}

/// Reason and field of each fault; of a refusal that names none, its own reason and no field.
fn faults(status: &Status) -> Vec<(String, String)> {
    let causes = status.details.as_ref().and_then(|details| details.causes.as_deref()).unwrap_or_default();
    if causes.is_empty() {
        return vec![(status.reason.clone().unwrap_or_default(), String::new())];
    }
    let fault = |cause: &StatusCause| {
        (cause.reason.clone().unwrap_or_default(), without_keys(cause.field.as_deref().unwrap_or_default()).to_owned())
    };
    causes.iter().map(fault).collect()
}

/// A field path up to the first index or key: that of a label is whatever the sender chose.
fn without_keys(field: &str) -> &str {
    field.split('[').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ayatori_crds::rules::FieldError;
    use prometheus_client::encoding::prometheus_text::encode;

    use super::*;
    use crate::answer::Subject;

    /// The lines of the metrics whose name begins so, sorted.
    fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    fn subject() -> Subject {
        let word = |word: &str| word.to_owned();
        Subject { group: word("g"), kind: word("Job"), resource: word("jobs"), name: word("secret-name") }
    }

    #[test]
    fn a_verdict_is_counted_by_path_operation_and_code() {
        let metrics = Metrics::default();
        metrics.answered("/p", Some(Operation::Create), &Answer::allowed());
        metrics.answered("/p", Some(Operation::Create), &Answer::allowed());
        metrics.answered("/p", Some(Operation::Update), &Answer::forbidden(&subject(), "no"));
        metrics.answered("/p", None, &Answer::bad_request("what?"));
        assert_eq!(
            lines(&metrics, "admission_requests_total"),
            [
                r#"admission_requests_total{path="/p",operation="",code="400"} 1"#,
                r#"admission_requests_total{path="/p",operation="CREATE",code="200"} 2"#,
                r#"admission_requests_total{path="/p",operation="UPDATE",code="403"} 1"#,
            ]
        );
    }

    #[test]
    fn each_fault_is_counted_by_its_field_without_what_the_sender_chose() {
        let metrics = Metrics::default();
        let faults = [
            FieldError::required("spec.task.env[7].name", "give one"),
            FieldError::required("spec.task.env[8].name", "give one"),
            FieldError::invalid("spec.scheduling.nodeSelector[a key of mine]", "x", "no"),
        ];
        metrics.answered("/p", Some(Operation::Create), &Answer::invalid(&subject(), &faults));
        metrics.answered("/p", Some(Operation::Create), &Answer::forbidden(&subject(), "not from here"));
        metrics.answered("/p", Some(Operation::Create), &Answer::timeout("late"));
        assert_eq!(
            lines(&metrics, "admission_rejections_total"),
            [
                r#"admission_rejections_total{path="/p",reason="FieldValueInvalid",field="spec.scheduling.nodeSelector"} 1"#,
                r#"admission_rejections_total{path="/p",reason="FieldValueRequired",field="spec.task.env"} 2"#,
                r#"admission_rejections_total{path="/p",reason="Forbidden",field=""} 1"#,
                r#"admission_rejections_total{path="/p",reason="Timeout",field=""} 1"#,
            ]
        );
        assert!(!format!("{metrics:?}").contains("secret-name"));
    }

    #[test]
    fn what_is_held_is_counted_until_it_is_dropped() {
        let metrics = Metrics::default();
        let (first, second) = (metrics.in_flight(), metrics.in_flight());
        assert_eq!(lines(&metrics, "admission_requests_in_flight"), ["admission_requests_in_flight 2"]);
        drop((first, second));
        assert_eq!(lines(&metrics, "admission_requests_in_flight"), ["admission_requests_in_flight 0"]);
    }
}
