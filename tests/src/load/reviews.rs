//! Workers that ask for reviews at an even pace.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_webhook::configuration::{MUTATE_JOBS, VALIDATE_JOBS};
use futures::future::join_all;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, interval_at, timeout},
};

use super::{
    connection::{Connection, Failed},
    endpoints::Endpoints,
    plan::{LeafSeen, Report, Reviews},
    trust::Trust,
};
use crate::{eventually, product::jobs};

/// How long the API server waits for a webhook of ours.
const PATIENCE: Duration = Duration::from_secs(10);
/// Failures that are told in full.
const TOLD: usize = 20;
/// For all processes to be ready.
const READY: Duration = Duration::from_secs(60);

/// Works until `end`.
pub(super) async fn run(plan: Reviews, end: impl Future<Output = ()>) -> anyhow::Result<Report> {
    ensure!(plan.workers > 0 && plan.rate > 0, "nobody asks for anything");
    let endpoints = match plan.lag {
        Some(lag) => Endpoints::watch(&plan.targets, lag),
        None => Endpoints::always(&plan.targets),
    };
    eventually("all processes are ready", READY, async || {
        ensure!(endpoints.complete(), "some are not");
        Ok(())
    })
    .await?;
    let trust = Trust::of(&plan.trust).await?;
    let (stop, stopped) = watch::channel(false);
    let bound = plan.bound;
    let shared = Arc::new(Shared { plan, endpoints, trust, uids: AtomicU64::new(0), tally: Mutex::default() });
    let begin = Instant::now();
    let workers: Vec<_> = (0..shared.plan.workers)
        .map(|number| tokio::spawn(Arc::clone(&shared).work(number, begin, stopped.clone())))
        .collect();
    let _ = timeout(bound, end).await;
    stop.send_replace(true);
    for worker in join_all(workers).await {
        worker.context("a worker panicked")?;
    }
    Ok(shared.tally().report(begin.elapsed()))
}

struct Shared {
    plan: Reviews,
    endpoints: Endpoints,
    trust: Trust,
    uids: AtomicU64,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    report: Report,
    latencies: Vec<Duration>,
}

impl Shared {
    async fn work(self: Arc<Self>, number: u32, begin: Instant, mut stop: watch::Receiver<bool>) {
        let path = if number.is_multiple_of(2) { MUTATE_JOBS } else { VALIDATE_JOBS };
        let apart = Duration::from_secs(1) / self.plan.rate;
        // What was missed while an answer took long is made up for: a slow server is not asked less.
        let mut pace = interval_at(begin + apart * number, apart * self.plan.workers);
        let mut connection = None;
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                _ = pace.tick() => {}
            }
            let asked = Instant::now();
            let outcome = timeout(PATIENCE, self.review(path, &mut connection)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {PATIENCE:?}")));
            if outcome.is_err() {
                connection = None;
            }
            self.tally().count(asked.elapsed(), outcome);
        }
    }

    /// One review, on the connection that there is or a new one.
    async fn review(&self, path: &str, kept: &mut Option<Connection>) -> anyhow::Result<()> {
        let uid = format!("review-{}", self.uids.fetch_add(1, Ordering::Relaxed));
        let body = serde_json::to_vec(&review(&uid, &self.plan.namespace))?;
        let is_young = |connection: &Connection| connection.since.elapsed() < self.plan.connection_life;
        if let Some(mut connection) = kept.take().filter(is_young) {
            match connection.review(path, &uid, body.clone()).await {
                Ok(goes_on) => {
                    *kept = goes_on.then_some(connection);
                    return Ok(());
                }
                Err(Failed::Wrong(error)) => return Err(error),
                Err(Failed::Unsent) => {}
            }
        }
        let ports = self.endpoints.choose().context("no process is ready")?;
        let mut connection = self.open(path, ports.webhook).await?;
        match connection.review(path, &uid, body).await {
            Ok(goes_on) => *kept = goes_on.then_some(connection),
            Err(Failed::Wrong(error)) => return Err(error.context(format!("port {}", ports.webhook))),
            Err(Failed::Unsent) => anyhow::bail!("port {}: a new connection was ended unused", ports.webhook),
        }
        Ok(())
    }

    async fn open(&self, path: &str, port: u16) -> anyhow::Result<Connection> {
        let trusted = self.trust.at(path);
        let opened = Connection::open(port, trusted.tls).await;
        let (connection, leaf) = opened.with_context(|| format!("port {port}, {path}"))?;
        self.tally().saw(port, leaf, trusted.certificates);
        Ok(connection)
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn saw(&mut self, port: u16, leaf: LeafSeen, trusted: usize) {
        self.report.connections += 1;
        self.report.most_trusted = self.report.most_trusted.max(trusted);
        let leaves = self.report.leaves.entry(port).or_default();
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }

    fn count(&mut self, time: Duration, outcome: anyhow::Result<()>) {
        match outcome {
            Ok(()) => {
                self.report.reviews += 1;
                self.latencies.push(time);
            }
            Err(error) => {
                self.report.failed += 1;
                if self.report.failures.len() < TOLD {
                    let now = jiff::Timestamp::now();
                    self.report.failures.push(format!("{now} after {} ms: {error:#}", time.as_millis()));
                }
            }
        }
    }

    fn report(&mut self, time: Duration) -> Report {
        self.latencies.sort_unstable();
        let at =
            |per_cent: usize| self.latencies.get(self.latencies.len() * per_cent / 100).copied().unwrap_or_default();
        Report { time, p50: at(50), p99: at(99), ..std::mem::take(&mut self.report) }
    }
}

/// What the API server sends when a Job is created.
fn review(uid: &str, namespace: &str) -> serde_json::Value {
    let group =
        |kind: &str, value: &str| json!({"group": ayatori_crds::names::GROUP, "version": "v1alpha1", kind: value});
    let mut job = jobs::job("reviewed", "exit 0");
    job["metadata"]["namespace"] = json!(namespace);
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": uid, "operation": "CREATE", "name": "reviewed", "namespace": namespace,
            "kind": group("kind", "Job"), "resource": group("resource", "jobs"),
            "requestKind": group("kind", "Job"), "requestResource": group("resource", "jobs"),
            "userInfo": {"username": "load", "groups": ["system:authenticated"]},
            "object": job, "oldObject": null, "dryRun": true, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}
