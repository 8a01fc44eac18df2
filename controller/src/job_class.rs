//! JobClass: whether it can be used (spec section 10).

pub mod act;
pub mod decide;
