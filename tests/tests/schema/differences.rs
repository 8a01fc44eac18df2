//! The written list: where our definitions judge otherwise than the reference, and why.

use std::collections::BTreeSet;

use crate::cases::{Case, Change};

/// One reason for which we refuse what the reference accepts (the other way round there is none).
pub(crate) struct Difference {
    /// The rule in the spec and what it is for.
    pub(crate) reason: &'static str,
    /// Kinds, places and classes of the cases that it is about.
    pub(crate) cases: &'static [(&'static str, &'static [&'static str], &'static [&'static str])],
}

pub(crate) const DIFFERENCES: &[Difference] = &[];

impl Difference {
    /// Whether it speaks of that change.
    pub(crate) fn matches(&self, kind: &str, change: &Change) -> bool {
        self.cases.iter().any(|(of, places, classes)| {
            (*of == "*" || *of == kind)
                && classes.contains(&change.class.as_str())
                && places.iter().any(|pattern| place_matches(pattern, &change.at))
        })
    }
}

/// `*` stands for one name or index; a pattern that begins with `…` fits the end of the place.
fn place_matches(pattern: &str, place: &str) -> bool {
    let mut names: Vec<_> = place.split('/').collect();
    let pattern: Vec<_> = match pattern.strip_prefix('…') {
        Some(end) => {
            let end: Vec<_> = end.split('/').skip(1).collect();
            names = names.split_off(names.len().saturating_sub(end.len()));
            end
        }
        None => pattern.split('/').collect(),
    };
    pattern.len() == names.len() && pattern.iter().zip(&names).all(|(one, two)| *one == "*" || one == two)
}

/// Faults of the list, given every case and whether the two definitions judged it differently.
///
/// Of single changes the list must say exactly which differ; a pair may differ only if one of its changes may.
pub(crate) fn check(judged: &[(&Case, bool)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for (case, differs) in judged {
        let kind = case.kind.name();
        let matching = |change: &Change| DIFFERENCES.iter().position(|entry| entry.matches(kind, change));
        let entries: Vec<_> = case.changes.iter().filter_map(matching).collect();
        match (differs, case.changes.len(), entries.is_empty()) {
            (true, _, true) => faults.push(format!("{kind} {}: differs, and the list does not say why", case.name())),
            (false, 1, false) => faults.push(format!("{kind} {}: the list says that it differs", case.name())),
            (true, 1, false) => used.extend(entries),
            _ => {}
        }
    }
    for (index, entry) in DIFFERENCES.iter().enumerate() {
        if !used.contains(&index) {
            faults.push(format!("no case differs for this reason: {}", entry.reason));
        }
    }
    faults
}

#[test]
fn a_pattern_fits_whole_names_only() {
    assert!(place_matches("/spec/task/env/*/name", "/spec/task/env/0/name"));
    assert!(!place_matches("/spec/task/env/*", "/spec/task/env/0/name"));
    assert!(place_matches("…/limits/cpu", "/spec/resources/limits/cpu"));
    assert!(!place_matches("…/cpu", "/spec/resources/limits/memory"));
}
