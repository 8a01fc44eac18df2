//! A model of a Job's whole life on Kubernetes, around the production code, checked state by state (stateright). Tests
//! only: `cargo test --workspace --lib life:: -- --nocapture` sees the small settings whole, and says how many states each has;
//! `AYATORI_DEEP=1` adds the large ones.
//!
//! They are a crate of their own as the checker's code is generic: it is compiled with whoever uses it, and in debug mode
//! a state costs ten times as much as with optimization, which this crate alone gets (see the workspace's profile).
//!
//! # What is production's
//!
//! What is decided: `job::decide`, `ttl::decide`, the sweeper's `leftovers::decide`. What is seen: `observe` with all that it
//! rests on (verdicts, silence, limits, failures to start). What is sent: `patch`, `render`, the seconds of a limit.
//!
//! # What is modelled around it
//!
//! - Two Job UIDs that follow each other under one name; a user who creates, cancels and deletes; a TTL and a deadline.
//! - One or two controllers without any election, each paused between any two requests and dead at any moment. Stores that
//!   stop following, all at once or those of one kind. Answers that are lost, requests that land late.
//! - The API server: resourceVersions, tests in patches, finalizers, what is being deleted.
//! - The native Job's controller, the kubelet and the garbage collector, in every order of what real ones were seen to do.
//! - Misfortune: tasks that fail, images that are not there, last words that are forgotten. What waits for its image may
//!   start until its pod is told to go, whatever is asked of its native Job.
//! - The truth: how each task ended, and what of that was ever shown. The word that ends a Job is judged by it.
//! - Meddling: native Jobs that vanish, are suspended or deleted; pods that are lost; somebody else's object under our name.
//! - Nodes that do not answer, for some time or for ever, and what starts, runs and ends there unheard (section 6, E4).
//! - An administrator's rulings at any time, and a backend that fails in the visit of a Job that was released (E4, F3).
//! - A full quota, which refuses native Jobs and pods, or a policy, which refuses releases (D1, E5).
//! - Nodes that are given up: their pods go, and what they ran goes on (E4, F3).
//! - A class that is not ready, not accepted, being deleted, gone, or there again with another UID or for another
//!   controller; settings that are gone or replaced (C1, C2, D1).
//!
//! How much of each may happen is the setting of a check. In every state the invariants of spec section 9 hold; from every
//! state, once nothing fails any more, all comes to rest: over, or waiting or in doubt with a cause that is told; a
//! deletion completes; then nothing is written.
//!
//! # What is not
//!
//! - The loop around the decisions (`job::act`), watches and queues: here a controller may look at any time.
//! - The controllers of classes and settings (H1 to H4): here a class says anything at any time, so one may go while a
//!   Job holds it.
//! - Acceptance by namespace, references, policy and resources; Jobs without a class; other adapters.
//! - Most rows of the table of evidence (section 6), and more than one pod of a native Job (E2): tables of tests have them.
//! - A task that outlives its native Job, and one whose node is given up after our stop was recorded: then a disappearance
//!   is its end (section 6). A task that starts on a node that was given up, or between a suspension and its pod's end.
//! - Time within a tick of 60 seconds, and clocks that differ.

#[cfg(test)]
mod life;
