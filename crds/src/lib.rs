//! The ayatori API and its rules, as pure code: no I/O, no clock, no randomness, no async.
//!
//! - the four kinds as users write them ([`job`], [`job_class`], [`parameters`]), with the CEL rules beside the fields
//!   that they guard, and the CustomResourceDefinitions made from them ([`definitions`]);
//! - the vocabulary: [`names`], [`conditions`], [`quantity`];
//! - the ten derived states of a Job ([`state`]);
//! - the W3C trace that a Job belongs to ([`trace_context`]);
//! - the rules that the webhook and the controller share ([`rules`]).

#![expect(clippy::duplicated_attributes, reason = "printer columns share a type")]
#![expect(unreachable_pub, reason = "the schema derive copies each public type into a function of its own")]

mod cel;
pub mod conditions;
pub mod definitions;
pub mod job;
pub mod job_class;
mod moment;
pub mod names;
pub mod parameters;
pub mod quantity;
pub mod resources;
pub mod rules;
pub mod state;
pub mod trace_context;

pub use conditions::{Condition, ConditionStatus};
pub use job::{Job, JobSpec, JobStatus};
pub use job_class::{JobClass, JobClassSpec, JobClassStatus};
pub use parameters::{
    KubernetesExecutionParameters, KubernetesExecutionParametersSpec, OpenSandboxExecutionParameters,
    OpenSandboxExecutionParametersSpec,
};
pub use quantity::Quantity;
pub use resources::{ResourceList, ResourceRequirements};
pub use state::JobState;
pub use trace_context::TraceContext;
