//! Tests only. They are a crate of their own as the checker's code is generic: it is compiled with whoever uses it, and
//! in debug mode a state costs ten times as much as with optimization, which this crate alone gets (see the workspace's
//! profile).

#[cfg(test)]
mod life;
