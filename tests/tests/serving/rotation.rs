//! The self-managed certificate while it is renewed (spec J2): nothing that is asked meanwhile is lost.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, ensure};
use ayatori_crds::Job;
use ayatori_tests::{
    load::plan::{Plan, Reviews, Trust},
    product::{installation::SYSTEM, jobs, scene::object},
    suite::setting,
    tools::say,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use tokio::time::{Instant, interval, sleep, sleep_until};

use crate::{
    client::{Client, lossless},
    site::{ports, site},
};

/// A leaf is renewed after 5 s, a CA after 10 s.
const LIFETIMES: [&str; 2] = ["--webhook-leaf-lifetime=8s", "--webhook-ca-lifetime=16s"];

#[tokio::test]
async fn rotations_of_leaf_and_ca_lose_no_review_not_even_when_the_secret_is_deleted() -> anyhow::Result<()> {
    let site = site().await?;
    let client = site.cluster.client().await?;
    let secrets = Api::<Secret>::namespaced(client.clone(), SYSTEM);
    // That of the process that made the class: it would hold for a year.
    secrets.delete("ayatori-webhook-ca", &DeleteParams::default()).await?;

    let replicas = ports(0).map(|ports| (ports, LIFETIMES.map(String::from).into()));
    let processes = site.replicas(&site.kubeconfig, &replicas).await?;
    let plan = Plan::Reviews(Reviews {
        targets: ports(0).to_vec(),
        trust: Trust::Published,
        namespace: "default".to_owned(),
        rate: 400,
        workers: 16,
        connection_life: Duration::from_secs(1),
        lag: None,
        bound: Duration::from_secs(600),
    });
    let mut load = Client::start(site.cluster, &plan)?;

    let length = Duration::from_secs(setting(26, 115));
    let end = Instant::now() + length;
    let api = tokio::spawn(create_dry(client, end));
    // Between two renewals of its own, so that it is one more.
    sleep(length / 2).await;
    secrets.delete("ayatori-webhook-ca", &DeleteParams::default()).await.context("delete the Secret by hand")?;
    sleep_until(end).await;
    ensure!(load.runs()?, "the client has ended early");

    let report = load.report("rotation").await?;
    let (created, refused) = api.await??;
    let issuers: BTreeSet<&str> = report.leaves.values().flatten().map(|leaf| leaf.issuer.as_str()).collect();
    say(&format!(
        "rotation: {} CAs seen, {} in a caBundle at most; through the real API server {created} Jobs, {} refused",
        issuers.len(),
        report.most_trusted,
        refused.len(),
    ));
    for process in &processes {
        ensure!(!process.log().contains("WARN"), "{}", process.log());
    }
    lossless(&report)?;
    ensure!(refused.is_empty() && created > 0, "{created} created, {refused:#?}");
    // n rotations show n + 1 certificates.
    ensure!(issuers.len() > setting(2, 5), "too few CAs: {issuers:?}");
    for (port, leaves) in &report.leaves {
        ensure!(leaves.len() > setting(4, 20), "too few certificates at {port}: {leaves:#?}");
        ensure!(
            leaves.iter().map(|leaf| &leaf.issuer).collect::<BTreeSet<_>>().len() == issuers.len(),
            "{port}: {leaves:#?}"
        );
    }
    ensure!(report.leaves.len() == 2 && issuers.iter().all(|issuer| !issuer.is_empty()), "{issuers:?}");
    Ok(())
}

/// Creates a Job again and again without its being stored: the real API server asks both webhooks of the first replica.
async fn create_dry(client: kube::Client, end: Instant) -> anyhow::Result<(u32, Vec<String>)> {
    let jobs = Api::<Job>::namespaced(client, "default");
    let job: Job = object(&jobs::job("dry", "exit 0"))?;
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let (mut created, mut refused) = (0, Vec::new());
    let mut pace = interval(Duration::from_millis(50));
    while Instant::now() < end {
        pace.tick().await;
        match jobs.create(&parameters, &job).await {
            Ok(_) => created += 1,
            Err(error) => refused.push(format!("{} {error}", jiff::Timestamp::now())),
        }
    }
    Ok((created, refused))
}
