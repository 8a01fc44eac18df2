//! Updates of the lists in a Job's status, conditions and references (A4, I2, I4, I6).

use serde_json::json;

use super::{
    Row, changed,
    status::{
        FINAL, KEPT, SCHEDULED, accepted, cancelled, end, finished, rule, running, scheduled, status_rows, waiting,
    },
};
use crate::kinds::condition;

pub(crate) fn rows() -> Vec<Row> {
    [conditions(), transitions(), execution()].concat()
}

fn conditions() -> Vec<Row> {
    let kept = rule("status.conditions", "no condition is ever removed");
    let full = waiting();
    let (first, second) = (full["conditions"][0].clone(), full["conditions"][1].clone());
    let mut rows = status_rows(
        &kept,
        true,
        &[
            ("one more", waiting(), &[("/conditions", json!([first, second, condition("Stalled", "True", "Quota")]))]),
            ("another order", waiting(), &[("/conditions", json!([second, first]))]),
            ("another reason of a False one", waiting(), &[("/conditions/0/reason", json!("NamespaceNotAllowed"))]),
        ],
    );
    rows.extend(status_rows(
        &kept,
        false,
        &[
            ("the first", waiting(), &[("/conditions", json!([second]))]),
            ("the last", waiting(), &[("/conditions", json!([first]))]),
            ("all", waiting(), &[("/conditions", json!([]))]),
            ("renamed", waiting(), &[("/conditions/0/type", json!("Other"))]),
        ],
    ));
    rows
}

fn transitions() -> Vec<Row> {
    let lasting = rule("status.conditions", "Accepted, Scheduled and DuplicateExecution never go back from True");
    let twice = || {
        let mut status = running();
        let conditions = status["conditions"].as_array_mut().unwrap();
        conditions.push(condition("DuplicateExecution", "True", "DuplicateExecution"));
        status
    };
    let mut rows = status_rows(
        &lasting,
        true,
        &[
            ("False to True", waiting(), &[("", accepted())]),
            ("another message", accepted(), &[("/conditions/0/message", json!("Other words."))]),
            ("Scheduled from False to Unknown", accepted(), &[("/conditions/1/status", json!("Unknown"))]),
        ],
    );
    rows.extend(status_rows(
        &lasting,
        false,
        &[
            ("Accepted to False", accepted(), &[("/conditions/0/status", json!("False"))]),
            ("Accepted to Unknown", accepted(), &[("/conditions/0/status", json!("Unknown"))]),
            ("Scheduled to False", scheduled(), &[("/conditions/1/status", json!("False"))]),
            ("DuplicateExecution to False", twice(), &[("/conditions/3/status", json!("False"))]),
            ("Scheduled removed", scheduled(), &[("/conditions", json!([condition("Accepted", "True", "Valid")]))]),
        ],
    ));
    let is_final = rule("status.conditions", "Succeeded is final once it is True or False");
    rows.extend(status_rows(
        &is_final,
        true,
        &[
            ("Unknown to True", running(), &end()),
            ("Running to ResultUnknown", running(), &[("/conditions/2/reason", json!("ResultUnknown"))]),
            ("a newer observedGeneration of it", finished(), &[("/conditions/2/observedGeneration", json!(7))]),
            (
                "no observedGeneration of it",
                finished(),
                &[("/conditions/2/observedGeneration", serde_json::Value::Null)],
            ),
        ],
    ));
    rows.extend(status_rows(
        &is_final,
        false,
        &[
            ("True to False", finished(), &[("/conditions/2/status", json!("False"))]),
            ("False to True", cancelled(), &[("/conditions/0/status", json!("True"))]),
            ("True to Unknown", finished(), &[("/conditions/2/status", json!("Unknown"))]),
            ("another reason", finished(), &[("/conditions/2/reason", json!("Other"))]),
            ("another message", finished(), &[("/conditions/2/message", json!("Other words."))]),
            ("another time", finished(), &[("/conditions/2/lastTransitionTime", json!("2030-01-01T11:00:00Z"))]),
            ("removed", cancelled(), &[("/conditions", json!([]))]),
        ],
    ));
    rows
}

fn execution() -> Vec<Row> {
    let where_it_is =
        rule("status.conditions", "Scheduled may be True only where Accepted is True and execution is set");
    let mut rows = status_rows(&where_it_is, true, &[("with both", accepted(), &[("", scheduled())])]);
    rows.extend(status_rows(
        &where_it_is,
        false,
        &[
            ("without execution", accepted(), &[(SCHEDULED, condition("Scheduled", "True", "BackendCreated"))]),
            ("without Accepted", waiting(), &[("/conditions/1", condition("Scheduled", "True", "BackendCreated"))]),
        ],
    ));
    let adapter = rule("status.execution.adapter", FINAL);
    rows.extend(status_rows(&adapter, true, &[("as before", scheduled(), &[])]));
    rows.extend(status_rows(
        &adapter,
        false,
        &[("another", scheduled(), &[("/execution/adapter", json!("opensandbox"))])],
    ));
    let (list, references) = ("/execution/references", "status.execution.references");
    let (job, command) = (json!({"type": "Job", "id": "1d2c"}), json!({"type": "Command", "id": "9"}));
    let without = changed(&scheduled(), "", &[(list, serde_json::Value::Null)]);
    rows.extend(status_rows(&rule(references, KEPT), true, &[("set later", without, &[(list, json!([job]))])]));
    rows.extend(status_rows(
        &rule(references, KEPT),
        false,
        &[("removed", scheduled(), &[(list, serde_json::Value::Null)])],
    ));
    let grow = rule(references, "no reference is ever replaced or removed");
    rows.extend(status_rows(
        &grow,
        true,
        &[
            ("one more", scheduled(), &[(list, json!([job, command]))]),
            ("one more, before", scheduled(), &[(list, json!([command, job]))]),
        ],
    ));
    rows.extend(status_rows(
        &grow,
        false,
        &[
            ("another id", scheduled(), &[("/execution/references/0/id", json!("other"))]),
            ("another type", scheduled(), &[("/execution/references/0/type", json!("Sandbox"))]),
            ("emptied", scheduled(), &[(list, json!([]))]),
            ("replaced", scheduled(), &[(list, json!([command]))]),
            ("another id after the end", finished(), &[("/execution/references/0/id", json!("other"))]),
        ],
    ));
    rows
}
