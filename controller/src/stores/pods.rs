//! Pods by the UID of their Job, so that no reconcile searches through all of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use ayatori_crds::names::JOB_UID_LABEL;
use futures::StreamExt;
use kube::{Api, runtime::watcher};
use tokio::sync::{broadcast, watch};

use super::{Change, Event, Watch, execution, pruned};
use crate::backend::kubernetes::objects::NativePod;

/// Job UID → pod UID → pod.
type Pods = HashMap<String, BTreeMap<String, Arc<NativePod>>>;

/// The pods that the watch has shown.
#[derive(Debug)]
pub struct PodIndex {
    pods: RwLock<Pods>,
    synced: watch::Sender<bool>,
}

impl Default for PodIndex {
    fn default() -> Self {
        Self { pods: RwLock::default(), synced: watch::Sender::new(false) }
    }
}

impl PodIndex {
    /// The pods that carry this Job's UID.
    #[must_use]
    pub fn of_job(&self, job_uid: &str) -> Vec<Arc<NativePod>> {
        let pods = self.pods.read().unwrap_or_else(PoisonError::into_inner);
        pods.get(job_uid).map(|pods| pods.values().cloned().collect()).unwrap_or_default()
    }

    /// Waits until the index has been filled once.
    pub async fn synced(&self) {
        // An error would mean that the sender, which is `self`, is gone.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    fn insert(pods: &mut Pods, pod: NativePod) {
        if let Some((job, uid)) = key(&pod) {
            pods.entry(job).or_default().insert(uid, Arc::new(pod));
        }
    }

    fn remove(pods: &mut Pods, pod: &NativePod) {
        let Some((job, uid)) = key(pod) else { return };
        if let Some(of_job) = pods.get_mut(&job) {
            of_job.remove(&uid);
            if of_job.is_empty() {
                pods.remove(&job);
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Pods)) {
        change(&mut self.pods.write().unwrap_or_else(PoisonError::into_inner));
    }
}

fn key(pod: &NativePod) -> Option<(String, String)> {
    let job = pod.metadata.labels.as_ref()?.get(JOB_UID_LABEL)?;
    Some((job.clone(), pod.metadata.uid.clone()?))
}

fn changes_of(pods: &Pods) -> Vec<Change> {
    pods.values().flat_map(BTreeMap::values).filter_map(|pod| execution(&pod.metadata)).collect()
}

/// The watch that keeps the index.
pub(super) fn watch(
    api: Api<NativePod>,
    config: watcher::Config,
    index: Arc<PodIndex>,
    changes: broadcast::Sender<Change>,
) -> Watch {
    Box::pin(async move {
        let mut listed = Pods::new();
        let mut events = std::pin::pin!(pruned(api, config));
        while let Some(event) = events.next().await {
            let told = match event {
                Event::Init => {
                    listed.clear();
                    vec![]
                }
                Event::InitApply(pod) => {
                    PodIndex::insert(&mut listed, pod);
                    vec![]
                }
                Event::InitDone => {
                    let pods = std::mem::take(&mut listed);
                    // What went while the watch was down is told from the old index.
                    let mut told = changes_of(&pods);
                    index.change(|all| told.extend(changes_of(&std::mem::replace(all, pods))));
                    index.synced.send_replace(true);
                    told
                }
                Event::Apply(pod) => {
                    let told = execution(&pod.metadata);
                    index.change(|pods| PodIndex::insert(pods, pod));
                    told.into_iter().collect()
                }
                Event::Delete(pod) => {
                    index.change(|pods| PodIndex::remove(pods, &pod));
                    execution(&pod.metadata).into_iter().collect::<Vec<_>>()
                }
            };
            for change in told {
                let _ = changes.send(change);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(job: &str, uid: &str) -> NativePod {
        serde_json::from_value(json!({"metadata": {"uid": uid, "labels": {JOB_UID_LABEL: job}}})).unwrap()
    }

    #[test]
    fn pods_are_found_by_their_job_and_forgotten_when_they_go() {
        let index = PodIndex::default();
        index.change(|pods| {
            PodIndex::insert(pods, pod("a", "1"));
            PodIndex::insert(pods, pod("a", "2"));
            PodIndex::insert(pods, pod("b", "3"));
        });
        assert_eq!(index.of_job("a").len(), 2);
        index.change(|pods| {
            PodIndex::remove(pods, &pod("a", "1"));
            PodIndex::remove(pods, &pod("b", "3"));
        });
        assert_eq!(index.of_job("a").len(), 1);
        assert_eq!(index.pods.read().unwrap().len(), 1, "an empty entry is not kept");
    }
}
