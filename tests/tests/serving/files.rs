//! Certificates that somebody else keeps in files (spec J2), as cert-manager's Secret reaches a pod.

use std::time::Duration;

use anyhow::ensure;
use ayatori_tests::{
    eventually,
    load::plan::{Plan, Reviews},
    product::process::{Ayatori, Ports},
};

use crate::{
    client::{Client, lossless},
    site::{ports, site},
    volume::{Mounts, Pair},
};

/// The files are looked at every 10 s.
const SEEN: Duration = Duration::from_secs(60);
const REFUSED: &str = "cannot serve the certificate of these files, serving the last good one";

/// How often each of them has said it.
fn count(processes: &[Ayatori], said: &str) -> Vec<usize> {
    processes.iter().map(|process| process.log().matches(said).count()).collect()
}

async fn until(processes: &[Ayatori], said: &str, times: usize) -> anyhow::Result<()> {
    eventually(&format!("each replica says {said:?} for the {times}. time"), SEEN, async || {
        let counts = count(processes, said);
        ensure!(counts.iter().all(|&count| count == times), "{counts:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn swapped_files_are_served_without_a_loss_and_a_broken_pair_changes_nothing() -> anyhow::Result<()> {
    let site = site().await?;
    let mut mounts = Mounts::new(2)?;
    let flags = mounts.flags().into_iter().map(|flag| vec![flag]);
    let replicas: Vec<(Ports, Vec<String>)> = ports(1).into_iter().zip(flags).collect();
    // With no right to read or write a Secret or a webhook configuration: none is needed.
    let processes = site.replicas(&site.without_certificate_rights, &replicas).await?;
    let plan = Plan::Reviews(Reviews {
        targets: ports(1).to_vec(),
        trust: mounts.trust(),
        namespace: "default".to_owned(),
        rate: 200,
        workers: 8,
        connection_life: Duration::from_secs(1),
        lag: None,
        bound: Duration::from_secs(600),
    });
    let load = Client::start(site.cluster, &plan)?;

    let second = mounts.pki.issue()?;
    mounts.put(&second)?;
    until(&processes, "serving a new certificate", 2).await?;
    let halves = Pair { key: second.key, ..mounts.pki.issue()? };
    mounts.put(&halves)?;
    until(&processes, REFUSED, 1).await?;
    let third = mounts.pki.issue()?;
    mounts.put(&third)?;
    until(&processes, "serving a new certificate", 3).await?;
    // Until connections of every worker have been made anew.
    tokio::time::sleep(Duration::from_millis(1500)).await;

    let report = load.report("certificates from files").await?;
    lossless(&report)?;
    ensure!(count(&processes, REFUSED) == [1, 1], "said again: {:?}", count(&processes, REFUSED));
    for (port, leaves) in &report.leaves {
        ensure!(leaves.len() == 3, "{port} showed {leaves:#?}");
    }
    ensure!(report.leaves.len() == 2);
    Ok(())
}

#[tokio::test]
async fn without_files_a_process_that_may_not_keep_a_certificate_says_so_and_ends() -> anyhow::Result<()> {
    // What makes the test above mean something: that account has no such rights.
    let site = site().await?;
    let [ports, _] = ports(2);
    let mut process = Ayatori::start(site.cluster, &site.without_certificate_rights, ports)?;
    ensure!(process.ended(SEEN).await? != 0);
    let log = process.log();
    ensure!(log.contains("cannot get a serving certificate") && log.contains("secrets"), "{log}");
    Ok(())
}
