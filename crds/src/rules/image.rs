//! Image references (spec B2): what is no OCI reference is refused at once.

use std::str::FromStr;

use oci_spec::distribution::Reference;

use super::FieldError;

/// The fault of an image reference, if it has one.
#[must_use]
pub fn error(field: &str, image: &str) -> Option<FieldError> {
    Reference::from_str(image).is_err().then(|| {
        FieldError::invalid(field, image, "must be an OCI image reference such as registry.example/team/app:1.2")
    })
}

/// Whether the tag is `latest`, said or implied: legal, but another image tomorrow.
#[must_use]
pub fn is_latest(image: &str) -> bool {
    Reference::from_str(image)
        .is_ok_and(|reference| reference.digest().is_none() && reference.tag().is_none_or(|tag| tag == "latest"))
}

/// Whether it is a reference that names no digest.
#[must_use]
pub fn lacks_digest(image: &str) -> bool {
    Reference::from_str(image).is_ok_and(|reference| reference.digest().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_what_is_none() {
        let digest = format!("app@sha256:{}", "a".repeat(64));
        for good in ["app", "app:1", "registry.example/team/app:1.2", "localhost:5000/app", digest.as_str()] {
            assert_eq!(error("spec.task.image", good), None, "{good}");
        }
        for bad in ["App", "app:", "a b", "app@sha256:12", "https://registry.example/app", "app:1:2", ""] {
            assert!(error("spec.task.image", bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn latest_is_seen_whether_said_or_implied() {
        assert!(is_latest("app") && is_latest("localhost:5000/app:latest"));
        assert!(!is_latest("app:1") && !is_latest(&format!("app@sha256:{}", "a".repeat(64))) && !is_latest("a b"));
    }
}
