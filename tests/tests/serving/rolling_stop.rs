//! Replicas that stop and start in turn (spec J3): nothing that is asked meanwhile is lost.

use std::time::Duration;

use anyhow::ensure;
use ayatori_tests::{
    load::plan::{Plan, Reviews},
    product::process::{Ayatori, STOPPED},
    suite::setting,
    tools::say,
};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::{
    client::{Client, lossless},
    site::{ports, site},
    volume::Mounts,
};

/// How late clients learn what is ready: less than the farewell of 3 s, as for a Service whose endpoints are kept within
/// a second or two.
const LAG: Duration = Duration::from_millis(1500);

#[tokio::test]
async fn stopping_replicas_in_turn_loses_no_review() -> anyhow::Result<()> {
    let site = site().await?;
    let mounts = Mounts::new(1)?;
    let flags = mounts.flags();
    let replicas = ports(3).map(|ports| (ports, flags.clone()));
    let mut processes = site.replicas(&site.without_certificate_rights, &replicas).await?;
    let plan = Plan::Reviews(Reviews {
        targets: ports(3).to_vec(),
        trust: mounts.trust(),
        namespace: "default".to_owned(),
        rate: 200,
        workers: 8,
        // As long as the API server keeps its own: only the server's word ends one.
        connection_life: Duration::from_secs(90),
        lag: Some(LAG),
        bound: Duration::from_secs(600),
    });
    let mut load = Client::start(site.cluster, &plan)?;
    // Every worker has its connection, half of them on each replica.
    sleep(LAG + Duration::from_secs(1)).await;

    let stops = setting(4, 10);
    let mut longest = Duration::ZERO;
    for (turn, ports) in ports(3).into_iter().cycle().take(stops).enumerate() {
        let process = &mut processes[turn % 2];
        let begin = Instant::now();
        process.signal(Signal::TERM)?;
        let code = process.ended(STOPPED).await?;
        ensure!(code == 0, "it ended with {code}: {}", process.log());
        longest = longest.max(begin.elapsed());
        *process = Ayatori::start_with(site.cluster, &site.without_certificate_rights, ports, &[&flags[0]])?;
        process.is_ready().await?;
        // Then the other one: when every client has learned of this one's return.
        sleep(LAG + Duration::from_millis(500)).await;
    }
    ensure!(load.runs()?, "the client has ended early");
    let report = load.report("rolling stop").await?;
    say(&format!("rolling stop: {stops} stops, the longest took {:.1} s", longest.as_secs_f64()));
    lossless(&report)?;
    // Each stop has moved the workers of that replica: what was asked did go through both.
    ensure!(report.connections >= 4 * u64::try_from(stops)?, "only {} connections", report.connections);
    Ok(())
}
