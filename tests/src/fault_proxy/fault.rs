//! What is done to the n-th request of a class.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::Context;
use http::StatusCode;
use tokio::{sync::watch, time::timeout};

use super::Asked;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends; nothing is carried out.
    Cut,
    /// It is carried out; the connection ends without an answer.
    CutAnswer,
    /// It is carried out, and no answer comes for as long as the program lives: kill it meanwhile.
    NoAnswer,
    /// It is not carried out, and answered with this code.
    Refuse(StatusCode),
    /// It is carried out, and answered with this code.
    Deny(StatusCode),
    /// It is kept until [`Injected::release`], and then carried out, whether or not somebody still waits for the answer.
    Hold,
}

impl Fault {
    /// Whether it strikes after a request that succeeded. One that fails by itself is answered as it is, and the fault
    /// waits for the next.
    #[must_use]
    pub fn is_after_the_commit(self) -> bool {
        matches!(self, Self::CutAnswer | Self::NoAnswer | Self::Deny(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut before"),
            Self::CutAnswer => f.write_str("answer cut"),
            Self::NoAnswer => f.write_str("no answer"),
            Self::Refuse(code) => write!(f, "{} and not done", code.as_u16()),
            Self::Deny(code) => write!(f, "{} although done", code.as_u16()),
            Self::Hold => f.write_str("held"),
        }
    }
}

type Class = Box<dyn Fn(&Asked) -> bool + Send + Sync>;

/// A fault that waits for its request, and strikes once.
#[derive(Clone)]
pub struct Injected(Arc<State>);

struct State {
    class: Class,
    fault: Fault,
    /// Requests of the class that go by before; None once one was chosen.
    left: watch::Sender<Option<usize>>,
    /// The door of the program that was struck.
    struck: watch::Sender<Option<usize>>,
    released: watch::Sender<bool>,
    /// What the API server answered to a request that was held.
    landed: watch::Sender<Option<StatusCode>>,
}

impl fmt::Debug for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injected").field("fault", &self.0.fault).field("struck", &*self.0.struck.borrow()).finish()
    }
}

impl Injected {
    /// Strikes the `nth` request of the class; the first is 1.
    pub(super) fn new(fault: Fault, nth: usize, class: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(State {
            class: Box::new(class),
            fault,
            left: watch::Sender::new(Some(nth.saturating_sub(1))),
            struck: watch::Sender::new(None),
            released: watch::Sender::new(false),
            landed: watch::Sender::new(None),
        }))
    }

    /// What it does.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    /// Whether this request is the one; if so, no other is, unless [`Self::spare`] gives it back.
    pub(super) fn chooses(&self, asked: &Asked) -> bool {
        (self.0.class)(asked)
            && self.0.left.send_if_modified(|left| {
                let chosen = *left == Some(0);
                *left = left.and_then(|left| left.checked_sub(1));
                chosen
            })
    }

    /// The request that was chosen failed by itself.
    pub(super) fn spare(&self) {
        self.0.left.send_replace(Some(0));
    }

    pub(super) fn strike(&self, door: usize) {
        self.0.struck.send_replace(Some(door));
    }

    pub(super) fn is_done(&self) -> bool {
        self.0.struck.borrow().is_some()
    }

    pub(super) async fn is_released(&self) {
        // The sender is in `self`.
        let _ = self.0.released.subscribe().wait_for(|released| *released).await;
    }

    pub(super) fn land(&self, code: StatusCode) {
        self.0.landed.send_replace(Some(code));
    }

    /// Waits until it has struck; answers the door of the program.
    pub async fn struck(&self, bound: Duration) -> anyhow::Result<usize> {
        wait(&self.0.struck, bound).await.with_context(|| format!("the fault ({}) found no request", self.0.fault))
    }

    /// Lets a request go that is held; answers what became of it.
    pub async fn release(&self, bound: Duration) -> anyhow::Result<StatusCode> {
        self.0.released.send_replace(true);
        wait(&self.0.landed, bound).await.context("what was held has no answer")
    }
}

/// Waits until something is there.
async fn wait<T: Copy>(sender: &watch::Sender<Option<T>>, bound: Duration) -> anyhow::Result<T> {
    let mut receiver = sender.subscribe();
    let found = timeout(bound, receiver.wait_for(Option::is_some)).await;
    let found = found.with_context(|| format!("not within {} s", bound.as_secs()))??;
    (*found).context("nothing is there")
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn the_nth_request_of_the_class_is_chosen_once_and_may_be_spared() {
        let injected = Injected::new(Fault::CutAnswer, 2, Asked::is_write);
        let asked = |method| Asked::of(&method, "/api/v1/namespaces/ns/pods/p", "", b"");
        let (read, write) = (asked(Method::GET), asked(Method::PATCH));
        let chosen = [&write, &read, &write, &write].map(|asked| injected.chooses(asked));
        assert_eq!(chosen, [false, false, true, false]);
        injected.spare();
        assert_eq!([&read, &write, &write].map(|asked| injected.chooses(asked)), [false, true, false]);
    }

    #[tokio::test]
    async fn a_fault_that_finds_no_request_says_so() {
        let injected = Injected::new(Fault::Cut, 1, Asked::is_write);
        let error = injected.struck(Duration::from_millis(10)).await.unwrap_err();
        assert!(error.to_string().contains("(cut before) found no request"), "{error:#}");
    }
}
