//! What the rules need to know of the cluster: stores first, a live read where a store could be behind (spec B2).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ayatori_crds::rules::references::Referent;
use ayatori_crds::rules::syntax::is_subdomain;
use ayatori_crds::{JobClass, OpenSandboxExecutionParameters};
use futures::future::BoxFuture;

/// What the rules read of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceMeta {
    /// Its labels, which a class's `allowedNamespaces` selects by.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, of which one names the default class.
    pub annotations: BTreeMap<String, String>,
}

/// A live read that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {what}: {why}")]
pub struct LookupError {
    /// What was asked for, such as `namespace team-a`.
    pub what: String,
    /// What the API server or the network said.
    pub why: String,
}

/// The answer of a live read.
pub type Live<'a, T> = BoxFuture<'a, Result<T, LookupError>>;

/// The stores, shared with the controllers, and the API server behind them.
pub trait Lookups: fmt::Debug + Send + Sync {
    /// The namespace, from the store.
    fn namespace(&self, name: &str) -> Option<Arc<NamespaceMeta>>;
    /// The class, from the store.
    fn class(&self, name: &str) -> Option<Arc<JobClass>>;
    /// All classes, from the store.
    fn classes(&self) -> Vec<Arc<JobClass>>;
    /// Settings of the OpenSandbox adapter, from the store.
    fn sandbox_parameters(&self, name: &str) -> Option<Arc<OpenSandboxExecutionParameters>>;
    /// The namespace, from the API server; `None` when it does not exist.
    fn live_namespace<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<NamespaceMeta>>>;
    /// The class, from the API server; `None` when it does not exist.
    fn live_class<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<JobClass>>>;
    /// All classes, from the API server.
    fn live_classes(&self) -> Live<'_, Vec<Arc<JobClass>>>;
    /// Settings of the OpenSandbox adapter, from the API server; `None` when they do not exist.
    fn live_sandbox_parameters<'a>(&'a self, name: &'a str) -> Live<'a, Option<Arc<OpenSandboxExecutionParameters>>>;
    /// Whether a namespace has an object of that kind and name, without a look into it. It is in no store.
    fn live_exists<'a>(&'a self, namespace: &'a str, referent: Referent, name: &'a str) -> Live<'a, bool>;
}

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As the store has it; what it does not have is read live once, for it may be behind.
    Stored,
    /// As the API server has it now: before a refusal.
    Live,
}

/// The namespace; an absent one has neither labels nor annotations.
pub(crate) async fn namespace(
    lookups: &dyn Lookups,
    name: &str,
    freshness: Freshness,
) -> Result<Arc<NamespaceMeta>, LookupError> {
    let stored = if freshness == Freshness::Stored { lookups.namespace(name) } else { None };
    match stored {
        Some(found) => Ok(found),
        None => Ok(lookups.live_namespace(name).await?.unwrap_or_default()),
    }
}

/// The class, if it exists.
pub(crate) async fn class(
    lookups: &dyn Lookups,
    name: &str,
    freshness: Freshness,
) -> Result<Option<Arc<JobClass>>, LookupError> {
    if_named(name, freshness, |name| lookups.class(name), |name| lookups.live_class(name)).await
}

/// The settings of the OpenSandbox adapter, if they exist.
pub(crate) async fn sandbox_parameters(
    lookups: &dyn Lookups,
    name: &str,
    freshness: Freshness,
) -> Result<Option<Arc<OpenSandboxExecutionParameters>>, LookupError> {
    let live = |name| lookups.live_sandbox_parameters(name);
    if_named(name, freshness, |name| lookups.sandbox_parameters(name), live).await
}

/// What cannot be a name is not asked for: it would be part of a request's path.
async fn if_named<'a, T>(
    name: &'a str,
    freshness: Freshness,
    stored: impl FnOnce(&str) -> Option<Arc<T>>,
    live: impl FnOnce(&'a str) -> Live<'a, Option<Arc<T>>>,
) -> Result<Option<Arc<T>>, LookupError> {
    let stored = if freshness == Freshness::Stored { stored(name) } else { None };
    match stored {
        Some(found) => Ok(Some(found)),
        None if !is_subdomain(name) => Ok(None),
        None => live(name).await,
    }
}

/// All classes. A store's list cannot miss, so `Stored` never reads live.
pub(crate) async fn classes(lookups: &dyn Lookups, freshness: Freshness) -> Result<Vec<Arc<JobClass>>, LookupError> {
    match freshness {
        Freshness::Stored => Ok(lookups.classes()),
        Freshness::Live => lookups.live_classes().await,
    }
}
