//! The rules that the webhook and the controller share (spec sections 3 and 4, B10): pure functions that return every
//! fault that they find.

pub mod class_policy;
pub mod default_class;
pub mod field_error;
pub mod image;
pub mod namespace;
pub mod parameters;
pub mod policy;
pub mod references;
pub mod resources;
pub mod same_spec;
pub mod sandbox;
pub mod syntax;
pub mod task;

pub use field_error::{FieldError, FieldErrorKind};
pub use policy::Policy;
