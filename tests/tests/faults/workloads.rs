//! The lives that are disturbed.

use anyhow::Context;
use ayatori_crds::Job;
use ayatori_tests::{
    eventually,
    product::{
        jobs::{self, UNTIL_TERM, with},
        scene::{BOUND, Scene, object},
        starts::Starts,
    },
    suite::setting,
};
use kube::api::PostParams;
use serde_json::json;

/// A Job, and what a person does with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// After it has told its start.
    script: &'static str,
    person: Person,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Person {
    /// Waits for its end.
    Waits,
    /// Cancels it once it runs.
    Cancels,
    /// Deletes it once it runs.
    Deletes,
    /// Has given it a TTL of 0.
    Forgets,
}

/// For so many seconds a task runs: long enough that the kubelet, which looks once a second, tells that it runs before it
/// ends.
pub(crate) const SHORT: &str = "1.5";

/// The same, for many lives at a time: of the hundreds of the long setting none may miss that.
pub(crate) fn running_time() -> &'static str {
    setting(SHORT, "4")
}

const HAPPY_TASK: &str = "sleep $RUNNING_TIME";

pub(crate) const HAPPY: Workload = Workload { name: "happy", script: HAPPY_TASK, person: Person::Waits };
pub(crate) const FAILING: Workload =
    Workload { name: "failing", script: "sleep $RUNNING_TIME; exit 3", person: Person::Waits };
pub(crate) const CANCELLED: Workload = Workload { name: "cancelled", script: UNTIL_TERM, person: Person::Cancels };
pub(crate) const DELETED: Workload = Workload { name: "deleted", script: UNTIL_TERM, person: Person::Deletes };
pub(crate) const FORGOTTEN: Workload = Workload { name: "forgotten", script: HAPPY_TASK, person: Person::Forgets };

/// Its name in its namespace.
const NAME: &str = "job";

impl Workload {
    /// Lives the life to its end, with a task that runs for so many seconds; answers the Job as it was created.
    pub(crate) async fn live(&self, scene: &Scene, running_time: &str) -> anyhow::Result<Job> {
        let manifest = jobs::job(NAME, &format!("{}; RUNNING_TIME={running_time}; {}", Starts::TELL, self.script));
        let manifest = match self.person {
            Person::Forgets => with(manifest, "ttlSecondsAfterFinished", json!(0)),
            _ => manifest,
        };
        let created = scene.jobs.create(&PostParams::default(), &object(&manifest)?).await.context("create the Job")?;
        match self.person {
            Person::Waits => drop(scene.over(NAME).await?),
            Person::Forgets => scene.until_gone(NAME).await?,
            Person::Cancels => {
                scene.until_condition(NAME, "Succeeded", "Unknown/Running").await?;
                // The webhook is one of those that die.
                eventually("its cancellation is admitted", BOUND, async || scene.cancel(NAME).await).await?;
                scene.over(NAME).await?;
            }
            Person::Deletes => {
                scene.until_condition(NAME, "Succeeded", "Unknown/Running").await?;
                scene.delete(NAME).await?;
                scene.until_gone(NAME).await?;
            }
        }
        Ok(created)
    }

    /// Whether its exit code may be lost: after a stop of ours the pod goes at once, and a controller that was away then
    /// has not seen it (spec F1: the verdict is the cause).
    pub(crate) fn may_lose_its_code(&self) -> bool {
        matches!(self.person, Person::Cancels | Person::Deletes)
    }
}
