//! The fixed strings of the API: group, finalizers, annotations, labels, adapters (spec sections 1, 2 A9).

/// The API group of all four kinds.
pub const GROUP: &str = "execution.ayatori.ddupan.top";
/// The one served version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` as it stands in a manifest.
pub const API_VERSION: &str = "execution.ayatori.ddupan.top/v1alpha1";

/// Finalizer on a Job: its execution is stopped and cleaned up before the object goes (spec F3).
pub const JOB_CLEANUP_FINALIZER: &str = "execution.ayatori.ddupan.top/job-cleanup";
/// Finalizer on a native Job: it stays until its end was seen and recorded (spec D3).
pub const BACKEND_CLEANUP_FINALIZER: &str = "execution.ayatori.ddupan.top/backend-cleanup";
/// Finalizer on a JobClass: it stays while a Job that is not over holds it (spec H3).
pub const JOB_CLASS_PROTECTION_FINALIZER: &str = "execution.ayatori.ddupan.top/job-class-protection";
/// Finalizer on a settings object: it stays while a JobClass names it (spec H3).
pub const PARAMETERS_PROTECTION_FINALIZER: &str = "execution.ayatori.ddupan.top/parameters-protection";

/// Annotation of a Namespace: the JobClass of its Jobs that name none (spec B1).
pub const DEFAULT_JOB_CLASS_ANNOTATION: &str = "execution.ayatori.ddupan.top/default-job-class";
/// Annotation of a JobClass: `"true"` makes it the cluster's default (spec B1).
pub const IS_DEFAULT_JOB_CLASS_ANNOTATION: &str = "execution.ayatori.ddupan.top/is-default-job-class";

/// Annotation of a Job: the trace that it belongs to, as a W3C `traceparent` (spec B7).
pub const TRACEPARENT_ANNOTATION: &str = "execution.ayatori.ddupan.top/traceparent";
/// Annotation of a Job: what belongs to its `traceparent`, as a W3C `tracestate`.
pub const TRACESTATE_ANNOTATION: &str = "execution.ayatori.ddupan.top/tracestate";

/// Annotation of a native Job and its pod: the whole name of the Job (a label ends at 63 characters, spec D3).
pub const JOB_NAME_ANNOTATION: &str = "execution.ayatori.ddupan.top/job-name";
/// Annotation of a native Job: `"false"` until its one release, which sets it to `"true"`. Who suspends and resumes the
/// native Job later does not change it, so a release can take effect only once.
pub const RELEASED_ANNOTATION: &str = "execution.ayatori.ddupan.top/released";
/// Label of a native Job and its pod: the UID of the Job.
pub const JOB_UID_LABEL: &str = "execution.ayatori.ddupan.top/job-uid";
/// Label of a native Job and its pod: the name of the Job, cut to 63 characters.
pub const JOB_NAME_LABEL: &str = "execution.ayatori.ddupan.top/job-name";
/// Label of a native Job and its pod: the namespace of the Job.
pub const JOB_NAMESPACE_LABEL: &str = "execution.ayatori.ddupan.top/job-namespace";
/// Label of a native Job and its pod: the name of the JobClass, cut to 63 characters.
pub const JOB_CLASS_LABEL: &str = "execution.ayatori.ddupan.top/job-class";

/// The domain under which a `controllerName` is ours (spec H1).
pub const CONTROLLER_DOMAIN: &str = "execution.ayatori.ddupan.top/";
/// `controllerName` of the adapter that runs native `batch/v1` Jobs.
pub const KUBERNETES_CONTROLLER: &str = "execution.ayatori.ddupan.top/kubernetes";
/// `controllerName` of the adapter that runs OpenSandbox sandboxes.
pub const OPENSANDBOX_CONTROLLER: &str = "execution.ayatori.ddupan.top/opensandbox";

/// Prefix of the environment variables that the platform sets itself (spec B2, D4).
pub const RESERVED_ENV_PREFIX: &str = "AYATORI_";
