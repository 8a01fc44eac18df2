//! Removal of finished Jobs when their time is over (spec F4).

pub mod act;
pub mod decide;
