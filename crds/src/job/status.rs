//! What truly happened to a Job, and the rules that no writer of it can break (spec A4, section 9).

use kube::{KubeSchema, core::Rule};

use super::{Condition, Deserialize, ParametersReference, ResourceRequirements, Serialize, Time, cel};
use crate::moment;

// No rule may fail on any stored value, not even on one that lacks what the schema requires: a failing rule, unlike a
// false one, is not overlooked when the status did not change, and would lock the object. Hence `has()` and
// `self == oldSelf ||` where one would not expect them.

/// A condition `type` with status `status` stands in the list at `root`.
fn condition(type_: &str, is: &str) -> String {
    format!(
        "(has(self.conditions) && self.conditions.exists(c, c.type == '{type_}' && has(c.status) && c.status {is}))"
    )
}

fn scheduled_before_start() -> Rule {
    Rule::new(format!("!has(self.startTime) || {}", condition("Scheduled", "== 'True'")))
        .message("may be set only where the condition Scheduled is True")
        .field_path(".startTime")
}

fn completed_exactly_when_terminal() -> Rule {
    Rule::new(format!("has(self.completionTime) == {}", condition("Succeeded", "!= 'Unknown'")))
        .message("must be set exactly when the condition Succeeded is True or False")
        .field_path(".completionTime")
}

fn nothing_added_after_the_end() -> Rule {
    let fields = ["startTime", "result", "resolvedJobClass", "effectiveResources", "execution"];
    let same = fields.map(|field| format!("has(self.{field}) == has(oldSelf.{field})"));
    let references = "(!has(self.execution) || self.execution == oldSelf.execution)";
    Rule::new(format!("!has(oldSelf.completionTime) || ({} && {references})", same.join(" && ")))
        .message("nothing is added once it is set")
        .field_path(".completionTime")
}

fn accepted_says_what_was_accepted() -> Rule {
    Rule::new(format!(
        "!{} || (has(self.resolvedJobClass) && has(self.effectiveResources))",
        condition("Accepted", "== 'True'")
    ))
    .message("Accepted may be True only together with resolvedJobClass and effectiveResources")
    .field_path(".conditions")
}

fn scheduled_says_where() -> Rule {
    Rule::new(format!(
        "!{} || ({} && has(self.execution))",
        condition("Scheduled", "== 'True'"),
        condition("Accepted", "== 'True'")
    ))
    .message("Scheduled may be True only where Accepted is True and execution is set")
    .field_path(".conditions")
}

/// This part of `effectiveResources` is neither added nor removed.
fn same_presence(key: &str) -> Rule {
    let rule = format!("has(self.{key}) == has(oldSelf.{key})");
    Rule::new(rule).message("never changes once it is set").field_path(format!(".{key}"))
}

/// What truly happened. Written by the controller only; never edit it by hand.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = cel::set_once(".startTime"),
    validation = cel::set_once(".completionTime"),
    validation = cel::set_once(".result"),
    validation = cel::set_once(".resolvedJobClass"),
    validation = cel::kept(".effectiveResources"),
    validation = cel::kept(".execution"),
    validation = cel::kept(".conditions"),
    validation = Rule::new("!has(oldSelf.observedGeneration) || (has(self.observedGeneration) && self.observedGeneration >= oldSelf.observedGeneration)")
        .message("never goes back").field_path(".observedGeneration"),
    validation = scheduled_before_start(),
    validation = completed_exactly_when_terminal(),
    validation = Rule::new("!has(self.completionTime) || !has(self.startTime) || self.completionTime >= self.startTime")
        .message("must not be before startTime").field_path(".completionTime"),
    validation = nothing_added_after_the_end(),
    validation = Rule::new("!has(self.result) || has(self.completionTime)")
        .message("may be set only together with completionTime").field_path(".result"),
    validation = accepted_says_what_was_accepted(),
    validation = scheduled_says_where()
)]
pub struct JobStatus {
    /// The `metadata.generation` that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted` (may it run), `Scheduled` (does it exist on the backend) and `Succeeded` (how it ended; Unknown until
    /// then), each with a reason for programs and a message for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["type".into()]),
        validation = Rule::new("self == oldSelf || oldSelf.all(o, self.exists(c, c.type == o.type))").message("no condition is ever removed"),
        validation = Rule::new(
            "self == oldSelf || oldSelf.all(o, !(o.type in ['Accepted', 'Scheduled', 'DuplicateExecution']) || o.status != 'True' \
             || self.exists(c, c.type == o.type && c.status == 'True'))"
        ).message("Accepted, Scheduled and DuplicateExecution never go back from True"),
        validation = Rule::new(
            "self == oldSelf || oldSelf.all(o, o.type != 'Succeeded' || o.status == 'Unknown' || self.exists(c, c.type == o.type && c.status == o.status \
             && c.reason == o.reason && c.message == o.message && c.lastTransitionTime == o.lastTransitionTime))"
        ).message("Succeeded is final once it is True or False")
    )]
    pub conditions: Vec<Condition>,
    /// The class that this Job was accepted with. Later edits of the class do not touch this Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_job_class: Option<ResolvedJobClass>,
    /// The CPU and memory that the execution gets: what was asked for, completed by the defaults of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = same_presence("requests"),
        validation = same_presence("limits"),
        validation = cel::immutable_quantity(&["requests", "cpu"]),
        validation = cel::immutable_quantity(&["requests", "memory"]),
        validation = cel::immutable_quantity(&["limits", "cpu"]),
        validation = cel::immutable_quantity(&["limits", "memory"])
    )]
    pub effective_resources: Option<ResourceRequirements>,
    /// Where the execution is: the adapter and its references, for correlation and after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// When the main process started. Absent for a task that never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "moment::schema")]
    pub start_time: Option<Time>,
    /// When the outcome was reached. It exists exactly when the Job is over:
    /// `kubectl wait --for=jsonpath='{.status.completionTime}'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "moment::schema")]
    pub completion_time: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
}

/// The class as it was at acceptance.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedJobClass {
    /// The JobClass's name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The JobClass's UID: another class of the same name never takes this Job over.
    #[schemars(length(max = 128))]
    pub uid: String,
    /// The adapter that the class names.
    #[schemars(length(max = 253))]
    pub controller_name: String,
    /// The parameters that the class names, with the UID that they had.
    pub parameters_ref: ParametersReference,
}

/// Where the execution is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[x_kube(
    validation = cel::set_once(".adapter"),
    validation = cel::kept(".references")
)]
pub struct Execution {
    /// `kubernetes` or `opensandbox`.
    #[schemars(length(max = 64))]
    pub adapter: String,
    /// The backend's own identifiers. They may be added, never replaced or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["type".into()]),
        validation = Rule::new("self == oldSelf || oldSelf.all(o, self.exists(r, r.type == o.type && r.id == o.id))").message("no reference is ever replaced or removed")
    )]
    pub references: Vec<Reference>,
}

/// One identifier on the backend.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
pub struct Reference {
    /// What is identified: `Job` (the UID of the native Job), `Sandbox` or `Command`.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 64))]
    pub type_: String,
    /// Its identifier.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
}

/// How it ended.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// The exit code of the main process, where one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The reason of the condition `Succeeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}
