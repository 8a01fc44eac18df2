#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! What a crash, a lost answer or a late request makes of a Job, and its TTL at scale.
//!
//! - [`crash_points`]: each request of a life is disturbed in each way; the end must be that of an undisturbed life
//!   (spec D2, D3, I1, F5). [`workloads`], [`undisturbed`], [`points`], [`ends`] and [`replicas`]
//!   are what it is made of;
//! - [`ttl`]: the removal of finished Jobs (spec F4, I9, I12), of which [`finished`] makes hundreds.

mod crash_points;
mod ends;
mod finished;
mod points;
mod replicas;
mod ttl;
mod undisturbed;
mod workloads;
