//! What the cluster's built-in roles let people do with Jobs (`deploy/base/user_roles.yaml`): a ruling through `jobs/status`
//! is an administrator's alone (spec E4, F3), and so are classes.

use anyhow::{Context, ensure};
use ayatori_tests::{
    eventually,
    product::{
        scene::{BOUND, Scene},
        shared::in_namespace,
    },
};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{Api, api::PostParams};
use serde_json::json;

/// Whether the API server lets this user do that in the namespace.
async fn may(scene: &Scene, user: &str, verb: &str, resource: &str) -> anyhow::Result<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let asked = json!({"verb": verb, "group": "execution.ayatori.ddupan.top", "resource": resource,
        "subresource": subresource, "namespace": scene.namespace});
    let review: SubjectAccessReview =
        serde_json::from_value(json!({"metadata": {}, "spec": {"user": user, "resourceAttributes": asked}}))?;
    let answer = Api::all(scene.client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("no answer")?.allowed)
}

/// The user who has one of the built-in roles in the scene's namespace.
fn bind(scene: &Scene, role: &str) -> anyhow::Result<String> {
    let user = format!("{}-{role}", scene.namespace);
    let (role, by) = (format!("--clusterrole={role}"), format!("--user={user}"));
    scene.kubectl().ok(&["create", "rolebinding", &user, &role, &by])?;
    Ok(user)
}

#[tokio::test]
async fn people_see_and_run_jobs_by_the_built_in_roles_and_neither_rule_nor_choose_classes() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let (viewer, editor) = (&bind(scene, "view")?, &bind(scene, "edit")?);
        let allowed = [
            (viewer, "list", "jobs"),
            (viewer, "get", "jobs/status"),
            (editor, "create", "jobs"),
            (editor, "patch", "jobs"),
            (editor, "delete", "jobs"),
            (editor, "get", "jobs/status"),
        ];
        // The roles are put together, and known to the authorizer, a moment after they are made.
        eventually("the rights of people", BOUND, async || {
            for (user, verb, resource) in allowed {
                ensure!(may(scene, user, verb, resource).await?, "{user} may not {verb} {resource}");
            }
            Ok(())
        })
        .await?;
        for (user, verb, resource) in [
            (viewer, "create", "jobs"),
            (viewer, "patch", "jobs"),
            (viewer, "delete", "jobs"),
            (editor, "patch", "jobs/status"),
            (editor, "update", "jobs/status"),
            (editor, "update", "jobs/finalizers"),
            (editor, "create", "jobclasses"),
            (editor, "patch", "kubernetesexecutionparameters"),
        ] {
            ensure!(!may(scene, user, verb, resource).await?, "{user} may {verb} {resource}");
        }
        Ok(())
    })
    .await
}
