//! The page against its documentation, and who gets it.

mod access;
mod documented;
mod plain;
