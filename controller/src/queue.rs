//! A work queue for one kind: what must be looked at, deduplicated, with bounded concurrency and back-off.

use std::{
    collections::HashMap,
    fmt::Debug,
    future::Future,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, StreamExt};
use kube::{
    Resource, ResourceExt,
    runtime::{
        controller::{self, Action},
        reflector::{ObjectRef, Store},
    },
};
use tokio::sync::{broadcast, mpsc};

use crate::{
    call::CallError,
    metrics::Reconciles,
    stores::{Change, forward},
};

/// Objects that are looked at at the same time.
const CONCURRENCY: u16 = 16;
/// Requests that may wait in front of the queue, which then deduplicates them.
const REQUEST_BUFFER: usize = 1024;
/// Objects whose failures are counted at the same time.
const REMEMBERED_FAILURES: usize = 10_000;
/// First and longest wait after failures in a row; it doubles in between.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// Failures in a row, by UID.
#[derive(Debug, Default)]
struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    fn reset(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    fn next_wait(&self, uid: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Objects that went after a failure are never reset. Forgetting the others only shortens a wait.
        if failures.len() > REMEMBERED_FAILURES {
            failures.clear();
        }
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        spread(back_off(*count), uid)
    }
}

/// 0.2 s, 0.4 s, … 60 s.
fn back_off(failures: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    BACK_OFF.0.saturating_mul(doubled).min(BACK_OFF.1)
}

/// Longer by up to a quarter, for each object by another part of it: what waits since the same moment, as all does that an
/// API server has failed at once, comes back one by one.
pub(crate) fn spread(wait: Duration, uid: &str) -> Duration {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let [part, ..] = hasher.finish().to_be_bytes();
    wait + wait / 4 * u32::from(part) / 256
}

/// Looks at every object that `affected` names for a change, until `stop` ends.
///
/// `affected(None)` names all of them.
pub async fn run<K, F, Fut>(
    store: Store<K>,
    changes: broadcast::Receiver<Change>,
    affected: impl FnMut(Option<Change>) -> Vec<ObjectRef<K>> + Send + 'static,
    visit: F,
    reconciles: Reconciles,
    stop: impl Future<Output = ()> + Send + 'static,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    F: Fn(Arc<K>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<Duration>, CallError>> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel::<ObjectRef<K>>(REQUEST_BUFFER);
    let forwarding = tokio::spawn(forward(changes, sender, affected));
    // Closing the stream of requests makes the queue finish what runs and end.
    let requests = futures::stream::poll_fn(move |context| receiver.poll_recv(context))
        .take_until(stop)
        .map(Ok::<_, std::convert::Infallible>);
    let failures = Arc::new(Failures::default());
    let visit = Arc::new(visit);
    let reconcile = {
        let failures = Arc::clone(&failures);
        move |object: Arc<K>, _: Arc<()>| {
            let (visit, failures, reconciles) = (Arc::clone(&visit), Arc::clone(&failures), reconciles.clone());
            async move {
                let uid = object.uid().unwrap_or_default();
                let visited = visit(object).await;
                reconciles.count(&visited);
                let wait = visited?;
                failures.reset(&uid);
                Ok::<_, CallError>(wait.map_or_else(Action::await_change, Action::requeue))
            }
            .boxed()
        }
    };
    let on_error = move |object: Arc<K>, error: &CallError, _: Arc<()>| {
        let wait = failures.next_wait(&object.uid().unwrap_or_default());
        let (kind, namespace, name) = (K::kind(&()), object.namespace().unwrap_or_default(), object.name_any());
        match error {
            CallError::Conflict(_) => tracing::debug!(%kind, namespace, name, %error, "looked at again"),
            _ => tracing::warn!(%kind, namespace, name, %error, wait_ms = wait.as_millis(), "will be tried again"),
        }
        Action::requeue(wait)
    };
    let config = controller::Config::default().concurrency(CONCURRENCY);
    controller::applier(reconcile, on_error, Arc::new(()), store, requests, config).for_each(|_| async {}).await;
    forwarding.abort();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        let waits: Vec<u128> = [1, 2, 3, 9, 10, u32::MAX].map(|count| back_off(count).as_millis()).into();
        assert_eq!(waits, [200, 400, 800, 51_200, 60_000, 60_000]);
    }

    #[test]
    fn a_success_forgets_the_failures() {
        let (failures, first) = (Failures::default(), spread(BACK_OFF.0, "u"));
        assert_eq!(failures.next_wait("u"), first);
        assert_eq!(failures.next_wait("u"), spread(BACK_OFF.0 * 2, "u"));
        failures.reset("u");
        assert_eq!(failures.next_wait("u"), first);
    }

    #[test]
    fn what_waits_since_the_same_moment_comes_back_one_by_one_and_never_early() {
        let wait = Duration::from_secs(60);
        let waits: std::collections::BTreeSet<_> = (0..100).map(|uid| spread(wait, &format!("{uid}"))).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.iter().all(|spread| (wait..wait * 5 / 4).contains(spread)), "{waits:?}");
    }
}
