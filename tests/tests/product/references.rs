//! What a Job is told at creation of the objects that it names, and of its trace (spec B3, B7).

use anyhow::{Context, ensure};
use ayatori_crds::{
    Job,
    names::{TRACEPARENT_ANNOTATION, TRACESTATE_ANNOTATION},
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{job, task, with},
    scene::{Scene, object},
    shared::in_namespace,
};

const DRY: [&str; 4] = ["create", "-f", "-", "--dry-run=server"];

/// A Job with a pull secret, a Secret and two ConfigMaps, one of them optional.
fn referring() -> Value {
    let key = |word: &str, name: &str, optional: bool| json!({word: {"name": name, "key": "k", "optional": optional}});
    task(
        "job",
        json!({
            "image": "localhost/busybox:1", "command": ["true"],
            "imagePullSecrets": [{"name": "registry"}],
            "env": [
                {"name": "A", "valueFrom": key("secretKeyRef", "database", false)},
                {"name": "B", "valueFrom": key("configMapKeyRef", "settings", false)},
                {"name": "C", "valueFrom": key("configMapKeyRef", "extra", true)},
            ],
        }),
    )
}

fn told(scene: &Scene) -> anyhow::Result<String> {
    Ok(scene.kubectl().ok_with(&DRY, &referring().to_string())?.stderr)
}

#[tokio::test]
async fn what_a_job_names_and_is_not_there_is_a_warning_until_it_is() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let words = "Warning: Secrets registry, database do not exist: the Job waits until they do\n\
                     Warning: ConfigMap \"settings\" does not exist: the Job waits until it does\n";
        ensure!(told(scene)? == words, "{}", told(scene)?);
        let secrets = Api::<Secret>::namespaced(scene.client.clone(), &scene.namespace);
        for name in ["registry", "database"] {
            secrets.create(&PostParams::default(), &object(&json!({"metadata": {"name": name}}))?).await?;
        }
        let words = "Warning: ConfigMap \"settings\" does not exist: the Job waits until it does\n";
        ensure!(told(scene)? == words, "{}", told(scene)?);
        let maps = Api::<ConfigMap>::namespaced(scene.client.clone(), &scene.namespace);
        maps.create(&PostParams::default(), &object(&json!({"metadata": {"name": "settings"}}))?).await?;
        ensure!(told(scene)?.is_empty(), "{}", told(scene)?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_new_job_keeps_the_trace_of_the_request_that_made_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let create = async |name: &str, annotations: Value| -> anyhow::Result<Job> {
            let mut waiting = with(job(name, "exit 0"), "jobClassName", json!("no-such-class"));
            waiting["metadata"]["annotations"] = annotations;
            let path = format!("/apis/execution.ayatori.ddupan.top/v1alpha1/namespaces/{}/jobs", scene.namespace);
            let request = http::Request::post(path).header("content-type", "application/json");
            let request =
                request.header("traceparent", parent).header("tracestate", "vendor=1").header("baggage", "a=b");
            Ok(scene.client.request(request.body(serde_json::to_vec(&waiting)?)?).await?)
        };
        let made = create("traced", Value::Null).await?;
        let annotations = made.metadata.annotations.context("annotations")?;
        ensure!(annotations.get(TRACEPARENT_ANNOTATION).map(String::as_str) == Some(parent), "{annotations:?}");
        ensure!(annotations.get(TRACESTATE_ANNOTATION).map(String::as_str) == Some("vendor=1"), "{annotations:?}");
        ensure!(annotations.len() == 2, "{annotations:?}");

        let made = create("own", json!({TRACEPARENT_ANNOTATION: "the user's own"})).await?;
        let annotations = made.metadata.annotations.context("annotations")?;
        ensure!(
            annotations == [(TRACEPARENT_ANNOTATION.to_owned(), "the user's own".to_owned())].into(),
            "{annotations:?}"
        );
        Ok(())
    })
    .await
}
