//! Every series that is served stands in `docs/metrics.md`, and nothing else does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ayatori_certs::{CertSource, LEAF_LIFETIME, Leaf, SelfManaged};
use ayatori_controller::{
    clock::Clock,
    metrics::FromStores,
    stores::{Stores, stores},
};
use ayatori_crds::Job;
use ayatori_webhook::{Answer, Arrival, Request, Review, Reviews};
use futures::{FutureExt, future::BoxFuture};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Client,
    runtime::{reflector, watcher::Event},
};
use prometheus_client::{encoding::prometheus_text::encode, registry::Registry};
use serde_json::{Value, json};

use super::access::nobody;
use crate::metrics::{Metrics, expiry::Expiry};

/// Type and labels of each series, by its name.
type Series = BTreeMap<String, (String, BTreeSet<String>)>;

struct Nothing;

impl Review for Nothing {
    fn resource(&self) -> [&str; 3] {
        ["", "", ""]
    }

    fn review<'a>(&'a self, _: &'a Request<'a>) -> BoxFuture<'a, Answer> {
        async { Answer::allowed() }.boxed()
    }
}

fn job(status: &Value) -> Job {
    serde_json::from_value(json!({
        "apiVersion": "execution.ayatori.ddupan.top/v1alpha1", "kind": "Job",
        "metadata": {"name": "j", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"task": {"image": "app:1"}}, "status": status,
    }))
    .unwrap()
}

/// A registry in which everything has happened once.
async fn eventful() -> Registry {
    let metrics = Metrics::default();
    let reviews = Reviews::counted_in(metrics.webhook.clone()).with("/p", Arc::new(Nothing));
    let strange = br#"{"apiVersion": "v9", "kind": "AdmissionReview", "request": {"uid": "u"}}"#;
    reviews.answer(reviews.at("/p").unwrap(), strange, Arrival::default()).await.unwrap();

    let over = job(&json!({"startTime": "2026-01-01T00:00:04Z", "completionTime": "2026-01-01T00:00:05Z"}));
    metrics.controller.job_written(&job(&Value::Null), &over);
    metrics.controller.reconciles("job").count(&Ok(()));
    metrics.controller.deleted_by_ttl(SignedDuration::ZERO);

    let clock = Clock::default();
    clock.saw("Sat, 01 Dec 2040 08:49:37 GMT", Timestamp::now());
    let (jobs, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Apply(over));
    let client: Client = nobody();
    let stores = Stores { jobs, ..stores(&client).0 };
    let source = SelfManaged::default();
    source.serve(Leaf::self_signed(&["localhost".to_owned()], Timestamp::now(), LEAF_LIFETIME).unwrap());
    let source: Arc<dyn CertSource> = Arc::new(source);
    metrics.registry(FromStores::new(stores, clock), Expiry(vec![("webhook", source)]))
}

fn served(registry: &Registry) -> Series {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    let mut series = Series::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, type_) = typed.split_once(' ').unwrap();
            current = name.to_owned();
            assert!(
                series.insert(current.clone(), (type_.to_owned(), BTreeSet::new())).is_none(),
                "{name} is served twice"
            );
        } else if !line.starts_with('#') {
            assert!(line.starts_with(&current), "{line} after {current}");
            let labels =
                line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(labels, _)| labels);
            let names = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(name, _)| name.to_owned());
            series.get_mut(&current).unwrap().1.extend(names.filter(|name| name != "le"));
        }
    }
    series
}

/// The rows of the table: `` | `name` | type | `label`, `label` | words | ``.
fn documented() -> Series {
    let page = include_str!("../../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `ayatori_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, type_, labels, words, _] = cells[..] else { panic!("{row}: must have four cells") };
        assert!(!words.is_empty(), "{row}");
        let plain = |cell: &str| cell.trim_matches('`').to_owned();
        let labels = labels.split(", ").filter(|label| !label.is_empty()).map(plain).collect();
        (plain(name), (type_.to_owned(), labels))
    })
    .collect()
}

#[tokio::test]
async fn every_series_stands_in_the_documentation_with_its_type_and_labels_and_no_other_does() {
    let registry = eventful().await;
    let (served, documented) = (served(&registry), documented());
    for (name, told) in &documented {
        assert_eq!(Some(told), served.get(name), "{name}: left what docs/metrics.md says, right what is served");
    }
    for name in served.keys() {
        assert!(documented.contains_key(name), "{name} is not in docs/metrics.md");
    }
    // What has no sample yet is not served: the test must have made one of each that is registered.
    let all = format!("{registry:?}");
    for name in all.split("Descriptor { name: \"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let (gauge, counter) = (format!("ayatori_{name}"), format!("ayatori_{name}_total"));
        assert!(served.contains_key(&gauge) || served.contains_key(&counter), "the test makes no sample of {name}");
    }
}

#[test]
fn the_alerts_speak_of_series_that_there_are() {
    let rules = include_str!("../../../deploy/monitoring/prometheus_rule.yaml");
    let documented = documented();
    let words = rules.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("ayatori_")).collect();
    assert!(named.contains("ayatori_default_job_classes"), "{named:?}");
    for name in named {
        assert!(documented.contains_key(name), "{name} is not in docs/metrics.md");
    }
}
