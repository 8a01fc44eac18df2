//! Which rights the process needs, and whether it has them: `deploy/base/cluster_role.yaml` grants the same.

use anyhow::{Result, bail};
use ayatori_controller::call::{CallError, bounded};
use ayatori_crds::names::GROUP;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};

/// Group, resource, verbs.
type Right = (&'static str, &'static str, &'static [&'static str]);

/// Without one of these a Job would hang somewhere on its way, behind lines in a log.
const NEEDED: [Right; 13] = [
    (GROUP, "jobs", &["get", "list", "watch", "patch", "delete"]),
    (GROUP, "jobs/status", &["patch"]),
    (GROUP, "jobclasses/status", &["patch"]),
    (GROUP, "jobs/finalizers", &["update"]),
    (GROUP, "jobclasses", &["get", "list", "watch", "patch"]),
    (GROUP, "kubernetesexecutionparameters", &["list", "watch", "patch"]),
    (GROUP, "opensandboxexecutionparameters", &["get", "list", "watch"]),
    ("batch", "jobs", &["get", "list", "watch", "create", "patch", "delete"]),
    ("", "pods", &["list", "watch"]),
    ("", "events", &["list"]),
    ("", "namespaces", &["get", "list", "watch"]),
    ("", "serviceaccounts", &["get"]),
    ("node.k8s.io", "runtimeclasses", &["get"]),
];

/// Questions to the API server at the same time.
const AT_ONCE: usize = 8;

/// Asks for each of them, in all namespaces; every authenticated user may.
pub(super) async fn check(client: &Client) -> Result<()> {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let all =
        NEEDED.iter().flat_map(|(group, resource, verbs)| verbs.iter().map(move |verb| (*group, *resource, *verb)));
    let answers = stream::iter(all).map(|right| {
        let reviews = &reviews;
        async move {
            let review = SelfSubjectAccessReview { spec: question(right), ..SelfSubjectAccessReview::default() };
            let answer = bounded(reviews.create(&PostParams::default(), &review)).await?;
            Ok((right, answer.status.is_some_and(|status| status.allowed)))
        }
    });
    let answers: Vec<_> = match answers.buffered(AT_ONCE).try_collect().await {
        Ok(answers) => answers,
        Err(error @ CallError::Refused(_)) => {
            // Whoever has forbidden the question has not thereby forbidden the work.
            tracing::warn!(%error, "not known whether this process has the rights that it needs");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let missing: Vec<String> = answers.iter().filter(|(_, allowed)| !allowed).map(|(right, _)| words(*right)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("not allowed to {}: deploy/base/cluster_role.yaml has what this process needs", missing.join("; "))
}

fn question((group, resource, verb): (&str, &str, &str)) -> SelfSubjectAccessReviewSpec {
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (resource, None),
    };
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource,
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), non_resource_attributes: None }
}

/// `patch jobs/status (API group "batch")`
fn words((group, resource, verb): (&str, &str, &str)) -> String {
    format!("{verb} {resource} (API group {group:?})")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use k8s_openapi::api::rbac::v1::ClusterRole;

    use super::*;

    /// Granted, and asked for nowhere: Events are told where it is allowed.
    const WORKS_WITHOUT: (&str, &str, &str) = ("events.k8s.io", "events", "create");

    #[test]
    fn what_is_asked_for_is_what_the_manifest_grants() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/base/cluster_role.yaml");
        let text = fs::read_to_string(file).unwrap();
        let role: ClusterRole = serde_saphyr::from_str(text.split("\n---").next().unwrap()).unwrap();
        let mut granted = BTreeSet::new();
        for rule in role.rules.unwrap() {
            for group in rule.api_groups.unwrap() {
                for resource in rule.resources.iter().flatten() {
                    granted.extend(rule.verbs.iter().map(|verb| words((&group, resource, verb))));
                }
            }
        }
        assert!(granted.remove(&words(WORKS_WITHOUT)));
        let needed =
            NEEDED.iter().flat_map(|(group, resource, verbs)| verbs.iter().map(|verb| words((group, resource, verb))));
        assert_eq!(needed.collect::<BTreeSet<_>>(), granted);
    }

    #[test]
    fn a_subresource_is_asked_for_as_one() {
        let asked = question((GROUP, "jobs/status", "patch")).resource_attributes.unwrap();
        assert_eq!((asked.resource.as_deref(), asked.subresource.as_deref()), (Some("jobs"), Some("status")));
        assert_eq!(words(("batch", "jobs", "get")), r#"get jobs (API group "batch")"#);
    }
}
