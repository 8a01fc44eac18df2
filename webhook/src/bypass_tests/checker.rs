//! The rules of admission once more, written down plainly over JSON, to compare with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::worlds::{BAD_IMAGE, DIGEST_IMAGE, World};

/// The fields of a stored Job that break a rule.
pub(super) fn faults(stored: &Value, world: &World) -> BTreeSet<String> {
    let mut faults = BTreeSet::new();
    let spec = &stored["spec"];
    let task = &spec["task"];

    // The task by itself, and the platform's policy.
    let image = task["image"].as_str().unwrap();
    if image == BAD_IMAGE || (image != DIGEST_IMAGE && world.policy["image"]["requireDigest"] == true) {
        faults.insert("spec.task.image".to_owned());
    }
    for (index, variable) in list(&task["env"]).iter().enumerate() {
        if variable["name"].as_str().unwrap().starts_with("AYATORI_") {
            faults.insert(format!("spec.task.env[{index}].name"));
        }
    }
    let ttl_is_bad = match spec["ttlSecondsAfterFinished"].as_i64() {
        None => world.policy["ttl"]["required"] == true,
        Some(ttl) => world.policy["ttl"]["maximum"].as_i64().is_some_and(|maximum| ttl > maximum),
    };
    if ttl_is_bad {
        faults.insert("spec.ttlSecondsAfterFinished".to_owned());
    }

    // What the class says, if there is one.
    let class = world.class.as_ref().filter(|_| spec["jobClassName"] == "c");
    if let Some(class) = class {
        if !selects(&class["spec"]["allowedNamespaces"], &world.labels) {
            faults.insert("spec.jobClassName".to_owned());
        }
        if class["spec"]["controllerName"] == "execution.ayatori.ddupan.top/opensandbox" {
            of_sandboxes(task, &world.settings["spec"], &mut faults);
        }
    }
    let none = Value::Null;
    let bounds = class.map_or(&none, |class| &class["spec"]["resources"]);
    of_resources(&spec["resources"], bounds, &mut faults);
    faults
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn of_sandboxes(task: &Value, settings: &Value, faults: &mut BTreeSet<String>) {
    if list(&task["command"]).is_empty() {
        faults.insert("spec.task.command".to_owned());
    }
    if !list(&task["imagePullSecrets"]).is_empty() && settings["allowImageAuth"] != true {
        faults.insert("spec.task.imagePullSecrets".to_owned());
    }
    for (index, variable) in list(&task["env"]).iter().enumerate() {
        if variable["valueFrom"]["secretKeyRef"].is_object() && settings["allowSecretEnv"] != true {
            faults.insert(format!("spec.task.env[{index}].valueFrom.secretKeyRef"));
        }
    }
}

/// Whether a label selector selects these labels; none selects all.
fn selects(selector: &Value, labels: &[(&str, &str)]) -> bool {
    // The last one of a key counts, as in a map.
    let label = |key: &str| labels.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let wanted = selector["matchLabels"].as_object();
    let all_equal = wanted.is_none_or(|wanted| wanted.iter().all(|(key, value)| label(key) == value.as_str()));
    let all_hold = list(&selector["matchExpressions"]).iter().all(|expression| {
        let found = label(expression["key"].as_str().unwrap());
        let among = found.is_some_and(|found| list(&expression["values"]).iter().any(|value| value == found));
        match expression["operator"].as_str().unwrap() {
            "In" => among,
            "NotIn" => !among,
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    });
    all_equal && all_hold
}

fn of_resources(asked: &Value, bounds: &Value, faults: &mut BTreeSet<String>) {
    for resource in ["cpu", "memory"] {
        let chosen = |list: &str| {
            let given = &asked[list][resource];
            let default = &bounds["defaults"][list][resource];
            [given, default].into_iter().find(|value| !value.is_null()).map(micro)
        };
        let limit = chosen("limits");
        let request = chosen("requests").or(limit);
        // No part of a backend can give less than a thousandth of a CPU, or part of a byte.
        let grain = if resource == "cpu" { 1_000 } else { 1_000_000 };
        for (list, value) in [("requests", request), ("limits", limit)] {
            let [minimum, maximum] = ["minimum", "maximum"].map(|bound| {
                let value = &bounds[bound][list][resource];
                (!value.is_null()).then(|| micro(value))
            });
            let bad = match value {
                None => minimum.is_some() || maximum.is_some(),
                Some(value) => {
                    value % grain != 0
                        // No container can be held to nothing.
                        || (list == "limits" && value == 0)
                        || minimum.is_some_and(|minimum| value < minimum)
                        || maximum.is_some_and(|maximum| value > maximum)
                        || (list == "requests" && limit.is_some_and(|limit| value > limit))
                }
            };
            if bad {
                faults.insert(format!("spec.resources.{list}.{resource}"));
            }
        }
    }
}

/// A quantity of the worlds' spellings in millionths.
fn micro(value: &Value) -> i128 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (number, factor) = match (text.strip_suffix('m'), text.strip_suffix('k'), text.strip_suffix("Ki")) {
        (Some(number), _, _) => (number, 1_000),
        (_, Some(number), _) => (number, 1_000_000_000),
        (_, _, Some(number)) => (number, 1_024_000_000),
        _ => (text.as_str(), 1_000_000),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_i128.pow(u32::try_from(fraction.len()).unwrap());
    let digits: i128 = format!("{whole}{fraction}").parse().unwrap();
    assert_eq!(digits * factor % scale, 0, "{text} is finer than a millionth");
    digits * factor / scale
}
