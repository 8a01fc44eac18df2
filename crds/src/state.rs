//! The ten states of a Job (spec section 9): derived from the object, never stored.

use crate::{
    ConditionStatus, Job,
    conditions::{self, reason},
    job::DesiredState,
};

/// What a Job is doing, in one word for people, metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Waiting for its class, references or policy.
    Resolving,
    /// Accepted; its execution does not exist on the backend yet.
    Scheduling,
    /// The execution exists; the main process was not seen to start.
    Starting,
    /// The main process runs.
    Running,
    /// Being cancelled; it is not over yet.
    Cancelling,
    /// It cannot be proven whether it still runs.
    ResultUnknown,
    /// Over: exit code 0.
    Succeeded,
    /// Over: anything else.
    Failed,
    /// Over: cancelled.
    Cancelled,
    /// Being deleted; its execution is stopped and cleaned up first.
    Deleting,
}

impl JobState {
    /// All ten, in the order of a life.
    pub const ALL: [Self; 10] = [
        Self::Resolving,
        Self::Scheduling,
        Self::Starting,
        Self::Running,
        Self::Cancelling,
        Self::ResultUnknown,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Deleting,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolving => "Resolving",
            Self::Scheduling => "Scheduling",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Cancelling => "Cancelling",
            Self::ResultUnknown => "ResultUnknown",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Deleting => "Deleting",
        }
    }

    /// The state of a Job, by the order of precedence of spec section 9.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        if job.metadata.deletion_timestamp.is_some() {
            return Self::Deleting;
        }
        let conditions = job.conditions();
        let succeeded = conditions::find(conditions, conditions::SUCCEEDED);
        match succeeded.map(|condition| (condition.status, condition.reason.as_str())) {
            Some((ConditionStatus::True, _)) => return Self::Succeeded,
            Some((ConditionStatus::False, reason::CANCELLED)) => return Self::Cancelled,
            Some((ConditionStatus::False, _)) => return Self::Failed,
            _ if job.spec.desired_state == DesiredState::Cancelled => return Self::Cancelling,
            Some((ConditionStatus::Unknown, reason::RESULT_UNKNOWN)) => return Self::ResultUnknown,
            _ => {}
        }
        if job.status.as_ref().is_some_and(|status| status.start_time.is_some()) {
            Self::Running
        } else if conditions::is_true(conditions, conditions::SCHEDULED) {
            Self::Starting
        } else if conditions::is_true(conditions, conditions::ACCEPTED) {
            Self::Scheduling
        } else {
            Self::Resolving
        }
    }

    /// Whether the Job is over for good: the three states that a TTL may delete.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether a Job may go from `self` to `next` between two versions that follow each other. Staying is allowed
    /// everywhere. States may be skipped where one write says two things at once (start and end seen together).
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use JobState as S;
        if self == next || next == S::Deleting {
            return true;
        }
        match self {
            S::Resolving => matches!(next, S::Scheduling | S::Starting | S::Cancelling),
            S::Scheduling => matches!(next, S::Starting | S::Failed | S::Cancelling | S::ResultUnknown),
            S::Starting => {
                matches!(next, S::Running | S::Succeeded | S::Failed | S::Cancelling | S::ResultUnknown)
            }
            S::Running => matches!(next, S::Succeeded | S::Failed | S::Cancelling | S::ResultUnknown),
            S::Cancelling => next.is_terminal(),
            S::ResultUnknown => {
                matches!(next, S::Starting | S::Running | S::Succeeded | S::Failed | S::Cancelling)
            }
            S::Succeeded | S::Failed | S::Cancelled | S::Deleting => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::{JobSpec, JobStatus, job::TaskSpec};

    /// Everything that a derivation looks at; each row of the tables starts from this and adds to it.
    fn job(facts: &[&str]) -> Job {
        let mut job = Job::new(
            "j",
            JobSpec {
                job_class_name: None,
                task: TaskSpec::default(),
                resources: None,
                active_deadline_seconds: None,
                ttl_seconds_after_finished: None,
                desired_state: DesiredState::Running,
            },
        );
        let mut status = JobStatus::default();
        let time = Time(Timestamp::UNIX_EPOCH);
        for fact in facts {
            match *fact {
                "deleting" => job.metadata.deletion_timestamp = Some(time.clone()),
                "cancel" => job.spec.desired_state = DesiredState::Cancelled,
                "started" => status.start_time = Some(time.clone()),
                condition => {
                    let mut words = condition.split(['=', '/']);
                    let mut word = || words.next().unwrap_or_default().to_owned();
                    let (type_, is, reason) = (word(), word(), word());
                    let is = match is.as_str() {
                        "True" => ConditionStatus::True,
                        "False" => ConditionStatus::False,
                        _ => ConditionStatus::Unknown,
                    };
                    let wanted =
                        conditions::Wanted { type_: &type_, status: is, reason: &reason, message: String::new() };
                    conditions::set(&mut status.conditions, wanted, None, Timestamp::UNIX_EPOCH);
                }
            }
        }
        job.status = Some(status);
        job
    }

    #[test]
    fn each_state_wins_over_all_that_come_after_it() {
        const RUNNING: [&str; 4] =
            ["Accepted=True/Valid", "Scheduled=True/BackendCreated", "started", "Succeeded=Unknown/Running"];
        // The order of spec section 9. Each row holds the facts that make the state, and is tried on top of the
        // facts of every state below it.
        let table: [(&[&str], JobState); 9] = [
            (&["deleting"], JobState::Deleting),
            (&["Succeeded=True/Completed"], JobState::Succeeded),
            (&["Succeeded=False/ProcessFailed"], JobState::Failed),
            (&["Succeeded=False/Cancelled"], JobState::Cancelled),
            (&["cancel"], JobState::Cancelling),
            (&["Succeeded=Unknown/ResultUnknown"], JobState::ResultUnknown),
            (&["started"], JobState::Running),
            (&["Scheduled=True/BackendCreated"], JobState::Starting),
            (&["Accepted=True/Valid"], JobState::Scheduling),
        ];
        for (index, (facts, state)) in table.iter().enumerate() {
            assert_eq!(JobState::of(&job(facts)), *state, "{facts:?} alone");
            let mut all: Vec<&str> = RUNNING.iter().filter(|_| index < 6).copied().collect();
            // Terminal words of the condition Succeeded exclude each other, so of them only one is there.
            all.extend(
                table[index..]
                    .iter()
                    .skip(1)
                    .flat_map(|(facts, _)| facts.iter())
                    .filter(|f| !f.starts_with("Succeeded")),
            );
            all.extend(facts.iter());
            assert_eq!(JobState::of(&job(&all)), *state, "{all:?}");
        }
        assert_eq!(JobState::of(&job(&[])), JobState::Resolving);
        assert_eq!(JobState::of(&job(&["Accepted=False/JobClassNotFound", "Scheduled=False/X"])), JobState::Resolving);
    }

    #[test]
    fn every_transition_is_allowed_or_forbidden_as_the_table_says() {
        use JobState::*;
        // Rows: from. Columns: to, in the order of `ALL`. x = allowed.
        let table = [
            (Resolving, "xxx.x....x"),
            (Scheduling, ".xx.xx.x.x"),
            (Starting, "..xxxxxx.x"),
            (Running, "...xxxxx.x"),
            (Cancelling, "....x.xxxx"),
            (ResultUnknown, "..xxxxxx.x"),
            (Succeeded, "......x..x"),
            (Failed, ".......x.x"),
            (Cancelled, "........xx"),
            (Deleting, ".........x"),
        ];
        for (from, row) in table {
            for (to, mark) in JobState::ALL.into_iter().zip(row.chars()) {
                assert_eq!(from.may_become(to), mark == 'x', "{from:?} → {to:?}");
            }
        }
    }
}
