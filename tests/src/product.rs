//! For suites: ayatori as a whole. Its binary, with the rights that `deploy/` gives it, on a real Kubernetes with a
//! node.
//!
//! - [`binary`], [`installation`], [`process`]: the binary of this build, what `deploy/` gives it, and one running;
//! - [`shared`]: the one cluster with one ayatori that most tests share, and a namespace for each;
//! - [`own`]: a second cluster for the tests that kill ayatori or stop its webhook, one at a time;
//! - [`metrics`]: what a process counts, read as a scraper reads it;
//! - [`webhooks`]: taking the webhook configurations away for a while;
//! - [`scene`]: what a test does in its namespace; [`jobs`]: manifests and what is read off a Job; [`audit`]: what the
//!   API server says was done; [`starts`]: what the tasks say; [`task_process`]: the task itself, on the node;
//!   [`kubectl`]: what people see.
//!
//! Every version of every Job of both clusters is checked as it is written ([`crate::record`]).

// Every error in here is a test's failure: what was asked for did not happen.
#![allow(clippy::missing_errors_doc)]

pub mod audit;
pub mod binary;
pub mod installation;
pub mod jobs;
pub mod kubectl;
pub mod metrics;
pub mod own;
pub mod process;
pub mod scene;
pub mod shared;
pub mod starts;
pub mod task_process;
pub mod webhooks;
