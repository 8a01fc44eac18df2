//! CEL rules that several fields share, and the shapes that a real API server can afford.
//!
//! Three facts decide how they are written. Optionals on strings, lists and quantities exceed the cost budget, so
//! absence is asked with `has()`. A rule that sits on a field is not called when the field is removed, so rules that
//! forbid a removal sit one level up. `==` on a map list ignores order, so an order that counts is compared by key.

use kube::core::Rule;

/// `has(self.a) && has(self.a.b)` for `["a", "b"]`.
fn present(root: &str, path: &[&str]) -> String {
    (1..=path.len()).map(|depth| format!("has({root}.{})", path[..depth].join("."))).collect::<Vec<_>>().join(" && ")
}

/// The field at `path` never changes; absent and empty are the same. `empty` is the CEL literal for empty.
pub(crate) fn immutable(path: &str, empty: &str) -> Rule {
    let value = |root: &str| format!("(has({root}{path}) ? {root}{path} : {empty})");
    Rule::new(format!("{} == {}", value("self"), value("oldSelf"))).message("is immutable").field_path(path)
}

/// The quantity at `path` never changes by value (`1` is `1000m`), and is neither added nor removed.
pub(crate) fn immutable_quantity(path: &[&str]) -> Rule {
    let (new, old) = (format!("self.{}", path.join(".")), format!("oldSelf.{}", path.join(".")));
    let (has_new, has_old) = (present("self", path), present("oldSelf", path));
    let rule = format!(
        "({has_new}) ? (({has_old}) && ({new} == {old} || (isQuantity(string({new})) && isQuantity(string({old})) \
         && quantity(string({new})).compareTo(quantity(string({old}))) == 0))) : !({has_old})"
    );
    Rule::new(rule).message("is immutable").field_path(format!(".{}", path.join(".")))
}

/// The field at `path` (a scalar or an object) never changes once it is set, and is never removed.
pub(crate) fn set_once(path: &str) -> Rule {
    Rule::new(format!("!has(oldSelf{path}) || (has(self{path}) && self{path} == oldSelf{path})"))
        .message("never changes once it is set")
        .field_path(path)
}

/// The field at `path` is never removed once it is set; what may change inside it is said inside it.
pub(crate) fn kept(path: &str) -> Rule {
    Rule::new(format!("!has(oldSelf{path}) || has(self{path})"))
        .message("is never removed once it is set")
        .field_path(path)
}

/// What a quantity may be at all (spec A7): it parses, is not negative and does not overflow.
///
/// `maximum` is the largest whole number of units that fits.
fn bounded_quantity(maximum: &str) -> Rule {
    Rule::new(format!(
        "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 \
         && quantity(string(self)).compareTo(quantity('{maximum}')) <= 0"
    ))
    .message(format!("must be a quantity from 0 to {maximum}").as_str())
}

/// CPU is counted in milli in an `i64`: 2⁶³-1 thousandths.
pub(crate) fn cpu() -> Rule {
    bounded_quantity("9223372036854775")
}

/// Memory is counted in bytes in an `i64`. The API server silently caps what is larger to 2⁶³-1, so the bound itself
/// is refused.
pub(crate) fn memory() -> Rule {
    bounded_quantity("9223372036854775806")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_asked_for_level_by_level() {
        assert_eq!(present("self", &["a", "b"]), "has(self.a) && has(self.a.b)");
    }
}
