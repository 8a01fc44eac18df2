//! What reaches the program (spec D4): argv and values as they were written, native references, our own variables.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use serde_json::json;

use ayatori_tests::product::{
    jobs::{task, uid},
    scene::object,
    shared::in_namespace,
};

/// What a kubelet would expand, what a shell would, what YAML and JSON would trip over.
const TEXTS: [&str; 8] =
    ["$(HOME)", "$$", "$$(HOME)", "$(AYATORI_JOB_NAME) $", "-n ' \" \\ `id` ${HOME}", "糸を綾取る 🧵", "", " a\tb "];

#[tokio::test]
async fn arguments_and_values_reach_the_program_as_they_were_written() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let env: Vec<_> =
            TEXTS.iter().enumerate().map(|(n, text)| json!({"name": format!("V{n}"), "value": text})).collect();
        let values: String = (0..TEXTS.len()).map(|n| format!(" \"$V{n}\"")).collect();
        let script = format!("printf '[%s]\\n' \"$@\"{values} $(echo expanded by the shell)");
        let mut args = vec![script.as_str(), "sh"];
        args.extend(TEXTS);
        let job = json!({"image": "localhost/busybox:1", "command": ["sh", "-c"], "args": args, "env": env});
        let over = scene.run(&task("job", job)).await?;
        let twice = TEXTS.iter().chain(&TEXTS).copied();
        let wanted: String =
            twice.chain(["expanded", "by", "the", "shell"]).map(|text| format!("[{text}]\n")).collect();
        let log = scene.log(&over).await?;
        ensure!(log == wanted, "{log}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_program_sees_its_job_and_the_users_variables_keep_their_order() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let names = ["Z", "A", "M", "B"];
        let env: Vec<_> = names.iter().map(|name| json!({"name": name, "value": format!("value of {name}")})).collect();
        let job = json!({"image": "localhost/busybox:1", "command": ["/bin/env"], "env": env});
        let over = scene.run(&task("with-a-name", job)).await?;
        let log = scene.log(&over).await?;
        let lines: Vec<&str> = log.lines().collect();
        let own = [
            "AYATORI_JOB_NAME=with-a-name".to_owned(),
            format!("AYATORI_JOB_NAMESPACE={}", scene.namespace),
            format!("AYATORI_JOB_UID={}", uid(&over)),
        ];
        ensure!(own.iter().all(|line| lines.contains(&line.as_str())), "{log}");
        ensure!(names.iter().all(|name| lines.contains(&format!("{name}=value of {name}").as_str())), "{log}");
        // The order holds as far as our word goes: a kubelet (1.36) hands it on from a map.
        let pod = scene.pods_of(&over).await?.into_iter().next().and_then(|pod| pod.spec).context("a pod")?;
        let given = pod.containers[0].env.as_deref().unwrap_or_default();
        let given: Vec<&str> = given.iter().map(|variable| variable.name.as_str()).collect();
        ensure!(given[3..] == names, "{given:?}");
        ensure!(pod.enable_service_links == Some(false));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn secrets_and_config_maps_are_read_where_the_program_runs_and_the_working_directory_is_kept()
-> anyhow::Result<()> {
    in_namespace(async |scene| {
        let secret: Secret = object(&json!({"metadata": {"name": "secret"}, "stringData": {"key": "s3cret $(HOME)"}}))?;
        let config: ConfigMap = object(&json!({"metadata": {"name": "config"}, "data": {"key": "configured"}}))?;
        Api::namespaced(scene.client.clone(), &scene.namespace).create(&PostParams::default(), &secret).await?;
        Api::namespaced(scene.client.clone(), &scene.namespace).create(&PostParams::default(), &config).await?;
        let job = json!({
            "image": "localhost/busybox:1", "workingDir": "/tmp",
            "command": ["sh", "-c", "printf '%s,%s,%s,%s' \"$SECRET\" \"$CONFIG\" \"${ABSENT-unset}\" \"$(pwd)\""],
            "env": [
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "key"}}},
                {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "key"}}},
                {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "no", "key": "no", "optional": true}}},
            ],
        });
        let over = scene.run(&task("job", job)).await?;
        let log = scene.log(&over).await?;
        ensure!(log == "s3cret $(HOME),configured,unset,/tmp", "{log}");
        // I11: the value is nowhere but where it belongs.
        let native = serde_json::to_string(&scene.native_job(&over).await?.context("a native Job")?)?;
        ensure!(!native.contains("s3cret") && !serde_json::to_string(&over)?.contains("s3cret"));
        Ok(())
    })
    .await
}
