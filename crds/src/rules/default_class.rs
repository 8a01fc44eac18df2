//! Which class a Job gets that names none (spec B1).

use std::collections::BTreeMap;

use crate::{
    JobClass,
    names::{DEFAULT_JOB_CLASS_ANNOTATION, IS_DEFAULT_JOB_CLASS_ANNOTATION},
};

/// What the annotations say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultClass {
    /// This one. Whether it exists is another question: a name is used as it is written.
    Named(String),
    /// Neither the namespace nor any class says anything.
    None,
    /// Several classes are marked as the cluster's default; their names, sorted. The newest is never picked.
    Ambiguous(Vec<String>),
}

/// Whether the class is marked as the cluster's default and counts: one being deleted does not.
#[must_use]
pub fn is_marked_default(class: &JobClass) -> bool {
    class.metadata.deletion_timestamp.is_none()
        && class.metadata.annotations.as_ref().and_then(|all| all.get(IS_DEFAULT_JOB_CLASS_ANNOTATION))
            == Some(&"true".to_owned())
}

/// The namespace's annotation, else the only class that is marked as the default.
pub fn default_class<'a>(
    namespace_annotations: &BTreeMap<String, String>,
    classes: impl IntoIterator<Item = &'a JobClass>,
) -> DefaultClass {
    if let Some(name) = namespace_annotations.get(DEFAULT_JOB_CLASS_ANNOTATION).filter(|name| !name.is_empty()) {
        return DefaultClass::Named(name.clone());
    }
    let mut marked: Vec<String> = classes
        .into_iter()
        .filter(|class| is_marked_default(class))
        .filter_map(|class| class.metadata.name.clone())
        .collect();
    marked.sort_unstable();
    match marked.len() {
        0 => DefaultClass::None,
        1 => DefaultClass::Named(marked.remove(0)),
        _ => DefaultClass::Ambiguous(marked),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::JobClassSpec;

    fn class(name: &str, mark: Option<&str>) -> JobClass {
        let mut class = JobClass::new(name, JobClassSpec::default());
        class.metadata.annotations =
            mark.map(|mark| BTreeMap::from([(IS_DEFAULT_JOB_CLASS_ANNOTATION.to_owned(), mark.to_owned())]));
        class
    }

    fn namespace(class: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(DEFAULT_JOB_CLASS_ANNOTATION.to_owned(), class.to_owned())])
    }

    #[test]
    fn the_namespace_wins_over_the_cluster_even_where_its_class_is_absent() {
        let classes = [class("global", Some("true"))];
        assert_eq!(default_class(&namespace("absent"), &classes), DefaultClass::Named("absent".into()));
        assert_eq!(default_class(&namespace(""), &classes), DefaultClass::Named("global".into()));
        assert_eq!(default_class(&BTreeMap::new(), &classes), DefaultClass::Named("global".into()));
    }

    #[test]
    fn none_and_several_are_told_apart() {
        let mut classes = vec![class("a", None), class("b", Some("false")), class("c", Some("True"))];
        assert_eq!(default_class(&BTreeMap::new(), &classes), DefaultClass::None);
        classes.extend([class("z", Some("true")), class("y", Some("true"))]);
        let expected = DefaultClass::Ambiguous(vec!["y".into(), "z".into()]);
        assert_eq!(default_class(&BTreeMap::new(), &classes), expected);
    }

    #[test]
    fn a_class_that_is_being_deleted_is_no_default() {
        let mut going = class("going", Some("true"));
        going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let classes = [going, class("staying", Some("true"))];
        assert_eq!(default_class(&BTreeMap::new(), &classes), DefaultClass::Named("staying".into()));
    }
}
