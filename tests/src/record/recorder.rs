//! The watch behind the history, in a thread of its own: it lives as long as the cluster, tests come and go.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use futures::{StreamExt, pin_mut};
use kube::{
    Api, Client,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::{sync::oneshot, time::sleep};

use super::{
    Invariant,
    history::{History, Seen, resource_version},
};
use crate::{Cluster, client, eventually};

/// The API server ends a watch after this many seconds; a silently dead one is noticed by then.
const WATCH: u32 = 120;
/// Between two attempts, while a test has taken the API server away.
const PAUSE: Duration = Duration::from_millis(100);
/// A version is seen milliseconds after it was written; the bound is for a busy machine.
const CAUGHT_UP: Duration = Duration::from_secs(30);
/// A list of nothing but a handful of Jobs.
const FIRST_LIST: Duration = Duration::from_secs(30);

/// Sees every version of every Job of a cluster, from its start on.
#[derive(Debug)]
pub struct Recorder {
    history: Arc<Mutex<History>>,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Recorder {
    /// Starts to watch; what is written from now on is seen.
    pub async fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        let history = Arc::<Mutex<History>>::default();
        let (stop, stopped) = oneshot::channel();
        let (started, has_started) = oneshot::channel();
        let (seen, kubeconfig) = (Arc::clone(&history), cluster.kubeconfig());
        thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            let outcome = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match outcome {
                Ok(runtime) => runtime.block_on(async {
                    tokio::select! {
                        () = watch(kubeconfig, &seen, started) => {}
                        _ = stopped => {}
                    }
                }),
                Err(error) => drop(started.send(Err(error.into()))),
            }
        })?;
        has_started.await.context("the recorder's thread has ended")??;
        Ok(Self { history, _stop: stop })
    }

    fn history(&self) -> MutexGuard<'_, History> {
        locked(&self.history)
    }

    /// Says that the test of a namespace breaks this by hand there, as an administrator may.
    pub fn tolerate(&self, namespace: &str, invariant: Invariant) {
        self.history().tolerate(namespace, invariant);
    }

    /// At the end of a test: all that was written in its namespace was seen, and nothing was broken, there or in a
    /// namespace whose test has ended before.
    pub async fn check(&self, client: &Client, namespace: &str) -> anyhow::Result<()> {
        let jobs = Api::<Job>::namespaced(client.clone(), namespace);
        eventually("the recorder has seen all", CAUGHT_UP, async || {
            let list = jobs.list(&ListParams::default()).await?;
            let written: u64 = list.metadata.resource_version.as_deref().unwrap_or_default().parse()?;
            let seen = self.history().seen(namespace);
            for job in &list.items {
                let uid = job.metadata.uid.as_deref().unwrap_or_default();
                let newest = seen.get(uid).map(|seen| seen.newest);
                ensure!(newest >= Some(resource_version(job)), "{uid} was written again, after {newest:?}");
            }
            let is_listed = |uid: &str| list.items.iter().any(|job| job.metadata.uid.as_deref() == Some(uid));
            let still = seen.iter().find(|(uid, seen)| !seen.gone && seen.newest <= written && !is_listed(uid));
            ensure!(still.is_none(), "it has not seen the end of {still:?}");
            Ok(())
        })
        .await?;
        let broken = self.history().take_broken(namespace);
        ensure!(broken.is_empty(), "the record of all versions shows broken invariants:\n{}", broken.join("\n"));
        Ok(())
    }
}

fn locked(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches until it is dropped.
async fn watch(kubeconfig: PathBuf, history: &Mutex<History>, started: oneshot::Sender<anyhow::Result<()>>) {
    let begin = async {
        let jobs = Api::<Job>::all(client::connect(&kubeconfig).await?);
        // A kind that was just defined is answered with 429 at first.
        let version = eventually("the first list", FIRST_LIST, async || list(&jobs, history).await).await?;
        anyhow::Ok((jobs, version))
    };
    let (jobs, mut version) = match begin.await {
        Ok(begun) => begun,
        Err(error) => return drop(started.send(Err(error))),
    };
    let _ = started.send(Ok(()));
    loop {
        // Everything else is a server that is away: what is written meanwhile is seen from `version` on.
        if let Err(Stopped::Missed(why)) = follow(&jobs, &mut version, history).await {
            locked(history).see(Seen::Gap(format!("versions after {version} were missed: {why}")));
            while list(&jobs, history).await.map(|listed| version = listed).is_err() {
                sleep(PAUSE).await;
            }
        }
        sleep(PAUSE).await;
    }
}

/// Why a watch ended early.
enum Stopped {
    /// It is begun again where it was.
    Away,
    /// Something cannot be seen any more.
    Missed(String),
}

impl From<kube::Error> for Stopped {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 410 => Self::Missed(error.to_string()),
            kube::Error::SerdeError(_) => Self::Missed(format!("a version cannot be read: {error}")),
            _ => Self::Away,
        }
    }
}

async fn list(jobs: &Api<Job>, history: &Mutex<History>) -> anyhow::Result<String> {
    let list = jobs.list(&ListParams::default()).await?;
    for job in list.items {
        locked(history).see(Seen::Version(Box::new(job)));
    }
    list.metadata.resource_version.context("a list has a resourceVersion")
}

/// One watch, from `version` on, which moves with what is seen.
async fn follow(jobs: &Api<Job>, version: &mut String, history: &Mutex<History>) -> Result<(), Stopped> {
    let events = jobs.watch(&WatchParams::default().timeout(WATCH), version).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let seen = match event? {
            WatchEvent::Added(job) | WatchEvent::Modified(job) => Seen::Version(Box::new(job)),
            WatchEvent::Deleted(job) => Seen::Gone(Box::new(job)),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        };
        let (Seen::Version(job) | Seen::Gone(job)) = &seen else { continue };
        if let Some(now) = &job.metadata.resource_version {
            version.clone_from(now);
        }
        locked(history).see(seen);
    }
    Ok(())
}
