//! `activeDeadlineSeconds` (spec F2).

use anyhow::{Context, ensure};
use serde_json::json;

use ayatori_tests::product::{
    audit::Write,
    jobs::{condition, exit_code, job, with},
    shared::in_namespace,
};

#[tokio::test]
async fn a_task_that_outlives_its_deadline_is_stopped_and_says_so() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let script = "trap 'exit 9' TERM; while :; do sleep 0.1; done";
        let ended = scene.run(&with(job("job", script), "activeDeadlineSeconds", json!(2))).await?;
        ensure!(condition(&ended, "Succeeded") == "False/DeadlineExceeded", "{}", condition(&ended, "Succeeded"));
        ensure!(condition(&ended, "Stopping") == "True/DeadlineExceeded", "{}", condition(&ended, "Stopping"));
        // The code that was seen stands beside the cause.
        ensure!(exit_code(&ended) == Some(9), "{:?}", exit_code(&ended));
        let status = ended.status.context("a status")?;
        let (started, completed) = (status.start_time.context("a start")?, status.completion_time.context("an end")?);
        let ran = completed.0.as_second() - started.0.as_second();
        ensure!((2..60).contains(&ran), "it ran {ran} s");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_task_that_ends_within_its_deadline_is_judged_by_its_end() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let ended = scene.run(&with(job("job", "exit 4"), "activeDeadlineSeconds", json!(3600))).await?;
        ensure!(condition(&ended, "Succeeded") == "False/ProcessFailed", "{}", condition(&ended, "Succeeded"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_task_that_runs_has_a_later_limit_of_its_native_job_that_is_set_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let job = scene.run(&with(job("job", "sleep 2"), "activeDeadlineSeconds", json!(100))).await?;
        let native = scene.native_job(&job).await?.context("its native Job")?;
        let limit = native.spec.and_then(|spec| spec.active_deadline_seconds).context("a limit")?;
        // Ours, a minute of slack, and what its start took.
        ensure!((160..260).contains(&limit), "{limit} s");
        let writes = scene.audit().writes("batch/jobs")?;
        let limits = |write: &&Write| write.sent.to_string().contains("activeDeadlineSeconds") && write.verb == "patch";
        ensure!(writes.iter().filter(limits).count() == 1, "{writes:#?}");
        Ok(())
    })
    .await
}
