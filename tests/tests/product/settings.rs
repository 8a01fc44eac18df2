//! Settings of the adapters (spec B8), and what a class of the OpenSandbox adapter refuses (spec B2, G8).

use anyhow::ensure;
use serde_json::{Value, json};

use ayatori_tests::product::{
    jobs::{class, parameters, task, with},
    kubectl::Kubectl,
    scene::{Scene, offer_class},
    shared::in_namespace,
};

const KUBERNETES: &str = "kubernetesexecutionparameters";

fn sandbox_settings(name: &str) -> Value {
    json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "OpenSandboxExecutionParameters",
        "metadata": {"name": name},
        "spec": {
            "endpoint": "https://sandbox.example",
            "apiKeySecretRef": {"namespace": "ayatori-system", "name": "key", "key": "api-key"},
        },
    })
}

/// kubectl says exactly that, and fails.
fn is_refused(scene: &Scene, arguments: &[&str], manifest: &Value, words: &str) -> anyhow::Result<()> {
    let said = scene.kubectl().run(arguments, &manifest.to_string())?;
    ensure!(!said.success && said.stderr == words, "kubectl said:\n{}\nwanted:\n{words}", said.stderr);
    Ok(())
}

#[tokio::test]
async fn settings_that_a_class_uses_stay_until_it_is_gone() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-used", scene.namespace);
        offer_class(&scene.client, &name).await?;
        let words = format!(
            "Error from server (Forbidden): admission webhook \
             \"validate.{KUBERNETES}.execution.ayatori.ddupan.top\" denied the request: \
             {KUBERNETES}.execution.ayatori.ddupan.top \"{name}\" is forbidden: JobClass {name} uses it: delete what uses \
             it first\n"
        );
        for dry in ["--dry-run=none", "--dry-run=server"] {
            // In no namespace: kubectl would warn of it.
            let said = Kubectl::of(scene.cluster).run(&["delete", KUBERNETES, &name, dry], "")?;
            ensure!(!said.success && said.stderr == words, "kubectl said:\n{}\nwanted:\n{words}", said.stderr);
        }
        scene.kubectl().ok(&["label", KUBERNETES, &name, "edited=yes"])?;
        scene.kubectl().ok(&["delete", "jobclass", &name])?;
        scene.kubectl().ok(&["delete", KUBERNETES, &name, "--dry-run=server"])?;
        scene.kubectl().ok(&["delete", KUBERNETES, &name])?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused_with_every_fault() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let name = format!("{}-wrong", scene.namespace);
        let create = ["create", "-f", "-"];
        let wrong = with(with(parameters(&name), "serviceAccountName", json!("Nobody")), "runtimeClassName", json!("a/b"));
        let rule = "must be a name: up to 253 lower case letters, digits, '-' or '.', with a letter or digit at the ends";
        let words = format!(
            "The KubernetesExecutionParameters \"{name}\" is invalid: \n\
             * spec.serviceAccountName: Invalid value: \"Nobody\": {rule}\n\
             * spec.runtimeClassName: Invalid value: \"a/b\": {rule}\n"
        );
        is_refused(scene, &create, &wrong, &words)?;

        let wrong = with(sandbox_settings(&name), "endpoint", json!("https://sandbox.example?token=secret"));
        let words = format!(
            "The OpenSandboxExecutionParameters \"{name}\" is invalid: spec.endpoint: Invalid value: must be a base URL, \
             without a query or fragment\n"
        );
        is_refused(scene, &create, &wrong, &words)
    })
    .await
}

#[tokio::test]
async fn a_sandbox_class_refuses_secrets_that_its_settings_keep_out_and_tasks_without_a_command() -> anyhow::Result<()>
{
    in_namespace(async |scene| {
        let name = format!("{}-boxed", scene.namespace);
        let mut boxed = class(&name);
        boxed["spec"]["controllerName"] = json!("execution.ayatori.ddupan.top/opensandbox");
        boxed["spec"]["parametersRef"]["kind"] = json!("OpenSandboxExecutionParameters");
        scene.kubectl().ok_with(&["create", "-f", "-"], &sandbox_settings(&name).to_string())?;
        scene.kubectl().ok_with(&["create", "-f", "-"], &boxed.to_string())?;
        let secret = json!({
            "image": "localhost/busybox:1", "imagePullSecrets": [{"name": "registry"}],
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        });
        let secretive = with(task("job", secret), "jobClassName", json!(name));
        let words = format!(
            "The Job \"job\" is invalid: \n\
             * spec.task.command: Required value: JobClass \"{name}\" runs tasks in sandboxes, where the image's own \
             entrypoint is not used: say what to run\n\
             * spec.task.imagePullSecrets: Forbidden: JobClass \"{name}\" passes no registry credentials on: use an image \
             that needs none, or another class\n\
             * spec.task.env[0].valueFrom.secretKeyRef: Forbidden: JobClass \"{name}\" passes no values of Secrets on: \
             use a value, a ConfigMap, or another class\n"
        );
        let dry = ["create", "-f", "-", "--dry-run=server"];
        is_refused(scene, &dry, &secretive, &words)?;

        // At once: a store that has not seen the edit never refuses.
        let allow = json!({"spec": {"allowSecretEnv": true, "allowImageAuth": true}}).to_string();
        scene.kubectl().ok(&["patch", "opensandboxexecutionparameters", &name, "--type=merge", "-p", &allow])?;
        let mut allowed = secretive;
        allowed["spec"]["task"]["command"] = json!(["true"]);
        scene.kubectl().ok_with(&dry, &allowed.to_string())?;
        Ok(())
    })
    .await
}
