//! What the controllers count (spec J5). Nothing here serves it: whoever owns a registry registers it there.
//!
//! Labels are bounded: fixed words, and `job_class`, the class that a Job was accepted with: an administrator made it. The
//! name that a Job asks for is its sender's choice, and is no label.

use std::time::Duration;

use ayatori_crds::Job;
use jiff::SignedDuration;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use crate::{call::CallError, job::status::becomes_duplicated};

mod doubts;
mod from_stores;

pub use from_stores::FromStores;

/// Upper bounds of the time to a start, in seconds: of whole ones, as times of a Job are. It takes 1 to 3 s where the image
/// is there; a start that fails may be waited for for 15 min (spec E1).
const START_SECONDS: [f64; 12] = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0];

/// Upper bounds of the lag of a TTL, in seconds. It is a few milliseconds while the controller is there; after a time
/// without one it is as long as that.
const LAG_SECONDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 30.0, 300.0, 3600.0];

/// The metrics of the controllers. Copies count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    reconciles: Family<Reconcile, Counter>,
    starts: Family<OfClass, Histogram, fn() -> Histogram>,
    finished: Family<Finished, Counter>,
    duplicates: Counter,
    ttl_lag: Histogram,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconcile {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfClass {
    job_class: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Finished {
    job_class: String,
    reason: String,
}

/// Counts the visits of one controller.
#[derive(Debug, Clone)]
pub struct Reconciles {
    controller: &'static str,
    counted: Family<Reconcile, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            starts: Family::new_with_constructor(|| Histogram::new(START_SECONDS)),
            finished: Family::default(),
            duplicates: Counter::default(),
            ttl_lag: Histogram::new(LAG_SECONDS),
        }
    }
}

impl Metrics {
    /// Names them in `registry`, which puts its prefix before.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "reconciles",
            "Looks of a controller at an object, by outcome: success, or the kind of the failure",
            self.reconciles.clone(),
        );
        registry.register(
            "job_time_to_start_seconds",
            "Time from the creation of a Job to its startTime, in whole seconds",
            self.starts.clone(),
        );
        registry.register("jobs_finished", "Jobs that came to their end, by the reason of it", self.finished.clone());
        registry.register(
            "duplicate_executions",
            "Jobs for which more than one process was seen",
            self.duplicates.clone(),
        );
        registry.register(
            "ttl_lag_seconds",
            "Time from the expiry of a TTL to the deletion of the Job",
            self.ttl_lag.clone(),
        );
    }

    /// Counts the visits of the controller of that name.
    #[must_use]
    pub fn reconciles(&self, controller: &'static str) -> Reconciles {
        Reconciles { controller, counted: self.reconciles.clone() }
    }

    /// We wrote the status of a Job: it was so `before`, and the API server answered that it is so `after`. As the write
    /// names the resourceVersion that was seen, what differs is our doing: with several replicas each start and end is
    /// counted by one.
    pub fn job_written(&self, before: &Job, after: &Job) {
        let (was, is) = (before.status.as_ref(), after.status.as_ref());
        let job_class = class_of(after).to_owned();
        let start = is.and_then(|status| status.start_time.as_ref());
        if let (Some(start), Some(created)) = (start, &after.metadata.creation_timestamp)
            && was.is_none_or(|status| status.start_time.is_none())
        {
            let waited = Duration::try_from(start.0.duration_since(created.0)).unwrap_or_default();
            self.starts.get_or_create(&OfClass { job_class: job_class.clone() }).observe(waited.as_secs_f64());
        }
        if is.is_some_and(|status| status.completion_time.is_some())
            && was.is_none_or(|status| status.completion_time.is_none())
        {
            let reason = is.and_then(|status| status.result.as_ref()?.reason.clone()).unwrap_or_default();
            self.finished.get_or_create(&Finished { job_class, reason }).inc();
        }
        if becomes_duplicated(before, after) {
            self.duplicates.inc();
        }
    }

    /// A Job was deleted so long after its TTL was over.
    pub fn deleted_by_ttl(&self, lag: SignedDuration) {
        self.ttl_lag.observe(Duration::try_from(lag).unwrap_or_default().as_secs_f64());
    }
}

impl Reconciles {
    /// A visit ended so.
    pub fn count<T>(&self, visited: &Result<T, CallError>) {
        let outcome = visited.as_ref().err().map_or("success", CallError::word);
        self.counted.get_or_create(&Reconcile { controller: self.controller, outcome }).inc();
    }
}

/// The class that a Job was accepted with; empty before.
fn class_of(job: &Job) -> &str {
    let resolved = job.status.as_ref().and_then(|status| status.resolved_job_class.as_ref());
    resolved.map_or("", |class| class.name.as_str())
}

#[cfg(test)]
pub(crate) mod testing {
    use prometheus_client::{encoding::prometheus_text::encode, registry::Registry};

    /// The samples of what is registered, sorted.
    pub(crate) fn samples(register: impl FnOnce(&mut Registry)) -> Vec<String> {
        let mut registry = Registry::default();
        register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        samples.sort_unstable();
        samples
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{testing::samples, *};

    fn job(status: Value) -> Job {
        serde_json::from_value(json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
            "metadata": {"name": "secret-name", "namespace": "secret-namespace", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"task": {"image": "app:1"}, "jobClassName": "asked-for"}, "status": status,
        }))
        .unwrap()
    }

    /// A Job of class `c`, and the fields of its status.
    fn of_class(fields: &[(&str, Value)]) -> Job {
        let mut status = json!({"resolvedJobClass": {
            "name": "c", "uid": "u", "controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"},
        }});
        for (field, value) in fields {
            status[*field] = value.clone();
        }
        job(status)
    }

    fn said(metrics: &Metrics, words: &[&str]) -> Vec<String> {
        let mut samples = samples(|registry| metrics.register(registry));
        samples.retain(|sample| words.iter().any(|word| sample.contains(word)));
        samples
    }

    const START: (&str, &str) = ("startTime", "2026-01-01T00:00:04Z");

    #[test]
    fn a_start_is_observed_by_the_write_that_sets_it_and_by_no_other() {
        let metrics = Metrics::default();
        let waiting = of_class(&[]);
        let running = of_class(&[(START.0, json!(START.1))]);
        metrics.job_written(&job(json!({})), &waiting);
        metrics.job_written(&waiting, &running);
        metrics.job_written(&running, &running);
        assert_eq!(
            said(&metrics, &["start_seconds_sum", "start_seconds_count", "\"c\",le=\"3\"", "\"c\",le=\"5\""]),
            [
                r#"job_time_to_start_seconds_bucket{job_class="c",le="3"} 0"#,
                r#"job_time_to_start_seconds_bucket{job_class="c",le="5"} 1"#,
                r#"job_time_to_start_seconds_count{job_class="c"} 1"#,
                r#"job_time_to_start_seconds_sum{job_class="c"} 4.0"#,
            ]
        );
    }

    #[test]
    fn an_end_is_counted_once_by_its_reason_and_by_the_class_that_was_accepted() {
        let metrics = Metrics::default();
        let over = |reason: &str| [("completionTime", json!(START.1)), ("result", json!({"reason": reason}))];
        let failed = of_class(&over("ProcessFailed"));
        metrics.job_written(&of_class(&[]), &failed);
        metrics.job_written(&failed, &failed);
        // Cancelled before it had a class: the name that it asks for is its sender's.
        let cancelled = json!({"completionTime": START.1, "result": {"reason": "Cancelled"}});
        metrics.job_written(&job(json!(null)), &job(cancelled));
        let counted = said(&metrics, &["finished"]);
        assert_eq!(
            counted,
            [
                r#"jobs_finished_total{job_class="",reason="Cancelled"} 1"#,
                r#"jobs_finished_total{job_class="c",reason="ProcessFailed"} 1"#,
            ]
        );
    }

    #[test]
    fn a_second_process_is_counted_once_for_a_job() {
        let metrics = Metrics::default();
        let (one, two) = (
            of_class(&[]),
            of_class(&[(
                "conditions",
                json!([{
                    "type": "DuplicateExecution", "status": "True", "reason": "DuplicateExecution", "message": "two",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]),
            )]),
        );
        metrics.job_written(&one, &one);
        metrics.job_written(&one, &two);
        metrics.job_written(&two, &two);
        assert_eq!(said(&metrics, &["duplicate"]), ["duplicate_executions_total 1"]);
    }

    #[test]
    fn no_name_of_a_job_or_namespace_is_a_label() {
        let metrics = Metrics::default();
        metrics.job_written(
            &job(json!(null)),
            &of_class(&[(START.0, json!(START.1)), ("completionTime", json!(START.1))]),
        );
        let all = samples(|registry| metrics.register(registry)).join("\n");
        assert!(!all.contains("secret") && !all.contains("asked-for"), "{all}");
    }

    #[test]
    fn a_visit_is_counted_by_its_controller_and_how_it_ended() {
        let metrics = Metrics::default();
        let reconciles = metrics.reconciles("job");
        reconciles.count(&Ok(None::<Duration>));
        reconciles.count(&Err::<(), _>(CallError::Timeout));
        reconciles.count(&Err::<(), _>(CallError::Conflict("of secret-name".into())));
        assert_eq!(
            said(&metrics, &["reconciles"]),
            [
                r#"reconciles_total{controller="job",outcome="conflict"} 1"#,
                r#"reconciles_total{controller="job",outcome="success"} 1"#,
                r#"reconciles_total{controller="job",outcome="timeout"} 1"#,
            ]
        );
    }

    #[test]
    fn the_lag_of_a_ttl_is_observed_in_seconds() {
        let metrics = Metrics::default();
        metrics.deleted_by_ttl(SignedDuration::from_millis(1500));
        assert_eq!(said(&metrics, &["lag_seconds_sum"]), ["ttl_lag_seconds_sum 1.5"]);
    }
}
