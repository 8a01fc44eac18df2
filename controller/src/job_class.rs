//! Classes: what their status says, and that they stay while a Job holds them.

pub mod act;
pub mod decide;
mod holders;
pub mod status;
