//! The webhook configurations as values, so that paths and rules cannot drift from the code that serves them.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use ayatori_crds::names::{GROUP, IS_DEFAULT_JOB_CLASS_ANNOTATION, JOB_CLEANUP_FINALIZER, VERSION};

/// Name of the MutatingWebhookConfiguration.
pub const MUTATING: &str = "ayatori-mutating";
/// Name of the ValidatingWebhookConfiguration.
pub const VALIDATING: &str = "ayatori-validating";
/// Where Jobs are defaulted.
pub const MUTATE_JOBS: &str = "/mutate-jobs";
/// Where Jobs are validated.
pub const VALIDATE_JOBS: &str = "/validate-jobs";
/// Where JobClasses are validated.
pub const VALIDATE_JOB_CLASSES: &str = "/validate-jobclasses";
/// Where settings of the Kubernetes adapter are validated.
pub const VALIDATE_KUBERNETES_PARAMETERS: &str = "/validate-kubernetesexecutionparameters";
/// Where settings of the OpenSandbox adapter are validated.
pub const VALIDATE_OPENSANDBOX_PARAMETERS: &str = "/validate-opensandboxexecutionparameters";

/// Seconds that the API server waits for an answer.
const TIMEOUT_SECONDS: i32 = 10;

/// How the API server reaches us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Through a Service, at its port 443.
    Service {
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
    },
    /// At an address: `https://HOST:PORT` without a path. For development outside of the cluster.
    Url(String),
}

/// Both configurations, without caBundle: whoever manages the certificate writes it.
#[must_use]
pub fn configurations(target: &Target) -> (MutatingWebhookConfiguration, ValidatingWebhookConfiguration) {
    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mutating = MutatingWebhookConfiguration {
        metadata: named(MUTATING),
        webhooks: Some(vec![mutating(target, MUTATE_JOBS, &JOBS)]),
    };
    let validating = ValidatingWebhookConfiguration {
        metadata: named(VALIDATING),
        webhooks: Some(vec![
            validating(target, VALIDATE_JOBS, &JOBS),
            validating(target, VALIDATE_JOB_CLASSES, &JOB_CLASSES),
            validating(target, VALIDATE_KUBERNETES_PARAMETERS, &parameters("kubernetesexecutionparameters")),
            validating(target, VALIDATE_OPENSANDBOX_PARAMETERS, &parameters("opensandboxexecutionparameters")),
        ]),
    };
    (mutating, validating)
}

/// A kind as the rules name it.
struct Intercepted {
    resource: &'static str,
    scope: &'static str,
    operations: &'static [&'static str],
    /// Which requests need the webhook.
    condition: fn() -> MatchCondition,
}

/// Never DELETE: a dead webhook must not keep a Job, a namespace or a class from going.
const WRITES: &[&str] = &["CREATE", "UPDATE"];
/// Settings are cluster-scoped and belong to administrators: no namespace waits for them to go.
const WRITES_AND_DELETE: &[&str] = &["CREATE", "UPDATE", "DELETE"];

const JOBS: Intercepted =
    Intercepted { resource: "jobs", scope: "Namespaced", operations: WRITES, condition: job_condition };
const JOB_CLASSES: Intercepted =
    Intercepted { resource: "jobclasses", scope: "Cluster", operations: WRITES, condition: job_class_condition };

/// The settings of an adapter.
const fn parameters(resource: &'static str) -> Intercepted {
    Intercepted { resource, scope: "Cluster", operations: WRITES_AND_DELETE, condition: parameters_condition }
}

fn mutating(target: &Target, path: &str, kind: &Intercepted) -> MutatingWebhook {
    MutatingWebhook {
        name: format!("default.{}.{GROUP}", kind.resource),
        client_config: client_config(target, path),
        rules: Some(vec![kind.rule()]),
        match_conditions: Some(vec![(kind.condition)()]),
        match_policy: Some("Equivalent".to_owned()),
        failure_policy: Some("Fail".to_owned()),
        side_effects: "None".to_owned(),
        // Another webhook after ours may take away what ours has added. Twice is once: the second patch is empty then.
        reinvocation_policy: Some("IfNeeded".to_owned()),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
        ..MutatingWebhook::default()
    }
}

fn validating(target: &Target, path: &str, kind: &Intercepted) -> ValidatingWebhook {
    ValidatingWebhook {
        name: format!("validate.{}.{GROUP}", kind.resource),
        client_config: client_config(target, path),
        rules: Some(vec![kind.rule()]),
        match_conditions: Some(vec![(kind.condition)()]),
        match_policy: Some("Equivalent".to_owned()),
        failure_policy: Some("Fail".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        admission_review_versions: vec!["v1".to_owned()],
        ..ValidatingWebhook::default()
    }
}

impl Intercepted {
    /// The main resource only.
    fn rule(&self) -> RuleWithOperations {
        let one = |text: &str| Some(vec![text.to_owned()]);
        RuleWithOperations {
            api_groups: one(GROUP),
            api_versions: one(VERSION),
            resources: one(self.resource),
            operations: Some(self.operations.iter().map(|&operation| operation.to_owned()).collect()),
            scope: Some(self.scope.to_owned()),
        }
    }
}

/// True where the spec changed. Every access is guarded: with `failurePolicy: Fail` an evaluation error is a 403, and
/// the mutating webhook sees objects before the schema does.
const SPEC_CHANGED: &str =
    "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)";

/// Skips updates that change neither the spec nor drop our finalizer from a living Job, so that metadata edits,
/// deletion and finalizer removal never need us (spec section 3). Whether a Job is being deleted is asked of the stored
/// object, for a manifest that is `replace`d does not say so.
fn job_condition() -> MatchCondition {
    let holds = |object: &str| {
        format!("(has({object}.metadata.finalizers) && '{JOB_CLEANUP_FINALIZER}' in {object}.metadata.finalizers)")
    };
    let dropped =
        format!("!has(oldObject.metadata.deletionTimestamp) && {} && !{}", holds("oldObject"), holds("object"));
    MatchCondition {
        name: "spec-changed-or-finalizer-dropped".to_owned(),
        expression: format!("request.operation != 'UPDATE' || {SPEC_CHANGED} || ({dropped})"),
    }
}

/// Skips updates that change neither the spec nor make the class the cluster's default.
fn job_class_condition() -> MatchCondition {
    let is_default = |object: &str| {
        format!(
            "(has({object}.metadata.annotations) && '{IS_DEFAULT_JOB_CLASS_ANNOTATION}' in {object}.metadata.annotations \
             && {object}.metadata.annotations['{IS_DEFAULT_JOB_CLASS_ANNOTATION}'] == 'true')"
        )
    };
    let became_default = format!("{} && !{}", is_default("object"), is_default("oldObject"));
    MatchCondition {
        name: "spec-changed-or-default".to_owned(),
        expression: format!("request.operation != 'UPDATE' || {SPEC_CHANGED} || ({became_default})"),
    }
}

/// Skips updates that change no spec, and a DELETE of what is being deleted already.
fn parameters_condition() -> MatchCondition {
    MatchCondition {
        name: "spec-changed-or-first-delete".to_owned(),
        // On DELETE there is no `object` to ask.
        expression: format!(
            "request.operation == 'CREATE' || (request.operation == 'UPDATE' && ({SPEC_CHANGED})) \
             || (request.operation == 'DELETE' && !has(oldObject.metadata.deletionTimestamp))"
        ),
    }
}

fn client_config(target: &Target, path: &str) -> WebhookClientConfig {
    match target {
        Target::Service { namespace, name } => WebhookClientConfig {
            service: Some(ServiceReference {
                namespace: namespace.clone(),
                name: name.clone(),
                path: Some(path.to_owned()),
                port: Some(443),
            }),
            ..WebhookClientConfig::default()
        },
        Target::Url(base) => WebhookClientConfig {
            url: Some(format!("{}{path}", base.trim_end_matches('/'))),
            ..WebhookClientConfig::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn webhooks(target: &Target) -> Vec<Value> {
        let (mutating, validating) = configurations(target);
        let all = [serde_json::to_value(mutating).unwrap(), serde_json::to_value(validating).unwrap()];
        all.iter().flat_map(|configuration| configuration["webhooks"].as_array().unwrap().clone()).collect()
    }

    fn service() -> Target {
        Target::Service { namespace: "ayatori-system".to_owned(), name: "ayatori-webhook".to_owned() }
    }

    #[test]
    fn only_our_main_resources_come_to_us_and_only_settings_when_they_are_deleted() {
        let rules: Vec<Value> = webhooks(&service()).iter().map(|webhook| webhook["rules"].clone()).collect();
        let rule = |resource: &str, scope: &str, operations: &[&str]| {
            json!([{
                "apiGroups": ["execution.ayatori.ddupan.top"], "apiVersions": ["v1alpha1"], "resources": [resource],
                "operations": operations, "scope": scope
            }])
        };
        let (writes, all) = (["CREATE", "UPDATE"], ["CREATE", "UPDATE", "DELETE"]);
        assert_eq!(
            rules,
            [
                rule("jobs", "Namespaced", &writes),
                rule("jobs", "Namespaced", &writes),
                rule("jobclasses", "Cluster", &writes),
                rule("kubernetesexecutionparameters", "Cluster", &all),
                rule("opensandboxexecutionparameters", "Cluster", &all),
            ]
        );
    }

    #[test]
    fn every_webhook_fails_closed_in_bounded_time_and_without_side_effects() {
        for webhook in webhooks(&service()) {
            for (field, value) in [
                ("failurePolicy", json!("Fail")),
                ("sideEffects", json!("None")),
                ("timeoutSeconds", json!(10)),
                ("matchPolicy", json!("Equivalent")),
                ("admissionReviewVersions", json!(["v1"])),
            ] {
                assert_eq!(webhook[field], value, "{field}");
            }
            assert_eq!(webhook["clientConfig"]["caBundle"], Value::Null);
        }
    }

    #[test]
    fn defaulting_is_asked_again_after_others_have_changed_the_object() {
        let of_all: Vec<Value> =
            webhooks(&service()).iter().map(|webhook| webhook["reinvocationPolicy"].clone()).collect();
        assert_eq!(of_all, [json!("IfNeeded"), Value::Null, Value::Null, Value::Null, Value::Null]);
    }

    #[test]
    fn names_are_unique_and_fully_qualified() {
        let names: Vec<Value> = webhooks(&service()).iter().map(|webhook| webhook["name"].clone()).collect();
        assert_eq!(
            names,
            [
                "default.jobs.execution.ayatori.ddupan.top",
                "validate.jobs.execution.ayatori.ddupan.top",
                "validate.jobclasses.execution.ayatori.ddupan.top",
                "validate.kubernetesexecutionparameters.execution.ayatori.ddupan.top",
                "validate.opensandboxexecutionparameters.execution.ayatori.ddupan.top"
            ]
        );
    }

    #[test]
    fn a_service_is_reached_at_443_and_an_address_at_its_path() {
        assert_eq!(
            webhooks(&service())[0]["clientConfig"],
            json!({"service": {"namespace": "ayatori-system", "name": "ayatori-webhook", "path": "/mutate-jobs", "port": 443}})
        );
        for base in ["https://127.0.0.1:9443", "https://127.0.0.1:9443/"] {
            let config = webhooks(&Target::Url(base.to_owned()))[2]["clientConfig"].clone();
            assert_eq!(config, json!({"url": "https://127.0.0.1:9443/validate-jobclasses"}));
        }
    }

    #[test]
    fn the_condition_of_jobs_reads_as_it_was_tried_on_a_real_server() {
        let finalizer = "execution.ayatori.ddupan.top/job-cleanup";
        assert_eq!(
            job_condition().expression,
            format!(
                "request.operation != 'UPDATE' \
                 || has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec) \
                 || (!has(oldObject.metadata.deletionTimestamp) \
                 && (has(oldObject.metadata.finalizers) && '{finalizer}' in oldObject.metadata.finalizers) \
                 && !(has(object.metadata.finalizers) && '{finalizer}' in object.metadata.finalizers))"
            )
        );
    }
}
