//! Jobs that are released and cannot start yet (spec E5; matrix: cancel while starting).

use anyhow::ensure;
use serde_json::json;

use ayatori_tests::product::{
    jobs::{condition, exit_code, has_started, message, task},
    shared::in_namespace,
};

#[tokio::test]
async fn a_job_whose_image_is_missing_says_so_and_can_be_cancelled() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        scene.create(&task("job", json!({"image": "localhost/no-such-image:1"}))).await?;
        let says = |job: &_| message(job, "Succeeded").contains("localhost/no-such-image:1");
        let waiting = scene.until("job", "it says which image", says).await?;
        ensure!(condition(&waiting, "Succeeded") == "Unknown/Scheduling" && !has_started(&waiting));
        scene.cancel("job").await?;
        let over = scene.over("job").await?;
        ensure!(condition(&over, "Succeeded") == "False/Cancelled", "{}", condition(&over, "Succeeded"));
        // What the kubelet says of a container that never was is no exit code.
        ensure!(!has_started(&over) && exit_code(&over).is_none(), "{:?}", over.status);
        Ok(())
    })
    .await
}
