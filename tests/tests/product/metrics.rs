//! `/metrics` (spec J4, J5, H4): who may read it, and that it counts what happens.

use anyhow::{Context, ensure};
use ayatori_tests::{
    eventually,
    product::{
        installation::token_of,
        jobs::{UNTIL_TERM, job, parameters, with},
        metrics::{Page, ask, page},
        process::Ports,
        scene::{BOUND, Scene, offer, offer_class},
        shared::in_namespace,
    },
};
use serde_json::json;

use crate::defaults::{in_turn, marked};

const PORT: u16 = Ports::MAIN.metrics;

/// The token of a new ServiceAccount that may read the metrics.
async fn reader(scene: &Scene) -> anyhow::Result<String> {
    let kubectl = scene.kubectl();
    kubectl.ok(&["create", "serviceaccount", "scraper"])?;
    let account = format!("--serviceaccount={}:scraper", scene.namespace);
    let name = format!("{}-scraper", scene.namespace);
    kubectl.ok(&["create", "clusterrolebinding", &name, "--clusterrole=ayatori-metrics-reader", &account])?;
    token_of(scene.cluster, &scene.namespace, "scraper").await
}

/// Waits until the page is as it is looked for.
async fn until(scene: &Scene, token: &str, what: &str, is: impl Fn(&Page) -> bool) -> anyhow::Result<Page> {
    eventually(what, BOUND, async || {
        let page = page(scene.cluster, PORT, token).await?;
        ensure!(is(&page), "{}", page.text());
        Ok(page)
    })
    .await
}

#[tokio::test]
async fn the_metrics_are_read_by_whom_the_cluster_allows_it_and_by_nobody_else() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let status = async |token: Option<&str>| anyhow::Ok(ask(scene.cluster, PORT, token).await?.status().as_u16());
        ensure!(status(None).await? == 401, "without a token");
        ensure!(status(Some("made-up")).await? == 401, "with a token that the cluster does not know");
        let other = token_of(scene.cluster, &scene.namespace, "default").await?;
        ensure!(status(Some(&other)).await? == 403, "without the right");

        let token = reader(scene).await?;
        // The API server's authorizer learns of a binding by its own watch.
        let response = eventually("with the right", BOUND, async || {
            let response = ask(scene.cluster, PORT, Some(&token)).await?;
            ensure!(response.status() == 200, "{}", response.status());
            Ok(response)
        })
        .await?;
        let type_ = response.headers().get("content-type").context("a content type")?;
        ensure!(type_ == "text/plain; version=0.0.4; charset=utf-8", "{type_:?}");
        ensure!(status(Some(&other)).await? == 403, "the one without the right still has none");

        let page = page(scene.cluster, PORT, &token).await?;
        for serves in ["webhook", "metrics"] {
            let ends = page.value(&format!("ayatori_certificate_not_after_timestamp_seconds{{serves=\"{serves}\"}}"));
            let now = jiff::Timestamp::now().as_second();
            ensure!(ends > now as f64, "{serves}: {ends}");
        }
        ensure!(page.value("ayatori_clock_skew_seconds").abs() < 2.0, "{}", page.text());
        ensure!(!page.text().contains(&scene.namespace), "a namespace is told: {}", page.text());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn several_defaults_are_counted_until_there_is_one() -> anyhow::Result<()> {
    in_turn(async |scene| {
        let token = reader(scene).await?;
        let [first, second] = ["first", "second"].map(|n| format!("{}-{n}", scene.namespace));
        let defaults = |page: &Page| page.value("ayatori_default_job_classes");
        until(scene, &token, "no default", |page| defaults(page) == 0.0).await?;
        for name in [&first, &second] {
            offer(&scene.client, &marked(name), &parameters(name)).await?;
        }
        until(scene, &token, "two defaults", |page| defaults(page) == 2.0).await?;
        scene.kubectl().ok(&["delete", "jobclass", &first])?;
        until(scene, &token, "one default", |page| defaults(page) == 1.0).await.map(drop)
    })
    .await
}

#[tokio::test]
async fn a_refused_create_is_counted_with_its_fault() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let token = reader(scene).await?;
        let verdicts = r#"ayatori_admission_requests_total{path="/validate-jobs",operation="CREATE",code="422"}"#;
        let fault = r#"ayatori_admission_rejections_total{path="/validate-jobs",reason="FieldValueInvalid",field="spec.task.image"}"#;
        let took = r#"ayatori_admission_duration_seconds_count{path="/validate-jobs"}"#;
        let before = until(scene, &token, "the page", |_| true).await?;
        let mut wrong = job("job", "exit 0");
        wrong["spec"]["task"]["image"] = json!("Not An Image");
        let refused = scene.create(&wrong).await;
        ensure!(refused.is_err(), "{refused:?}");
        let after = page(scene.cluster, PORT, &token).await?;
        for series in [verdicts, fault, took] {
            // Other tests have their Jobs refused meanwhile.
            ensure!(after.value(series) >= before.value(series) + 1.0, "{series}: {}", after.text());
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn start_end_and_deletion_by_ttl_are_each_counted_once() -> anyhow::Result<()> {
    in_namespace(async |scene| {
        let token = reader(scene).await?;
        let class = format!("{}-counted", scene.namespace);
        offer_class(&scene.client, &class).await?;
        let of_class = |job| with(job, "jobClassName", json!(class));
        let before = until(scene, &token, "the page", |_| true).await?;

        let running_job = scene.start(&of_class(job("runs", UNTIL_TERM))).await?;
        let running = format!("ayatori_jobs{{job_class=\"{class}\",state=\"Running\"}}");
        let starts = format!("ayatori_job_time_to_start_seconds_count{{job_class=\"{class}\"}}");
        let waited = format!("ayatori_job_time_to_start_seconds_sum{{job_class=\"{class}\"}}");
        let runs = |page: &Page| (page.value(&running), page.value(&starts)) == (1.0, 1.0);
        let started = until(scene, &token, "it runs", runs).await?;
        let start = running_job.status.as_ref().and_then(|status| status.start_time.as_ref()).context("a start")?;
        let created = running_job.metadata.creation_timestamp.as_ref().context("a creation")?;
        let seconds = start.0.duration_since(created.0).as_secs_f64();
        ensure!(started.value(&waited) == seconds, "not {seconds}: {}", started.text());

        scene.cancel("runs").await?;
        scene.over("runs").await?;
        let quick = scene.create(&with(of_class(job("quick", "exit 3")), "ttlSecondsAfterFinished", json!(0))).await?;
        scene.gone(&quick).await?;
        let finished = |reason| format!("ayatori_jobs_finished_total{{job_class=\"{class}\",reason=\"{reason}\"}}");
        let (failed, cancelled) = (finished("ProcessFailed"), finished("Cancelled"));
        let lags = "ayatori_ttl_lag_seconds_count";
        let after = page(scene.cluster, PORT, &token).await?;
        ensure!((after.value(&failed), after.value(&cancelled)) == (1.0, 1.0), "{}", after.text());
        ensure!(after.value(&starts) == 2.0, "{}", after.text());
        ensure!(after.value(lags) >= before.value(lags) + 1.0, "{}", after.text());
        let over = format!("ayatori_jobs{{job_class=\"{class}\",state=\"Cancelled\"}}");
        ensure!((after.value(&over), after.value(&running)) == (1.0, 0.0), "{}", after.text());
        let reconciles =
            |controller| format!("ayatori_reconciles_total{{controller=\"{controller}\",outcome=\"success\"}}");
        for controller in ["job", "jobclass", "parameters", "ttl", "leftovers"] {
            ensure!(after.value(&reconciles(controller)) > 0.0, "{controller}: {}", after.text());
        }
        Ok(())
    })
    .await
}
