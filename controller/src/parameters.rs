//! Settings of the Kubernetes adapter: they stay while a class names them (spec H3).

pub mod act;
pub mod decide;
