//! Each request of a life is disturbed, one at a time: at most one start for one Job, and the end of an undisturbed life.

use std::path::Path;

use anyhow::{Context, ensure};
use ayatori_tests::{
    eventually,
    fault_proxy::Fault,
    product::{
        audit::Audit,
        jobs::uid,
        own::{alone, beside},
        scene::{BOUND, QUIET, Scene},
        starts::Starts,
    },
    suite::setting,
    tools::say,
};
use futures::{StreamExt, TryStreamExt, stream};
use http::StatusCode;
use tokio::{sync::Notify, time::sleep};

use crate::{
    ends::end,
    replicas::Replicas,
    undisturbed::{Point, Undisturbed},
    workloads::{CANCELLED, DELETED, FAILING, FORGOTTEN, HAPPY, SHORT, Workload, running_time},
};

/// Lives that are disturbed at the same time, each in its own namespace: two processors run about as many pods at once
/// without making each other slow.
const AT_ONCE: usize = 8;
/// A life may go another way on a busy machine: what a node tells late is not written. It is lived again, but not for ever.
const LIVES: usize = 5;

/// What a request meets while others are left in peace.
const USUAL: &[Fault] = &[Fault::CutAnswer];
/// With two processes what is new is that the other one goes on meanwhile, and what lands late.
const DEEP_WITH_TWO: &[Fault] = &[Fault::CutAnswer, Fault::Hold];
const DEEP: &[Fault] = &[
    Fault::CutAnswer,
    Fault::Cut,
    Fault::Hold,
    Fault::Refuse(StatusCode::CONFLICT),
    Fault::Refuse(StatusCode::TOO_MANY_REQUESTS),
    Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
    Fault::Refuse(StatusCode::GATEWAY_TIMEOUT),
    Fault::Deny(StatusCode::INTERNAL_SERVER_ERROR),
    Fault::Deny(StatusCode::GATEWAY_TIMEOUT),
];
/// `kill -9` right after the commit, before the answer.
const DEATH: Fault = Fault::NoAnswer;

#[tokio::test]
async fn a_life_ends_as_if_nothing_had_happened_whichever_request_meets_a_crash_or_loses_its_answer()
-> anyhow::Result<()> {
    let workloads = setting(&[HAPPY][..], &[HAPPY, FAILING, CANCELLED, DELETED, FORGOTTEN]);
    let counts = setting(&[1][..], &[1, 2]);
    alone(async |scene, kubeconfig| {
        let starts = Starts::count(scene.cluster)?;
        for count in counts {
            disturb_all(scene, kubeconfig, *count, workloads, &starts).await?;
        }
        // The kubelet's side agrees with what the tasks have said.
        let pods = Audit::everywhere(scene.cluster).pods_made()?;
        ensure!(pods.values().all(|pods| *pods == 1), "pods by Job UID: {pods:?}");
        say(&format!("crash points: {} Jobs were started, each by one pod", pods.len()));
        Ok(())
    })
    .await
}

/// Every point of every life, each with every fault.
async fn disturb_all(
    scene: &Scene,
    kubeconfig: &Path,
    count: usize,
    workloads: &[Workload],
    starts: &Starts,
) -> anyhow::Result<()> {
    let replicas = Replicas::start(scene.cluster, kubeconfig, count).await?;
    let lives = stream::iter(workloads).map(|workload| Undisturbed::live(*workload, &replicas));
    let lives: Vec<Undisturbed> = lives.buffered(AT_ONCE).try_collect().await?;
    for life in &lives {
        let (writes, events) = (life.writes, life.events);
        say(&format!("{writes} writes and {events} Events in an undisturbed life ({})", life.workload.name));
    }
    let deep = if count == 1 { DEEP } else { DEEP_WITH_TWO };
    let disturbed = cells(&lives, setting(USUAL, deep));
    let meetings = stream::iter(&disturbed).map(|cell| cell.meet(&replicas, starts));
    let mut outcomes: Vec<anyhow::Result<Met>> = meetings.buffer_unordered(AT_ONCE).collect().await;
    // One at a time: a death is that of every life.
    let deaths = cells(&lives, &[DEATH]);
    for cell in &deaths {
        outcomes.push(cell.meet(&replicas, starts).await);
    }
    let (disturbed, deaths) = (disturbed.len(), deaths.len());
    let (again, never) = outcomes.iter().flatten().fold((0, 0), |(again, never), met| match met {
        Met::After(lives) => (again + lives, never),
        Met::Never => (again, never + 1),
    });
    say(&format!(
        "crash points, {count} replicas: {disturbed} cells of bad answers, {deaths} of kill -9; {again} lives went another \
         way, and {never} reads were not met"
    ));
    // All of them are met before one is told: which others fail says what is wrong.
    let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(failed.is_empty(), "{} cells failed:\n{}", failed.len(), failed.join("\n"));
    Ok(())
}

/// How a cell ended.
enum Met {
    /// It struck, after so many lives in which it found no request.
    After(usize),
    /// It found none. Only a read may be one that chance decides: whether a store is behind.
    Never,
}

/// A fault at a point of a life.
struct Cell<'a> {
    life: &'a Undisturbed,
    point: &'a Point,
    fault: Fault,
}

fn cells<'a>(lives: &'a [Undisturbed], faults: &[Fault]) -> Vec<Cell<'a>> {
    let mut cells = vec![];
    for life in lives {
        for point in &life.points {
            // Whatever a read meets, it is read again: one way to lose it stands for all.
            let of_point = faults.iter().filter(|fault| point.is_write || [Fault::CutAnswer, DEATH].contains(fault));
            cells.extend(of_point.map(|fault| Cell { life, point, fault: *fault }));
        }
    }
    cells
}

impl Cell<'_> {
    /// Lives lives until the fault strikes in one.
    async fn meet(&self, replicas: &Replicas, starts: &Starts) -> anyhow::Result<Met> {
        let name = || format!("{}, {} at {:?}", self.life.workload.name, self.fault, self.point.words);
        for before in 0..LIVES {
            let mut struck = false;
            let life = beside(async |scene| {
                struck = self.meet_in(scene, replicas, starts).await?;
                Ok(())
            });
            life.await.with_context(name)?;
            if struck {
                return Ok(Met::After(before));
            }
        }
        // A fault that finds no request is no test.
        ensure!(!self.point.is_write, "{}: in {LIVES} lives no request was there", name());
        Ok(Met::Never)
    }

    /// Lives a life; answers whether the fault struck in it.
    async fn meet_in(&self, scene: &Scene, replicas: &Replicas, starts: &Starts) -> anyhow::Result<bool> {
        let (namespace, point) = (scene.namespace.clone(), self.point.clone());
        let injected = replicas.proxy.inject(self.fault, 1, move |asked| point.is_of(asked, &namespace));
        let over = Notify::new();
        let life = async {
            // Where nothing else runs, the kubelet soon tells what does.
            let running_time = if self.fault == DEATH { SHORT } else { running_time() };
            let created = self.life.workload.live(scene, running_time).await?;
            over.notify_one();
            anyhow::Ok(created)
        };
        let strike = async {
            let door = tokio::select! {
                door = injected.struck(BOUND) => door?,
                // What is last in a life comes after its end: the Event of it.
                () = async { over.notified().await; sleep(QUIET).await } => return Ok(false),
            };
            if self.fault == DEATH {
                replicas.kill(door).await?;
                replicas.start_again(door).await?;
            }
            anyhow::Ok(true)
        };
        let (created, struck) = tokio::try_join!(life, strike)?;
        if struck && self.fault == Fault::Hold {
            // By now the process has given the call up, and gone on without it.
            injected.release(BOUND).await?;
        }
        eventually("the end of an undisturbed life", BOUND, async || {
            let end = end(scene, &created, &self.life.workload).await?;
            ensure!(end == self.life.end, "it is {end}, and undisturbed {}", self.life.end);
            Ok(())
        })
        .await?;
        let started = starts.by_uid()?.get(uid(&created)).copied().unwrap_or_default();
        ensure!(started == 1, "it was started {started} times");
        Ok(struck)
    }
}
