//! A life that nothing disturbs: the requests that it is made of, and its end.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use ayatori_tests::{
    fault_proxy::{Asked, Relayed},
    product::own::beside,
    suite::setting,
};
use futures::future::try_join_all;
use serde_json::Value;

use crate::{
    ends::settled,
    points::point,
    replicas::Replicas,
    workloads::{Workload, running_time},
};

/// A life is lived that often: what belongs to it is what each run has. Two are enough to tell what comes by chance
/// (another look while a store lags).
const RUNS: usize = 2;

const EVENTS: &str = "events.k8s.io/events";

/// What a life is without faults.
pub(crate) struct Undisturbed {
    pub(crate) workload: Workload,
    /// In the order in which they come first. Writes, and with the long setting reads too.
    pub(crate) points: Vec<Point>,
    /// How many requests changed something, but for Events, which nothing rests on.
    pub(crate) writes: usize,
    /// How many Events were told.
    pub(crate) events: usize,
    pub(crate) end: Value,
}

/// A request, see [`point`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) words: String,
    pub(crate) is_write: bool,
}

impl Point {
    fn of(asked: &Asked) -> Self {
        Self { words: point(asked), is_write: asked.is_write() }
    }

    /// Whether a request is this point of the one life in a namespace.
    pub(crate) fn is_of(&self, asked: &Asked, namespace: &str) -> bool {
        asked.namespace == namespace && *self == Self::of(asked)
    }
}

impl Undisturbed {
    /// Lives it.
    pub(crate) async fn live(workload: Workload, replicas: &Replicas) -> anyhow::Result<Self> {
        let run = async || {
            let mut lived = None;
            beside(async |scene| {
                let created = workload.live(scene, running_time()).await?;
                let end = settled(scene, &created, &workload).await?;
                let of_this = |relayed: &Relayed| relayed.asked.namespace == scene.namespace;
                lived = Some((replicas.proxy.relayed().into_iter().filter(of_this).collect::<Vec<_>>(), end));
                Ok(())
            })
            .await?;
            lived.context("it was not lived")
        };
        let mut runs = try_join_all((0..RUNS).map(|_| run())).await?;
        let (relayed, end) = runs.pop().context("no run")?;
        let done = |relayed: &&Relayed| relayed.answered.is_some_and(|code| code.is_success());
        let mut seen = BTreeSet::new();
        let mut points: Vec<Point> = relayed.iter().filter(done).map(|relayed| Point::of(&relayed.asked)).collect();
        points.retain(|point| (point.is_write || setting(false, true)) && seen.insert(point.clone()));
        for (relayed, other) in &runs {
            ensure!(*other == end, "two undisturbed lives ({}) end as {other} and as {end}", workload.name);
            let also: BTreeSet<Point> = relayed.iter().filter(done).map(|relayed| Point::of(&relayed.asked)).collect();
            points.retain(|point| also.contains(point));
        }
        ensure!(points.iter().any(|point| point.is_write), "no write went through the proxy");
        let writes = relayed.iter().filter(done).filter(|relayed| relayed.asked.is_write());
        let (events, writes): (Vec<_>, Vec<_>) = writes.partition(|relayed| relayed.asked.resource == EVENTS);
        Ok(Self { workload, points, writes: writes.len(), events: events.len(), end })
    }
}
