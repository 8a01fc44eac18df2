//! One fault of one field, in the words that the API's own kinds use.

use std::fmt;

/// What kind of fault it is: the `reason` of a cause in a `Status` (Kubernetes `metav1.CauseType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// The value is malformed or out of bounds.
    Invalid,
    /// A value must be given.
    Required,
    /// The value is well-formed, but not allowed here.
    Forbidden,
}

impl FieldErrorKind {
    /// The word that stands in `details.causes[].reason`.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

/// One fault: where, what was given, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field path, for example `spec.task.env[2].name`.
    pub field: String,
    /// What kind of fault it is.
    pub kind: FieldErrorKind,
    /// The value that was given, where showing it helps.
    pub value: Option<String>,
    /// What would be right.
    pub detail: String,
}

/// Longest value that a message repeats, in characters.
const SHOWN_VALUE_LIMIT: usize = 128;

/// Longest field path that is told, in characters: one with the longest label key fits.
const FIELD_LIMIT: usize = 400;

impl FieldError {
    /// A value that is malformed or out of bounds.
    pub fn invalid(field: impl Into<String>, value: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Invalid, field, Some(cut(value.into(), SHOWN_VALUE_LIMIT)), detail)
    }

    /// As [`Self::invalid`], of a value that must not be repeated because it may hold a secret.
    pub fn invalid_unshown(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Invalid, field, None, detail)
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Required, field, None, detail)
    }

    /// A value that is not allowed here.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::of(FieldErrorKind::Forbidden, field, None, detail)
    }

    fn of(kind: FieldErrorKind, field: impl Into<String>, value: Option<String>, detail: impl Into<String>) -> Self {
        Self { field: cut(field.into(), FIELD_LIMIT), kind, value, detail: detail.into() }
    }

    /// The message without the field path, as it stands in `details.causes[].message`.
    #[must_use]
    pub fn message(&self) -> String {
        match (self.kind, &self.value) {
            (FieldErrorKind::Invalid, Some(value)) => format!("Invalid value: {value:?}: {}", self.detail),
            (FieldErrorKind::Invalid, None) => format!("Invalid value: {}", self.detail),
            (FieldErrorKind::Required, _) => format!("Required value: {}", self.detail),
            (FieldErrorKind::Forbidden, _) => format!("Forbidden: {}", self.detail),
        }
    }
}

/// The first characters of a text, with an ellipsis for the rest.
#[must_use]
pub fn cut(mut text: String, limit: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

/// All faults in one line, for a condition message.
#[must_use]
pub fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_like_those_of_the_kinds_that_kubernetes_has_itself() {
        assert_eq!(
            FieldError::invalid("spec.task.image", "a b", "must be an OCI reference").to_string(),
            r#"spec.task.image: Invalid value: "a b": must be an OCI reference"#
        );
        assert_eq!(FieldError::required("spec.x", "give one").to_string(), "spec.x: Required value: give one");
        assert_eq!(FieldError::forbidden("spec.x", "not here").to_string(), "spec.x: Forbidden: not here");
    }

    #[test]
    fn a_huge_value_is_not_repeated_whole() {
        assert!(FieldError::invalid("f", "é".repeat(100_000), "too long").message().len() < 400);
        assert!(FieldError::required("é".repeat(100_000), "too long").to_string().len() < 900);
        assert_eq!(FieldError::invalid("f", "x".repeat(128), "d").value, Some("x".repeat(128)));
    }
}
