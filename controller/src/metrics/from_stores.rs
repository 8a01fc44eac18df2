//! Gauges of what the stores hold, counted anew at each scrape: nothing has to be kept in step with them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ayatori_crds::{Job, JobClass, JobState, rules::default_class::is_marked_default};
use jiff::Timestamp;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue},
    metrics::MetricType,
};

use super::{class_of, doubts::Doubts};
use crate::{clock::Clock, stores::Stores};

/// What is counted at each scrape.
#[derive(Debug)]
pub struct FromStores {
    stores: Stores,
    clock: Clock,
    doubts: Mutex<Doubts>,
}

impl FromStores {
    /// Counts what these stores hold, and tells how far our clock is from the API server's.
    #[must_use]
    pub fn new(stores: Stores, clock: Clock) -> Self {
        Self { stores, clock, doubts: Mutex::default() }
    }
}

impl Collector for FromStores {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let jobs = self.stores.jobs.state();
        self.jobs(&jobs, &mut encoder)?;
        gauge(
            &mut encoder,
            "default_job_classes",
            "JobClasses that are marked as the cluster's default and not being deleted; with more than one, Jobs without a class wait.",
            Some(defaults(&self.stores.classes.state())),
        )?;
        gauge(
            &mut encoder,
            "clock_skew_seconds",
            "How far the API server's clock is ahead of ours at least; negative where it may be behind.",
            self.clock.ahead().map(|ahead| ahead.as_secs_f64()),
        )
    }
}

impl FromStores {
    fn jobs(&self, jobs: &[Arc<Job>], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Jobs by the class that they were accepted with and what they are doing.";
        let mut metric = encoder.encode_descriptor("jobs", help, None, MetricType::Gauge)?;
        for ((job_class, state), count) in by_class_and_state(jobs) {
            let labels = [("job_class", job_class), ("state", state.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&count)?;
        }
        let in_doubt = jobs.iter().filter(|job| JobState::of(job) == JobState::ResultUnknown);
        let uids = in_doubt.filter_map(|job| job.metadata.uid.as_deref());
        let oldest = self.doubts.lock().unwrap_or_else(PoisonError::into_inner).oldest(uids, Timestamp::now());
        gauge(
            encoder,
            "result_unknown_oldest_seconds",
            "Time since a scrape of this process first showed the Job whose result has been unknown for longest; 0 where there is none.",
            Some(oldest.as_secs_f64()),
        )
    }
}

/// A gauge without labels; without a value it is named all the same.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: Option<impl EncodeGaugeValue>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    value.map_or(Ok(()), |value| metric.encode_gauge(&value))
}

/// How many Jobs of a class are in a state. A class is that of an acceptance, or empty.
fn by_class_and_state(jobs: &[Arc<Job>]) -> BTreeMap<(&str, JobState), u64> {
    let mut counted = BTreeMap::new();
    for job in jobs {
        *counted.entry((class_of(job), JobState::of(job))).or_default() += 1;
    }
    counted
}

/// How many classes claim to be the cluster's default (spec H4).
fn defaults(classes: &[Arc<JobClass>]) -> u64 {
    classes.iter().filter(|class| is_marked_default(class)).map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(class: Option<&str>, status: &str, reason: &str) -> Arc<Job> {
        let class = class.map(|name| {
            json!({"name": name, "uid": "u", "controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"}})
        });
        let job = json!({
            "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job", "metadata": {"name": "j"},
            "spec": {"task": {"image": "app:1"}, "jobClassName": "asked-for"},
            "status": {"resolvedJobClass": class, "conditions": [{"type": "Succeeded", "status": status,
                "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        Arc::new(serde_json::from_value(job).unwrap())
    }

    #[test]
    fn jobs_are_counted_by_accepted_class_and_state() {
        let jobs = [
            job(None, "Unknown", "Pending"),
            job(Some("a"), "Unknown", "ResultUnknown"),
            job(Some("a"), "True", "Completed"),
            job(Some("a"), "True", "Completed"),
            job(Some("b"), "False", "ProcessFailed"),
        ];
        let counted: Vec<_> = by_class_and_state(&jobs).into_iter().collect();
        assert_eq!(
            counted,
            [
                (("", JobState::Resolving), 1),
                (("a", JobState::ResultUnknown), 1),
                (("a", JobState::Succeeded), 2),
                (("b", JobState::Failed), 1),
            ]
        );
    }

    #[test]
    fn classes_that_claim_to_be_the_default_are_counted_but_those_that_go() {
        let class = |mark: Value, deleting: Value| {
            let class = json!({
                "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "JobClass",
                "metadata": {"name": "c", "deletionTimestamp": deleting,
                    "annotations": {"execution.ayatori.ddupan.top/is-default-job-class": mark}},
                "spec": {"controllerName": "k", "parametersRef": {"group": "g", "kind": "K", "name": "p"}},
            });
            Arc::new(serde_json::from_value(class).unwrap())
        };
        let (marked, plain) = (class(json!("true"), json!(null)), class(json!("false"), json!(null)));
        let going = class(json!("true"), json!("2026-01-01T00:00:00Z"));
        assert_eq!(defaults(&[]), 0);
        assert_eq!(defaults(&[Arc::clone(&marked), Arc::clone(&plain)]), 1);
        assert_eq!(defaults(&[Arc::clone(&marked), marked, going]), 2);
    }
}
