//! Clients that begin and do not go on (spec B9): others do not notice, and each of them is cut.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, ensure};
use ayatori_tests::{
    eventually,
    load::plan::{Cut, Plan, Reviews, Stage, Stalls},
    product::process::Ayatori,
    suite::setting,
    tools::say,
};
use tokio::time::sleep;

use crate::{
    client::Client,
    site::{Site, ports, site},
    volume::Mounts,
};

/// Of each kind: 201 in all. Less than the 512 connections that the server has, more than the 32 reviews.
const EACH: usize = 67;
/// Of one measurement, within the 3 s in which all stall.
const WINDOW: Duration = Duration::from_millis(1500);
/// More than the 10 s that the server bears with the slowest of them.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn clients_that_stall_slow_nobody_down_and_are_cut() -> anyhow::Result<()> {
    let site = site().await?;
    let mounts = Mounts::new(1)?;
    let [target, _] = ports(4);
    let process = site.replicas(&site.without_certificate_rights, &[(target, mounts.flags())]).await?.remove(0);
    let others = Plan::Reviews(Reviews {
        targets: vec![target],
        trust: mounts.trust(),
        namespace: "default".to_owned(),
        rate: 300,
        workers: 8,
        connection_life: Duration::from_secs(1),
        lag: None,
        bound: Duration::from_secs(60),
    });
    let stalls = Plan::Stalls(Stalls { target, trust: mounts.trust(), each: EACH, bound: PATIENCE });

    measure(site, &others, "a first look, which is not counted").await?;
    let before = process.open_files()?;
    let (mut ratios, mut last, mut most) = (Vec::new(), None, 0);
    let wanted = setting(3, 15);
    for _ in 0..3 * wanted {
        drop(last.take());
        few_files(&process, before).await?;
        let alone = measure(site, &others, "without clients that stall").await?;
        let mut stalled = Client::start(site.cluster, &stalls)?;
        ensure!(stalled.says::<String>().await? == "open");
        most = most.max(process.open_files()?);
        let beside = measure(site, &others, "beside 201 clients that stall").await?;
        // A machine that is busy with something else measures nothing; clients that slow others down do so in each pair.
        if let Some(alone) = alone {
            ratios.push(beside.map_or(f64::INFINITY, |beside| beside.as_secs_f64() / alone.as_secs_f64()));
        }
        last = Some(stalled);
        if ratios.len() == wanted {
            break;
        }
    }
    ensure!(ratios.len() == wanted, "the machine is too slow to measure anything: {} pairs", ratios.len());
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let cuts: Vec<Cut> = last.context("nobody stalled")?.says().await?;
    let after = few_files(&process, before).await?;
    let borne = borne(&cuts)?;
    say(&format!("slow clients: p99 with them / without {median:.2} (of {ratios:.2?}); borne at most {borne:.1?} s"));
    say(&format!("slow clients: {before} file descriptors before, {most} at most, {after} afterwards"));
    ensure!(median <= 2.0, "p99 with them / without: {ratios:.2?}");
    ensure!(most > before + 100 && most <= before + 3 * EACH + 32, "{before} before, {most} with them");
    Ok(())
}

/// Waits until the sockets of those that stalled are closed; answers what is open then.
async fn few_files(process: &Ayatori, before: usize) -> anyhow::Result<usize> {
    eventually("the sockets of those that stalled are closed", PATIENCE, async || {
        let open = process.open_files()?;
        ensure!(open <= before + 16, "{open} file descriptors, {before} before");
        Ok(open)
    })
    .await
}

/// The p99 of one window; none where too little was answered to speak of one.
async fn measure(site: &Site, plan: &Plan, what: &str) -> anyhow::Result<Option<Duration>> {
    let load = Client::start(site.cluster, plan)?;
    sleep(WINDOW).await;
    let report = load.report(&format!("slow clients: {what}")).await?;
    ensure!(report.failed == 0, "{} reviews, {:#?}", report.reviews, report.failures);
    Ok((report.reviews > 50).then_some(report.p99))
}

/// For how many seconds the most patiently borne of each stage was: each was cut, and told why where that is possible.
fn borne(cuts: &[Cut]) -> anyhow::Result<BTreeMap<Stage, f64>> {
    ensure!(cuts.len() == 3 * EACH, "{} of them are told of", cuts.len());
    let mut borne = BTreeMap::new();
    for cut in cuts {
        let after = cut.after.with_context(|| format!("never cut: {cut:?}"))?.as_secs_f64();
        let said = if cut.stage == Stage::Body { "HTTP/1.1 408 Request Timeout" } else { "" };
        ensure!(cut.said == said, "{cut:?}");
        let most: &mut f64 = borne.entry(cut.stage).or_default();
        *most = most.max(after);
    }
    // 3 s for a handshake, 5 s for a body, 10 s for a head.
    ensure!(borne[&Stage::Handshake] < borne[&Stage::Body] && borne[&Stage::Body] < borne[&Stage::Head], "{borne:?}");
    Ok(borne)
}
