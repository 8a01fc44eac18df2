//! The connections that are open, and which of them makes room for another.
//!
//! There is no way to tell a good client from a bad one before its request is read. But one that waits for its answer is
//! worth more than one that asks nothing: so who keeps connections to keep others out loses them.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{self, AbortHandle, JoinSet};
use tokio::time::Instant;

/// The open connections of a server.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections {
    tasks: JoinSet<()>,
    /// Without those that are cut, though their tasks may have yet to end.
    open: HashMap<task::Id, (AbortHandle, Arc<Activity>)>,
}

/// What a connection does, for whoever may cut it.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Requests that wait for their answers: several at a time with HTTP/2.
    in_flight: usize,
    /// Since its accept, or its last answer.
    idle_since: Instant,
}

/// A request that waits for its answer, for as long as this lives.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl OpenConnections {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Spawns what serves one more connection.
    pub(crate) fn open<F>(&mut self, serve: impl FnOnce(Arc<Activity>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let activity = Arc::new(Activity(Mutex::new(State { in_flight: 0, idle_since: Instant::now() })));
        let task = self.tasks.spawn(serve(Arc::clone(&activity)));
        self.open.insert(task.id(), (task, activity));
    }

    /// Waits until one of them has ended; None where there is none.
    pub(crate) async fn ended(&mut self) -> Option<()> {
        let id = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&id);
        Some(())
    }

    /// Whether one more may be opened. At the bound, the one that has had nothing to answer for the longest time is cut
    /// for it; while there is none, it may not.
    pub(crate) fn make_room(&mut self, bound: usize) -> bool {
        self.open.len() < bound || self.cut_idle()
    }

    fn cut_idle(&mut self) -> bool {
        let idle = self.open.iter().filter_map(|(id, (_, activity))| Some((activity.idle_since()?, *id)));
        let Some((_, id)) = idle.min_by_key(|(since, _)| *since) else { return false };
        if let Some((task, _)) = self.open.remove(&id) {
            task.abort();
            tracing::debug!("connection cut: it was idle, and its place was needed");
        }
        true
    }

    /// Cuts all of them.
    pub(crate) async fn shutdown(&mut self) {
        self.open.clear();
        self.tasks.shutdown().await;
    }
}

impl Activity {
    /// Notes a request until its answer is there.
    pub(crate) fn request(self: &Arc<Self>) -> InFlight {
        self.state().in_flight += 1;
        InFlight(Arc::clone(self))
    }

    /// None while a request waits for its answer.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.in_flight == 0).then_some(state.idle_since)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight -= 1;
        state.idle_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::*;

    /// Opens one that does nothing; a second later it is the next one's turn.
    async fn open(connections: &mut OpenConnections) -> Arc<Activity> {
        let mut opened = None;
        connections.open(|activity| {
            opened = Some(activity);
            pending()
        });
        tokio::time::advance(Duration::from_secs(1)).await;
        opened.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_is_idle_the_longest_makes_room_and_none_that_waits_for_an_answer() {
        let mut connections = OpenConnections::default();
        let (first, second) = (open(&mut connections).await, open(&mut connections).await);
        let third = open(&mut connections).await;
        let (asking, also) = (first.request(), second.request());
        drop(also);
        assert!(connections.make_room(4) && connections.len() == 3, "there is room");
        assert!(connections.make_room(3));
        connections.ended().await.unwrap();
        assert_eq!((connections.len(), Arc::strong_count(&third)), (2, 1), "the third has asked nothing yet");
        assert!(connections.make_room(2));
        connections.ended().await.unwrap();
        assert_eq!((connections.len(), Arc::strong_count(&second)), (1, 1), "the second has its answer");
        assert!(!connections.make_room(1), "the first waits for its answer");
        assert_eq!(connections.len(), 1);
        drop(asking);
        assert!(connections.make_room(1));
    }

    #[tokio::test(start_paused = true)]
    async fn several_requests_on_one_connection_are_each_waited_for() {
        let mut connections = OpenConnections::default();
        let activity = open(&mut connections).await;
        let requests = [activity.request(), activity.request()];
        for request in requests {
            assert!(!connections.make_room(1));
            drop(request);
        }
        assert!(connections.make_room(1));
    }

    #[tokio::test]
    async fn one_that_ends_or_panics_is_open_no_more() {
        let mut connections = OpenConnections::default();
        connections.open(|_| async {});
        connections.open(|_| async { panic!("as asked") });
        assert_eq!(connections.len(), 2);
        while connections.ended().await.is_some() {}
        assert_eq!(connections.len(), 0);
    }
}
