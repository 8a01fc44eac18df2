//! The tables of spec updates on the server with the reference definitions. (These have no rule on a status.)

use std::collections::BTreeSet;

use super::{Row, job_spec, judge, other_kinds};
use crate::server;

/// Where the reference judges an update otherwise, and why.
struct Difference {
    /// The beginning of the field.
    field: &'static str,
    updates: &'static [&'static str],
    reason: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        field: "spec.task.",
        updates: &["absent to empty", "empty to absent"],
        reason: "A3: absent and empty are the same; the reference refuses the change",
    },
    Difference {
        field: "spec.jobClassName",
        updates: &["absent to empty", "empty to absent"],
        reason: "A3: absent and empty are the same; the reference refuses the change",
    },
    Difference {
        field: "spec.task.env",
        updates: &["another order"],
        reason: "A3: the order of env counts; the reference does not see it",
    },
    Difference {
        field: "spec.resources.",
        updates: &["1 to 1000m", "a text to a number", "0.5Gi to 512Mi", "1G to 1e9"],
        reason: "A3: quantities compare by value; the reference compares texts",
    },
    Difference {
        field: "spec.resources.",
        updates: &["no resources to empty ones", "empty resources to none", "an empty list to none"],
        reason: "A3: absent and empty are the same; the reference refuses the change",
    },
    Difference {
        field: "spec.resources.",
        updates: &["cancelled without resources", "kept longer without resources"],
        reason: "A3: the reference rule fails on the absent field and refuses every update",
    },
    Difference {
        field: "spec.desiredState",
        updates: &["only an image, cancelled"],
        reason: "A3: the reference rule fails on the absent field and refuses every update",
    },
    Difference {
        field: "spec.resources.",
        updates: &["to a negative one (of a class)", "to one that overflows"],
        reason: "A7: what is no quantity, negative or overflows is refused",
    },
    Difference {
        field: "spec.endpoint",
        updates: &["to user and password", "to a user"],
        reason: "A6: the endpoint never holds credentials",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_judges_updates_of_the_spec_as_we_do_but_for_the_written_differences() -> anyhow::Result<()> {
    let Some(reference) = server::reference().await? else { return Ok(()) };
    let rows = [job_spec::rows(), other_kinds::rows()].concat();
    let answers = judge(&reference, &rows, "table").await?;
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for (row, answer) in rows.iter().zip(&answers) {
        let entry = DIFFERENCES.iter().position(|entry| entry.is_about(row));
        match (answer.is_accepted() != row.allowed, entry) {
            (true, None) => faults.push(format!("{}: the reference says {}", row.name(), answer.summary())),
            (false, Some(_)) => faults.push(format!("{}: the list says that it differs", row.name())),
            (_, entry) => used.extend(entry),
        }
    }
    let unused = DIFFERENCES.iter().enumerate().filter(|(index, _)| !used.contains(index));
    faults.extend(unused.map(|(_, entry)| format!("no update of {} differs for: {}", entry.field, entry.reason)));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    Ok(())
}

impl Difference {
    fn is_about(&self, row: &Row) -> bool {
        row.rule.field.starts_with(self.field) && self.updates.contains(&row.what)
    }
}
