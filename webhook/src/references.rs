//! Whether what a Job names is there (spec B3): a warning, as it may come later.
//!
//! Secrets are in no store, for that would take the right to watch all of them. So each name is asked for by itself,
//! without a look into it; only a few, at once, and for a short part of the time that the request has. What cannot be
//! found out in that time, or is not ours to ask, is not warned of.

use std::collections::BTreeSet;
use std::time::Duration;

use ayatori_crds::job::TaskSpec;
use ayatori_crds::rules::references::{Referent, required};
use ayatori_crds::rules::syntax::is_subdomain;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use crate::lookups::Lookups;
use crate::warnings::first_few;
use crate::{Request, Warnings};

/// Whether it is looked up if what a Job names is there. It takes the right to get Secrets and ConfigMaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceChecks {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// Names that are asked for, at most: each is a request to the API server.
const ASKED: usize = 8;
/// The longest that the answers are waited for. One takes a few milliseconds.
const LONGEST: Duration = Duration::from_secs(1);

/// Adds a warning for each kind of which something is missing.
pub(crate) async fn warn_of_missing(
    lookups: &dyn Lookups,
    request: &Request<'_>,
    task: &TaskSpec,
    warnings: &mut Warnings,
) {
    let asked = names(task);
    if asked.is_empty() {
        return;
    }
    let missing = missing(lookups, &request.namespace, &asked, request.arrival.give_up(LONGEST)).await;
    for referent in [Referent::Secret, Referent::ConfigMap] {
        // In the order of the Job, not of the answers.
        let of_kind: Vec<&str> =
            asked.iter().filter(|name| name.0 == referent && missing.contains(name)).map(|(_, name)| *name).collect();
        let kind = referent.as_str();
        match of_kind.as_slice() {
            [] => {}
            [only] => warnings.add(&format!("{kind} {only:?} does not exist: the Job waits until it does")),
            several => {
                warnings.add(&format!("{kind}s {} do not exist: the Job waits until they do", first_few(several)));
            }
        }
    }
}

/// The first few names that a task needs, each once. An empty one is said nothing of.
fn names(task: &TaskSpec) -> Vec<(Referent, &str)> {
    let mut seen = BTreeSet::new();
    let all = required(task).into_iter().map(|reference| (reference.referent, reference.name));
    all.filter(|asked| !asked.1.is_empty() && seen.insert(*asked)).take(ASKED).collect()
}

/// Those that are known to be missing by the deadline.
async fn missing<'a>(
    lookups: &dyn Lookups,
    namespace: &str,
    asked: &[(Referent, &'a str)],
    deadline: Instant,
) -> BTreeSet<(Referent, &'a str)> {
    let mut answers: FuturesUnordered<_> = asked
        .iter()
        .map(|&(referent, name)| async move {
            // What cannot be a name is no part of a request's path, and exists nowhere.
            let exists =
                if is_subdomain(name) { lookups.live_exists(namespace, referent, name).await } else { Ok(false) };
            ((referent, name), exists)
        })
        .collect();
    let mut missing = BTreeSet::new();
    while let Ok(Some((name, exists))) = timeout_at(deadline, answers.next()).await {
        match exists {
            Ok(true) => {}
            Ok(false) => {
                missing.insert(name);
            }
            Err(error) => tracing::debug!(%error, "not known whether it exists"),
        }
    }
    missing
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
