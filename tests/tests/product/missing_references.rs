//! Secrets and ConfigMaps that a task needs (spec C1, C3; matrix: Secret/ConfigMap/key created later).

use anyhow::ensure;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{condition, exit_code, message, task},
    scene::{Scene, object},
    shared::in_namespace,
};

fn wanting(source: Value, optional: bool) -> Value {
    let (kind, name, key) = (&source["kind"], &source["name"], &source["key"]);
    let word = kind.as_str().unwrap_or_default();
    let reference = json!({word: {"name": name, "key": key, "optional": optional}});
    let env = json!([{"name": "KEY", "valueFrom": reference}]);
    task("job", json!({"image": "localhost/busybox:1", "command": ["sh", "-c", "exit ${KEY:-9}"], "env": env}))
}

async fn nothing_runs(scene: &Scene) -> anyhow::Result<()> {
    ensure!(scene.native_jobs.list(&ListParams::default()).await?.items.is_empty(), "something was started");
    Ok(())
}

#[tokio::test]
async fn a_job_waits_for_its_secret_and_then_for_the_key_in_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&wanting(json!({"kind": "secretKeyRef", "name": "late", "key": "key"}), false)).await?;
        let waiting = scene.until_condition("job", "Accepted", "False/SecretNotFound").await?;
        ensure!(message(&waiting, "Accepted") == "waiting for Secret \"late\" to be created");
        let secrets = Api::<Secret>::namespaced(scene.client.clone(), &scene.namespace);
        let empty: Secret = object(&json!({"metadata": {"name": "late"}, "stringData": {"other": "x"}}))?;
        secrets.create(&PostParams::default(), &empty).await?;
        scene.until_condition("job", "Accepted", "False/SecretKeyNotFound").await?;
        nothing_runs(scene).await?;
        let key = Patch::Merge(json!({"stringData": {"key": "7"}}));
        secrets.patch("late", &PatchParams::default(), &key).await?;
        ensure!(exit_code(&scene.over("job").await?) == Some(7));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_key_is_found_also_where_the_api_server_does_not_list_it() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        // Whoever empties the list of managed fields takes the names of the keys off the metadata.
        let maps = Api::<ConfigMap>::namespaced(scene.client.clone(), &scene.namespace);
        let map: ConfigMap = object(&json!({"metadata": {"name": "c"}, "data": {"key": "5"}}))?;
        maps.create(&PostParams::default(), &map).await?;
        let strip = Patch::Merge(json!({"metadata": {"managedFields": [{}]}}));
        let stripped = maps.patch("c", &PatchParams::default(), &strip).await?;
        ensure!(stripped.metadata.managed_fields.is_none(), "{:?}", stripped.metadata.managed_fields);
        scene.create(&wanting(json!({"kind": "configMapKeyRef", "name": "c", "key": "key"}), false)).await?;
        ensure!(exit_code(&scene.over("job").await?) == Some(5));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_is_missing_has_its_own_reason_and_what_is_optional_is_not_asked_for() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let mut map = wanting(json!({"kind": "configMapKeyRef", "name": "none", "key": "key"}), false);
        map["metadata"]["name"] = json!("map");
        scene.create(&map).await?;
        let mut pull = task("pull", json!({"image": "localhost/busybox:1", "imagePullSecrets": [{"name": "none"}]}));
        pull["metadata"]["name"] = json!("pull");
        scene.create(&pull).await?;
        scene.until_condition("map", "Accepted", "False/ConfigMapNotFound").await?;
        scene.until_condition("pull", "Accepted", "False/ImagePullSecretNotFound").await?;
        scene.create(&wanting(json!({"kind": "secretKeyRef", "name": "none", "key": "key"}), true)).await?;
        let over = scene.over("job").await?;
        ensure!(exit_code(&over) == Some(9), "{}", condition(&over, "Succeeded"));
        Ok(())
    })
    .await
}
