//! Admission webhooks of others, which the API server asks about native Jobs, too (spec D1).

use anyhow::ensure;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{condition, job, message},
    scene::object,
    shared::in_namespace,
};

#[tokio::test]
async fn a_webhook_of_others_that_does_not_answer_is_told_as_what_keeps_the_job_waiting() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let webhooks = Api::<ValidatingWebhookConfiguration>::all(scene.client.clone());
        let here = json!({"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}});
        let rules =
            json!([{"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}]);
        let away = object(&json!({"metadata": {"name": scene.namespace}, "webhooks": [{
            "name": "away.example.test", "failurePolicy": "Fail", "timeoutSeconds": 1, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "namespaceSelector": here, "rules": rules,
            // Nothing listens on port 1.
            "clientConfig": {"url": "https://127.0.0.1:1/"},
        }]}))?;
        webhooks.create(&PostParams::default(), &away).await?;
        scene.create(&job("job", "exit 0")).await?;
        let waiting = scene.until_condition("job", "Scheduled", "False/BackendRefused").await?;
        ensure!(message(&waiting, "Scheduled").contains("away.example.test"), "{}", message(&waiting, "Scheduled"));
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        ensure!(scene.native_jobs.list(&ListParams::default()).await?.items.is_empty(), "it was started");
        webhooks.delete(&scene.namespace, &DeleteParams::default()).await?;
        Ok(())
    })
    .await
}
