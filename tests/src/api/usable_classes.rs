//! The refusal of a namespace names the classes that it may use instead. Which there are depends on what else a test
//! cluster holds, so suites compare the rest; that the right ones are named is tested where the webhook is.

/// How the names begin, and what a suite has in their place.
const NAMES: (&str, &str) = ("use one that does (", "…");

/// What the condition of a Job says there: it is no place for a list that others change.
pub const IN_A_CONDITION: (&str, &str) = ("use one that does (…)", "use another class (kubectl get jobclasses)");

/// The text without those names.
pub fn unnamed(text: &str) -> String {
    let mut parts = text.split(NAMES.0);
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find(')').map_or("", |end| &part[end..]);
        without.extend([NAMES.0, NAMES.1, rest]);
    }
    without
}

#[test]
fn only_the_names_go() {
    let text = "not this one: use one that does (\"a\", \"b\" and 2 more), or ask (him); use one that does (\"c\")";
    assert_eq!(unnamed(text), "not this one: use one that does (…), or ask (him); use one that does (…)");
    assert_eq!(unnamed("a (b)"), "a (b)");
}
