//! Looking up the class of a Job that names none (spec B1). Defaulting writes it; where there is none, validation warns,
//! which knows whether the Job is refused: a refusal carries no warnings (B3).

use ayatori_crds::rules::default_class::{DefaultClass, default_class};

use crate::lookups::{self, Freshness, LookupError, Lookups};
use crate::warnings::first_few;

/// What namespace and classes say. The store may not have seen yet what was annotated a moment ago, so that there is no
/// default is looked up live.
pub(crate) async fn look_up(lookups: &dyn Lookups, namespace: &str) -> Result<DefaultClass, LookupError> {
    match at(lookups, namespace, Freshness::Stored).await {
        Ok(DefaultClass::Named(name)) => Ok(DefaultClass::Named(name)),
        _ => at(lookups, namespace, Freshness::Live).await,
    }
}

async fn at(lookups: &dyn Lookups, namespace: &str, freshness: Freshness) -> Result<DefaultClass, LookupError> {
    let namespace = lookups::namespace(lookups, namespace, freshness).await?;
    let classes = lookups::classes(lookups, freshness).await?;
    Ok(default_class(&namespace.annotations, classes.iter().map(|class| &**class)))
}

/// Why a Job without a class waits. None where there is a default by now: the controller finds it.
pub(crate) fn warning(found: &Result<DefaultClass, LookupError>) -> Option<String> {
    let why = match found {
        Ok(DefaultClass::Named(_)) => return None,
        Ok(DefaultClass::None) => "neither the namespace nor the cluster has a default".to_owned(),
        Ok(DefaultClass::Ambiguous(names)) => format!("several classes are the default ({})", first_few(names)),
        Err(_) => "the default could not be looked up".to_owned(),
    };
    Some(format!("spec.jobClassName is not set and {why}: the Job waits"))
}
