//! Pod Security (spec D3): a class whose tasks are not root works where `restricted` is enforced.

use anyhow::ensure;
use serde_json::json;

use ayatori_tests::product::{
    jobs::{class, condition, job, parameters, with},
    scene::offer,
    shared::in_namespace,
};

#[tokio::test]
async fn a_class_that_runs_as_non_root_works_in_a_restricted_namespace() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-non-root", scene.namespace);
        let mut settings = parameters(&name);
        settings["spec"]["podSecurityContext"] =
            json!({"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}});
        offer(&scene.client, &class(&name), &settings).await?;
        let label = "pod-security.kubernetes.io/enforce=restricted";
        scene.kubectl().ok(&["label", "namespace", &scene.namespace, label])?;
        let over = scene.run(&with(job("job", "id -u"), "jobClassName", json!(name))).await?;
        ensure!(condition(&over, "Succeeded") == "True/Completed", "{:?}", over.status);
        let log = scene.log(&over).await?;
        ensure!(log == "65532\n", "{log}");
        Ok(())
    })
    .await
}
