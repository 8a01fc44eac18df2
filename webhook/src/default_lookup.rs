//! Looking up the class of a Job that names none (spec B1). Defaulting writes it; where there is none, validation warns,
//! which knows whether the Job is refused: a refusal carries no warnings (B3).

use std::time::Duration;

use ayatori_crds::rules::default_class::{DefaultClass, default_class};
use tokio::time::timeout_at;

use crate::Request;
use crate::lookups::{self, Freshness, LookupError, Lookups};
use crate::warnings::first_few;

/// The longest that it is looked for. A read takes a few milliseconds.
const LONGEST: Duration = Duration::from_secs(2);

/// What namespace and classes say. The store may not have seen yet what was annotated a moment ago, so that there is no
/// default is looked up live. A Job is not refused for want of a default, so nor is it for want of an answer.
pub(crate) async fn look_up(lookups: &dyn Lookups, request: &Request<'_>) -> Result<DefaultClass, LookupError> {
    let look = async {
        match at(lookups, &request.namespace, Freshness::Stored).await {
            Ok(DefaultClass::Named(name)) => Ok(DefaultClass::Named(name)),
            _ => at(lookups, &request.namespace, Freshness::Live).await,
        }
    };
    timeout_at(request.arrival.give_up(LONGEST), look).await.unwrap_or_else(|_| {
        Err(LookupError { what: "the default JobClass".to_owned(), why: "no answer in time".to_owned() })
    })
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ayatori_crds::rules::Policy;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Cluster, Held, verdict_on, warned};
    use crate::{Answer, Arrival, JobDefaulting, JobValidation, ReferenceChecks};

    #[tokio::test(start_paused = true)]
    async fn a_job_is_not_refused_because_its_default_could_not_be_looked_up_in_time() {
        let slow = Arc::new(Cluster {
            live: Some(Held::default().namespace("team-a", &[], &[]).class("small", &json!({}))),
            delay: Duration::from_secs(60),
            ..Cluster::default()
        });
        let begin = Instant::now();
        let arrival = || Arrival { deadline: Some(begin + Duration::from_secs(10)), ..Arrival::default() };
        let classless = json!({
            "kind": "Job",
            "metadata": {"name": "x", "namespace": "team-a"},
            "spec": {"task": {"image": "registry.example/app:1"}}
        });
        let validation = JobValidation::new(Arc::<Cluster>::clone(&slow), Policy::default(), ReferenceChecks::Off);
        let answer = verdict_on(&validation, Some(&classless), None, arrival()).await;
        assert_eq!(
            warned(&answer),
            ["spec.jobClassName is not set and the default could not be looked up: the Job waits"]
        );
        let answer = verdict_on(&JobDefaulting::new(slow, Policy::default()), Some(&classless), None, arrival()).await;
        let Answer::Allowed { patch: Some(patch), .. } = answer else { panic!("{answer:?}") };
        assert!(!serde_json::to_string(&patch).unwrap().contains("jobClassName"), "{patch}");
        assert!(begin.elapsed() < Duration::from_secs(6), "there is time left for the answer");
    }
}
