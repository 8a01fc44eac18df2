//! Pods by the UID of their Job, so that no reconcile searches through all of them.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, PoisonError, RwLock},
};

use ayatori_crds::names::JOB_UID_LABEL;
use futures::StreamExt;
use kube::{Api, runtime::watcher};
use tokio::sync::{broadcast, watch};

use super::{Change, Event, Watch, execution, pruned};
use crate::backend::kubernetes::objects::NativePod;

/// Pods that went and are still known: their last words (an exit code that only the watch shows, that no node ever had
/// them) must be there when their Job is looked at. Those of finished Jobs count, too, of which thousands may go at once;
/// each is a kilobyte at most.
const DEPARTED: usize = 8192;

/// The pods that are known.
#[derive(Debug, Default)]
struct Pods {
    /// Job UID → pod UID → pod.
    by_job: HashMap<String, BTreeMap<String, Arc<NativePod>>>,
    /// Those that went, oldest first.
    departed: VecDeque<(String, String)>,
}

impl Pods {
    fn insert(&mut self, pod: NativePod) {
        if let Some((job, uid)) = key(&pod) {
            self.by_job.entry(job).or_default().insert(uid, Arc::new(pod));
        }
    }

    /// Keeps the last words of a pod that went. One that only lost our mark goes from the watch, too: of what becomes of it
    /// nothing is known any more. It is told by its not having been deleted.
    fn depart(&mut self, pod: NativePod) {
        let Some((job, uid)) = key(&pod) else { return };
        if pod.metadata.deletion_timestamp.is_none() {
            return self.forget(&job, &uid);
        }
        self.insert(NativePod { gone: true, ..pod });
        self.departed.push_back((job, uid));
        while self.departed.len() > DEPARTED
            && let Some((job, uid)) = self.departed.pop_front()
        {
            self.forget(&job, &uid);
        }
    }

    fn forget(&mut self, job: &str, uid: &str) {
        if let Some(of_job) = self.by_job.get_mut(job) {
            of_job.remove(uid);
            if of_job.is_empty() {
                self.by_job.remove(job);
            }
        }
    }

    /// A new list came. What went between two watches has no last words; those that were heard before stay.
    fn replace(&mut self, listed: Self) -> Self {
        let before = std::mem::replace(self, listed);
        for (job, uid) in &before.departed {
            if let Some(pod) = before.by_job.get(job).and_then(|pods| pods.get(uid)) {
                self.by_job.entry(job.clone()).or_default().insert(uid.clone(), Arc::clone(pod));
            }
        }
        self.departed.clone_from(&before.departed);
        before
    }

    fn changes(&self) -> Vec<Change> {
        self.by_job.values().flat_map(BTreeMap::values).filter_map(|pod| execution(&pod.metadata)).collect()
    }
}

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
    /// The pods that carry this Job's UID, the last words of those that went among them.
    #[must_use]
    pub fn of_job(&self, job_uid: &str) -> Vec<Arc<NativePod>> {
        let pods = self.pods.read().unwrap_or_else(PoisonError::into_inner);
        pods.by_job.get(job_uid).map(|pods| pods.values().cloned().collect()).unwrap_or_default()
    }

    /// Waits until the index has been filled once.
    pub async fn synced(&self) {
        // An error would mean that the sender, which is `self`, is gone.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    fn change(&self, change: impl FnOnce(&mut Pods)) {
        change(&mut self.pods.write().unwrap_or_else(PoisonError::into_inner));
    }
}

fn key(pod: &NativePod) -> Option<(String, String)> {
    let job = pod.metadata.labels.as_ref()?.get(JOB_UID_LABEL)?;
    Some((job.clone(), pod.metadata.uid.clone()?))
}

/// The watch that keeps the index.
pub(super) fn watch(
    api: Api<NativePod>,
    config: watcher::Config,
    index: Arc<PodIndex>,
    changes: broadcast::Sender<Change>,
) -> Watch {
    Box::pin(async move {
        let mut listed = Pods::default();
        let mut events = std::pin::pin!(pruned(api, config));
        while let Some(event) = events.next().await {
            let told = match event {
                Event::Init => {
                    listed = Pods::default();
                    vec![]
                }
                Event::InitApply(pod) => {
                    listed.insert(pod);
                    vec![]
                }
                Event::InitDone => {
                    let pods = std::mem::take(&mut listed);
                    // What went while the watch was down is told from the old index.
                    let mut told = pods.changes();
                    index.change(|all| told.extend(all.replace(pods).changes()));
                    index.synced.send_replace(true);
                    told
                }
                Event::Apply(pod) => {
                    let told = execution(&pod.metadata);
                    index.change(|pods| pods.insert(pod));
                    told.into_iter().collect()
                }
                Event::Delete(pod) => {
                    let told = execution(&pod.metadata);
                    index.change(|pods| pods.depart(pod));
                    told.into_iter().collect::<Vec<_>>()
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

    fn deleted(job: &str, uid: &str) -> NativePod {
        let mut pod = pod(job, uid);
        pod.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        pod
    }

    #[test]
    fn pods_are_found_by_their_job_and_their_last_words_stay_for_a_while() {
        let index = PodIndex::default();
        index.change(|pods| {
            for (job, uid) in [("a", "1"), ("a", "2"), ("b", "3")] {
                pods.insert(pod(job, uid));
            }
            pods.depart(deleted("b", "3"));
        });
        assert_eq!(index.of_job("a").len(), 2);
        assert!(index.of_job("b")[0].gone && !index.of_job("a")[0].gone);
        // A new list: what it does not have is gone without a word; what was heard before stays.
        index.change(|pods| {
            let mut listed = Pods::default();
            listed.insert(pod("a", "1"));
            assert_eq!(pods.replace(listed).changes().len(), 0, "none of them names its Job here");
        });
        assert_eq!((index.of_job("a").len(), index.of_job("b").len()), (1, 1));
        index.change(|pods| {
            for number in 0..DEPARTED {
                pods.depart(deleted("c", &number.to_string()));
            }
        });
        assert_eq!(index.of_job("b").len(), 0);
        assert_eq!(index.pods.read().unwrap().by_job.len(), 2, "an empty entry is not kept");
    }

    #[test]
    fn a_pod_that_only_lost_our_mark_is_not_known_to_be_gone() {
        let index = PodIndex::default();
        index.change(|pods| {
            pods.insert(pod("a", "1"));
            pods.depart(pod("a", "1"));
        });
        assert_eq!(index.of_job("a").len(), 0);
    }
}
