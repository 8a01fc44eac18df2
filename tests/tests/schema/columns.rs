//! What `kubectl` shows and selects (A8, K0).

use anyhow::{Context, ensure};
use ayatori_tests::{Cluster, suite};
use serde_json::{Value, json};

use crate::{
    kinds::{Kind, condition},
    pointer,
    server::{self, Server, Verb},
};

/// One line of a table by its column's name; columns are told apart by where the header's words begin, since a cell may
/// be empty.
#[derive(Debug)]
struct Line(Vec<(String, String)>);

impl Line {
    fn get(&self, column: &str) -> &str {
        let cell = self.0.iter().find(|(name, _)| name == column);
        cell.map_or_else(|| panic!("no column {column} in {self:?}"), |(_, text)| text)
    }

    fn columns(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> anyhow::Result<String> {
    let output = cluster.kubectl().args(arguments).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {}: {error}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

fn table(text: &str) -> Vec<Line> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let starts: Vec<usize> = header
        .char_indices()
        .filter(|&(at, c)| c != ' ' && (at == 0 || header[..at].ends_with("  ")))
        .map(|(at, _)| at)
        .collect();
    let cells = |line: &str| -> Vec<String> {
        let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
        let cell =
            |(&start, end): (&usize, usize)| line.get(start..end.min(line.len())).unwrap_or("").trim().to_owned();
        starts.iter().zip(ends).map(cell).collect()
    };
    let names = cells(header);
    lines.map(|line| Line(names.iter().cloned().zip(cells(line)).collect())).collect()
}

/// Stores an object, with a status where one is given.
async fn store(server: &Server, collection: &str, mut object: Value, status: Value) -> anyhow::Result<()> {
    let stored = server.send(Verb::Create, collection, &object).await?;
    ensure!(stored.is_accepted(), "{}", stored.summary());
    if !status.is_null() {
        object["metadata"] = stored.body["metadata"].clone();
        object["status"] = status;
        let path = format!("{collection}/{}/status", object["metadata"]["name"].as_str().context("a name")?);
        let written = server.send(Verb::Replace, &path, &object).await?;
        ensure!(written.is_accepted(), "{}", written.summary());
    }
    Ok(())
}

/// One Job without a status, one that waits, one that has failed, one that has succeeded.
async fn store_jobs(server: &Server, namespace: &str) -> anyhow::Result<()> {
    let collection = Kind::Job.collection().replace("/default/", &format!("/{namespace}/"));
    let waiting = json!({"conditions": [condition("Succeeded", "Unknown", "Pending"),
        condition("Accepted", "False", "NoDefaultJobClass")]});
    let mut failed = Kind::Job.status();
    failed["conditions"][3] = condition("Succeeded", "False", "ProcessFailed");
    failed["result"] = json!({"exitCode": 7, "reason": "ProcessFailed"});
    let mut bare = Kind::Job.object("bare");
    pointer::set(&mut bare, "/spec/jobClassName", None).unwrap();
    store(server, &collection, bare, Value::Null).await?;
    store(server, &collection, Kind::Job.object("waiting"), waiting).await?;
    store(server, &collection, Kind::Job.object("failed"), failed).await?;
    store(server, &collection, Kind::Job.object("succeeded"), Kind::Job.status()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_columns_of_a_job_and_more_of_them_with_o_wide() -> anyhow::Result<()> {
    let (cluster, server) = (server::our_cluster().await?, server::ours().await?);
    suite::with_namespace(cluster, async |namespace| {
        store_jobs(&server, namespace).await?;
        let few = table(&kubectl(cluster, &["get", "ajob", "-n", namespace])?);
        let few_columns = ["NAME", "CLASS", "ACCEPTED", "SCHEDULED", "SUCCEEDED", "REASON", "AGE"];
        assert_eq!(few[0].columns(), few_columns);
        let lines =
            table(&kubectl(cluster, &["get", "jobs.execution.ayatori.ddupan.top", "-n", namespace, "-o", "wide"])?);
        let many = [
            "NAME",
            "CLASS",
            "ACCEPTED",
            "SCHEDULED",
            "SUCCEEDED",
            "REASON",
            "EXIT",
            "ADAPTER",
            "STARTED",
            "COMPLETED",
            "AGE",
        ];
        assert_eq!(lines[0].columns(), many);
        let cells = |name: &str| {
            let line = lines.iter().find(|line| line.get("NAME") == name).unwrap();
            ["CLASS", "ACCEPTED", "SCHEDULED", "SUCCEEDED", "REASON", "EXIT", "ADAPTER"].map(|column| line.get(column))
        };
        // What is absent is an empty cell, not a word; exit code 0 is a 0.
        assert_eq!(cells("bare"), ["", "", "", "", "", "", ""]);
        assert_eq!(cells("waiting"), ["standard", "False", "", "Unknown", "Pending", "", ""]);
        assert_eq!(cells("failed"), ["standard", "True", "True", "False", "ProcessFailed", "7", "kubernetes"]);
        assert_eq!(cells("succeeded"), ["standard", "True", "True", "True", "Completed", "0", "kubernetes"]);
        let times = |name: &str| {
            let line = lines.iter().find(|line| line.get("NAME") == name).unwrap();
            ["STARTED", "COMPLETED"].map(|column| !line.get(column).is_empty())
        };
        assert_eq!([times("waiting"), times("succeeded")], [[false, false], [true, true]]);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_the_columns_of_a_class_by_its_short_name() -> anyhow::Result<()> {
    let (cluster, server) = (server::our_cluster().await?, server::ours().await?);
    let mut status = Kind::JobClass.status();
    status["conditions"] =
        json!([condition("Ready", "False", "RuntimeClassNotFound"), condition("Accepted", "True", "Accepted")]);
    store(&server, &Kind::JobClass.collection(), Kind::JobClass.object("shown"), status).await?;
    let lines = table(&kubectl(cluster, &["get", "ajc", "shown"])?);
    assert_eq!(lines[0].columns(), ["NAME", "CONTROLLER", "ACCEPTED", "READY", "AGE"]);
    let cells = ["CONTROLLER", "ACCEPTED", "READY"].map(|column| lines[0].get(column));
    assert_eq!(cells, ["execution.ayatori.ddupan.top/kubernetes", "True", "False"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_category_lists_all_four_kinds_and_job_still_means_the_native_one() -> anyhow::Result<()> {
    let cluster = server::our_cluster().await?;
    let names = kubectl(cluster, &["api-resources", "--categories=ayatori", "-o", "name"])?;
    let mut names: Vec<_> = names.lines().collect();
    names.sort_unstable();
    let expected = ["jobclasses", "jobs", "kubernetesexecutionparameters", "opensandboxexecutionparameters"];
    assert_eq!(names, expected.map(|name| format!("{name}.execution.ayatori.ddupan.top")));
    let job = kubectl(cluster, &["explain", "job"])?;
    assert!(job.starts_with("GROUP:      batch\n"), "{job}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_field_selector_of_an_absent_completion_time_lists_the_unfinished() -> anyhow::Result<()> {
    let (cluster, server) = (server::our_cluster().await?, server::ours().await?);
    suite::with_namespace(cluster, async |namespace| {
        store_jobs(&server, namespace).await?;
        let list = |selector: &str| -> anyhow::Result<Vec<String>> {
            let names =
                kubectl(cluster, &["get", "ajob", "-n", namespace, "--field-selector", selector, "-o", "name"])?;
            Ok(names.lines().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned()).collect())
        };
        assert_eq!(list("status.completionTime=")?, ["bare", "waiting"]);
        assert_eq!(list("status.completionTime!=")?, ["failed", "succeeded"]);
        assert_eq!(list("status.completionTime=2030-01-01T10:05:00Z")?, ["failed", "succeeded"]);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_wait_ends_for_success_and_failure_alike() -> anyhow::Result<()> {
    let (cluster, server) = (server::our_cluster().await?, server::ours().await?);
    suite::with_namespace(cluster, async |namespace| {
        store_jobs(&server, namespace).await?;
        let wait = |name: &str, timeout: &str| {
            let condition = "--for=jsonpath={.status.completionTime}";
            kubectl(cluster, &["wait", condition, &format!("ajob/{name}"), "-n", namespace, timeout])
        };
        wait("succeeded", "--timeout=20s")?;
        wait("failed", "--timeout=20s")?;
        assert!(wait("waiting", "--timeout=1s").is_err());
        Ok(())
    })
    .await
}

#[test]
fn an_empty_cell_is_told_from_the_next_one() {
    let lines = table("NAME   CLASS   AGE\na              3s\nb      fast    4s\n");
    assert_eq!([lines[0].get("CLASS"), lines[1].get("CLASS")], ["", "fast"]);
    assert_eq!(lines[0].get("AGE"), "3s");
}
