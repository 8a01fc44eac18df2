//! The objects of the differential test: one valid object a kind, and what is changed in it.
//!
//! They are made from our schemas without any chance, so that a verdict on each can be kept in `verdicts.txt`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    fields::{fields, places},
    kinds::Kind,
    pointer,
};

mod hand_picked;
mod pairs;
mod quantities;
mod values;

/// The class of the valid object itself.
pub(crate) const AS_IT_IS: &str = "as-it-is";

/// What is put at one place of the valid object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// A JSON pointer into the object.
    pub(crate) at: String,
    /// What kind of value it is, in a word.
    pub(crate) class: String,
    /// None: the field is removed.
    pub(crate) value: Option<Value>,
}

/// One object.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) changes: Vec<Change>,
}

impl Case {
    /// `/spec/task/image absent`, unique within the kind.
    pub(crate) fn name(&self) -> String {
        let words: Vec<_> = self.changes.iter().map(|change| format!("{} {}", change.at, change.class)).collect();
        words.join(" + ")
    }

    /// Whether the case is about the status, which is written by a request of its own.
    pub(crate) fn is_status(&self) -> bool {
        self.changes.iter().any(|change| change.at.starts_with("/status"))
    }

    /// The object to send; with the whole status where the case is about that.
    pub(crate) fn object(&self, name: &str) -> Value {
        let mut object = self.kind.object(name);
        if self.is_status() {
            object["status"] = self.kind.status();
        }
        for change in &self.changes {
            pointer::set(&mut object, &change.at, change.value.clone()).unwrap();
        }
        object
    }
}

/// All cases of a kind: each field of the schema with each class of value that its type knows, what people thought of,
/// and pairs of these until there are enough.
pub(crate) fn all(kind: Kind) -> Vec<Case> {
    let mut object = kind.object("any");
    object["status"] = kind.status();
    let mut cases = Vec::new();
    for place in places(&kind.schema().unwrap(), &object) {
        for (class, value) in values::of(&place) {
            cases.push(Case { kind, changes: vec![Change { at: place.at.clone(), class, value }] });
        }
    }
    for (at, class, value) in hand_picked::of(kind) {
        let change = Change { at: at.to_owned(), class: class.to_owned(), value: Some(value) };
        cases.push(Case { kind, changes: vec![change] });
    }
    for root in ["spec", "status"].into_iter().filter(|root| !object[root].is_null()) {
        let (at, class) = (format!("/{root}"), AS_IT_IS.to_owned());
        cases.push(Case { kind, changes: vec![Change { at, class, value: Some(object[root].clone()) }] });
    }
    pairs::add(&mut cases);
    cases
}

#[test]
fn there_are_at_least_300_cases_a_kind_and_no_two_have_one_name() {
    for kind in Kind::ALL {
        let cases = all(kind);
        let names: BTreeSet<_> = cases.iter().map(Case::name).collect();
        assert!(cases.len() >= 300, "{kind:?}: {}", cases.len());
        assert_eq!(names.len(), cases.len(), "{kind:?}");
        println!("{}: {} cases", kind.name(), cases.len());
    }
}

#[test]
fn every_field_of_the_schema_is_fed_in_at_least_six_ways() {
    for kind in Kind::ALL {
        let cases = all(kind);
        let mut object = kind.object("any");
        object["status"] = kind.status();
        let places = places(&kind.schema().unwrap(), &object);
        let reached: BTreeSet<_> = places.iter().map(|place| place.field.clone()).collect();
        assert_eq!(reached, fields(&kind.schema().unwrap()), "{kind:?}: the valid object has every field");
        for place in places.iter().filter(|place| place.is_leaf()) {
            let single = cases.iter().filter(|case| case.changes.len() == 1);
            let ways = single.filter(|case| case.changes[0].at == place.at).count();
            assert!(ways >= 6, "{kind:?} {}: {ways}", place.at);
        }
    }
}

#[test]
fn a_change_is_made_where_its_pointer_says() {
    let change = |at: &str, value| Change { at: at.into(), class: "x".into(), value };
    let changes = vec![change("/spec/task/env/0/name", Some(json!("OTHER"))), change("/spec/resources", None)];
    let object = Case { kind: Kind::Job, changes }.object("any");
    assert_eq!(object["spec"]["task"]["env"][0], json!({"name": "OTHER", "value": "text"}));
    assert!(object["spec"].get("resources").is_none());
}
