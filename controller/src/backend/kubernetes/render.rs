//! The native Job of a Job: pure, from the API objects to `batch/v1`.

use std::collections::BTreeMap;

use ayatori_crds::{
    Job, KubernetesExecutionParametersSpec, Quantity, ResourceRequirements,
    job::{EnvVar, EnvVarSource, KeySelector},
    names::{
        API_VERSION, BACKEND_CLEANUP_FINALIZER, JOB_CLASS_LABEL, JOB_NAME_ANNOTATION, JOB_NAME_LABEL,
        JOB_NAMESPACE_LABEL, JOB_UID_LABEL, RELEASED_ANNOTATION,
    },
    resources::Figure,
};
use k8s_openapi::{
    api::{
        batch::v1::{Job as BatchJob, JobSpec as BatchJobSpec},
        core::v1::{
            Capabilities, ConfigMapKeySelector, Container, EnvVar as CoreEnvVar, EnvVarSource as CoreEnvVarSource,
            LocalObjectReference, PodSpec, PodTemplateSpec, ResourceRequirements as CoreResources, SeccompProfile,
            SecretKeySelector, SecurityContext,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity as CoreQuantity,
        apis::meta::v1::{ObjectMeta, OwnerReference},
    },
};

/// The name of the one container.
pub const CONTAINER: &str = "task";

/// Longest value of a label, in characters (Kubernetes).
const LABEL_VALUE_LIMIT: usize = 63;

/// The name of the native Job of a Job UID: never built from the user's name (spec D3). 39 characters for a UUID.
#[must_use]
pub fn native_name(job_uid: &str) -> String {
    format!("ay-{job_uid}")
}

/// Renders the native Job, suspended.
#[must_use]
pub fn native_job(
    job: &Job,
    resources: &ResourceRequirements,
    class_name: &str,
    parameters: &KubernetesExecutionParametersSpec,
) -> BatchJob {
    let uid = job.metadata.uid.clone().unwrap_or_default();
    let name = job.metadata.name.clone().unwrap_or_default();
    let labels = BTreeMap::from([
        (JOB_UID_LABEL.to_owned(), uid.clone()),
        (JOB_NAME_LABEL.to_owned(), label_value(&name)),
        (JOB_NAMESPACE_LABEL.to_owned(), job.metadata.namespace.clone().unwrap_or_default()),
        (JOB_CLASS_LABEL.to_owned(), label_value(class_name)),
    ]);
    let annotations = BTreeMap::from([(JOB_NAME_ANNOTATION.to_owned(), name.clone())]);
    let mut released = annotations.clone();
    released.insert(RELEASED_ANNOTATION.to_owned(), "false".to_owned());
    BatchJob {
        metadata: ObjectMeta {
            name: Some(native_name(&uid)),
            namespace: job.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            annotations: Some(released),
            finalizers: Some(vec![BACKEND_CLEANUP_FINALIZER.to_owned()]),
            owner_references: Some(vec![OwnerReference {
                api_version: API_VERSION.to_owned(),
                kind: "Job".to_owned(),
                name,
                uid,
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(BatchJobSpec {
            // Only the release starts it (spec D3).
            suspend: Some(true),
            // One pod, once: no retry, no replacement of a pod that is not over yet.
            completions: Some(1),
            parallelism: Some(1),
            backoff_limit: Some(0),
            pod_replacement_policy: Some("Failed".to_owned()),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    annotations: Some(annotations),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod_spec(job, resources, parameters)),
            },
            ..BatchJobSpec::default()
        }),
        status: None,
    }
}

fn pod_spec(job: &Job, resources: &ResourceRequirements, parameters: &KubernetesExecutionParametersSpec) -> PodSpec {
    let scheduling = parameters.scheduling.clone().unwrap_or_default();
    let pull_secrets = job.spec.task.image_pull_secrets.iter();
    let pull_secrets: Vec<_> = pull_secrets.map(|secret| LocalObjectReference { name: secret.name.clone() }).collect();
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        enable_service_links: Some(false),
        service_account_name: Some(parameters.service_account_name.clone()),
        runtime_class_name: parameters.runtime_class_name.clone(),
        node_selector: scheduling.node_selector,
        tolerations: some(scheduling.tolerations),
        security_context: parameters.pod_security_context.clone(),
        image_pull_secrets: some(pull_secrets),
        containers: vec![container(job, resources, parameters)],
        ..PodSpec::default()
    }
}

fn container(job: &Job, resources: &ResourceRequirements, parameters: &KubernetesExecutionParametersSpec) -> Container {
    let task = &job.spec.task;
    let context = parameters.pod_security_context.as_ref();
    let non_root = context.is_some_and(|context| context.run_as_non_root == Some(true));
    let no_profile = context.is_none_or(|context| context.seccomp_profile.is_none());
    Container {
        name: CONTAINER.to_owned(),
        image: Some(task.image.clone()),
        image_pull_policy: Some(parameters.image_pull_policy.as_str().to_owned()),
        command: some(task.command.iter().map(|word| literal(word)).collect()),
        args: some(task.args.iter().map(|word| literal(word)).collect()),
        working_dir: task.working_dir.clone(),
        env: Some(environment(job)),
        resources: Some(core_resources(resources)),
        // What the `restricted` Pod Security Standard asks for beside runAsNonRoot (spec D3).
        security_context: non_root.then(|| SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            seccomp_profile: no_profile
                .then(|| SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// The kubelet expands `$(VAR)` and turns `$$` into `$`: doubling each `$` makes any text literal (spec D4).
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The platform's variables, then the user's in their order.
fn environment(job: &Job) -> Vec<CoreEnvVar> {
    let platform = [
        ("AYATORI_JOB_NAME", &job.metadata.name),
        ("AYATORI_JOB_NAMESPACE", &job.metadata.namespace),
        ("AYATORI_JOB_UID", &job.metadata.uid),
    ];
    let platform = platform.into_iter().map(|(name, value)| CoreEnvVar {
        name: name.to_owned(),
        value: Some(value.clone().unwrap_or_default()),
        value_from: None,
    });
    platform.chain(job.spec.task.env.iter().map(variable)).collect()
}

fn variable(variable: &EnvVar) -> CoreEnvVar {
    CoreEnvVar {
        name: variable.name.clone(),
        value: variable.value.as_deref().map(literal),
        value_from: variable.value_from.as_ref().map(source),
    }
}

fn source(source: &EnvVarSource) -> CoreEnvVarSource {
    let (secret, config_map) = (source.secret_key_ref.as_ref(), source.config_map_key_ref.as_ref());
    CoreEnvVarSource {
        secret_key_ref: secret.map(|KeySelector { name, key, optional }| SecretKeySelector {
            name: name.clone(),
            key: key.clone(),
            optional: *optional,
        }),
        config_map_key_ref: config_map.map(|KeySelector { name, key, optional }| ConfigMapKeySelector {
            name: name.clone(),
            key: key.clone(),
            optional: *optional,
        }),
        ..CoreEnvVarSource::default()
    }
}

fn core_resources(resources: &ResourceRequirements) -> CoreResources {
    let list = |figures: [(&str, Figure); 2]| {
        let pairs = figures.into_iter().filter_map(|(name, figure)| {
            resources.get(figure).map(|Quantity(text)| (name.to_owned(), CoreQuantity(text.clone())))
        });
        let map: BTreeMap<_, _> = pairs.collect();
        (!map.is_empty()).then_some(map)
    };
    CoreResources {
        requests: list([("cpu", Figure::RequestsCpu), ("memory", Figure::RequestsMemory)]),
        limits: list([("cpu", Figure::LimitsCpu), ("memory", Figure::LimitsMemory)]),
        ..CoreResources::default()
    }
}

/// A name as a label value: cut, and not ending in what a label must not end in.
fn label_value(name: &str) -> String {
    let cut: String = name.chars().take(LABEL_VALUE_LIMIT).collect();
    cut.trim_end_matches(['-', '.', '_']).to_owned()
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn job() -> Job {
        serde_json::from_value(json!({
            "apiVersion": API_VERSION, "kind": "Job",
            "metadata": {"name": "hello", "namespace": "ci", "uid": "4a5c2f8e-0000-4000-8000-000000000001"},
            "spec": {"task": {
                "image": "app:1", "command": ["sh", "-c"], "args": ["echo $(HOME) $$"], "workingDir": "/work",
                "imagePullSecrets": [{"name": "pull"}],
                "env": [
                    {"name": "B", "value": "$(A)"},
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
                ],
            }},
        }))
        .unwrap()
    }

    fn rendered(parameters: serde_json::Value) -> serde_json::Value {
        let parameters: KubernetesExecutionParametersSpec = serde_json::from_value(parameters).unwrap();
        let mut resources = ResourceRequirements::default();
        resources.set(Figure::LimitsCpu, "1".into());
        serde_json::to_value(native_job(&job(), &resources, "small", &parameters)).unwrap()
    }

    #[test]
    fn it_is_suspended_runs_once_and_belongs_to_its_job() {
        let native = rendered(json!({"serviceAccountName": "runner"}));
        assert_eq!(native["metadata"]["name"], "ay-4a5c2f8e-0000-4000-8000-000000000001");
        assert_eq!(native["metadata"]["finalizers"], json!([BACKEND_CLEANUP_FINALIZER]));
        let owner = &native["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["controller"], &owner["blockOwnerDeletion"]), (&json!(true), &json!(true)));
        assert_eq!(owner["uid"], "4a5c2f8e-0000-4000-8000-000000000001");
        let spec = &native["spec"];
        for (field, value) in [
            ("suspend", json!(true)),
            ("completions", json!(1)),
            ("parallelism", json!(1)),
            ("backoffLimit", json!(0)),
            ("podReplacementPolicy", json!("Failed")),
        ] {
            assert_eq!(spec[field], value, "{field}");
        }
        assert!(spec.get("ttlSecondsAfterFinished").is_none() && spec.get("podFailurePolicy").is_none());
        assert_eq!(spec["template"]["spec"]["restartPolicy"], "Never");
        assert_eq!(native["metadata"]["labels"], spec["template"]["metadata"]["labels"]);
    }

    #[test]
    fn argv_and_values_are_literal_and_env_keeps_its_order() {
        let native = rendered(json!({"serviceAccountName": "runner"}));
        let container = &native["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["args"], json!(["echo $$(HOME) $$$$"]));
        let env = container["env"].as_array().unwrap();
        let names: Vec<_> = env.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["AYATORI_JOB_NAME", "AYATORI_JOB_NAMESPACE", "AYATORI_JOB_UID", "B", "A"]);
        assert_eq!(env[3]["value"], "$$(A)");
        assert_eq!(env[4]["valueFrom"]["secretKeyRef"], json!({"name": "s", "key": "k", "optional": true}));
        assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
    }

    #[test]
    fn run_as_non_root_brings_what_the_restricted_standard_asks_for() {
        let native = rendered(json!({"serviceAccountName": "runner"}));
        assert!(native["spec"]["template"]["spec"]["containers"][0].get("securityContext").is_none());
        let native = rendered(json!({"serviceAccountName": "r", "podSecurityContext": {"runAsNonRoot": true}}));
        let context = &native["spec"]["template"]["spec"]["containers"][0]["securityContext"];
        assert_eq!(
            context,
            &json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}})
        );
    }

    /// What the kubelet does with `$(VAR)` and `$$`, after its documentation.
    fn kubelet_expands(text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                out.push('$');
                rest = tail;
            } else if after.starts_with('(') && after.contains(')') {
                out.push_str("EXPANDED");
                rest = after.split_once(')').map_or("", |(_, tail)| tail);
            } else {
                out.push('$');
                rest = after;
            }
        }
        out + rest
    }

    proptest! {
        #[test]
        fn any_text_reaches_the_program_as_it_was_written(text in "[$()A-Z ]{0,24}") {
            prop_assert_eq!(kubelet_expands(&literal(&text)), text);
        }

        #[test]
        fn any_name_gives_a_label_value(name in "[a-z0-9]([-.a-z0-9]{0,250}[a-z0-9])?") {
            let value = label_value(&name);
            prop_assert!(value.len() <= 63 && value.ends_with(|c: char| c.is_ascii_alphanumeric()));
        }
    }
}
