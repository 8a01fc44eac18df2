//! The ayatori controllers. A Job's way: the stores show it, [`job::view`] gathers what is seen, [`job::decide`] says
//! what is next (pure), [`job::act`] sends at most one request, and the answer is looked at again.
//!
//! Safety never rests on there being one controller: what could start something is a patch that tests a UID which was
//! recorded in the Job's status before (`docs/contract.md` D2, D3).

pub mod backend;
pub mod call;
pub mod clock;
pub mod events;
pub mod job;
pub mod job_class;
pub mod metrics;
pub mod parameters;
pub mod patch;
pub mod queue;
pub mod references;
pub mod stores;
pub mod telemetry;
pub mod ttl;
pub mod write;
