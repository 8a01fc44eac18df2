//! Image references (spec B2): what is no OCI reference is refused at once.

use std::str::FromStr;

use oci_spec::distribution::Reference;

use super::FieldError;

/// The fault of an image reference, if it has one.
#[must_use]
pub fn error(field: &str, image: &str) -> Option<FieldError> {
    let why = match Reference::from_str(image) {
        Err(_) => "must be an OCI image reference such as registry.example/team/app:1.2",
        // The parser takes capitals; the OCI image specification and every runtime do not.
        Ok(reference) if reference.digest().is_some_and(|digest| digest.chars().any(|c| c.is_ascii_uppercase())) => {
            "must have a digest in lower case"
        }
        Ok(_) if is_image_id(image) => "must be a name: 64 hexadecimal digits are the ID of an image",
        Ok(_) => return None,
    };
    Some(FieldError::invalid(field, image, why))
}

/// Runtimes take such a name for the ID of an image, and the kubelet refuses it.
fn is_image_id(image: &str) -> bool {
    image.len() == 64 && image.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
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
        let (capitals, id) = (format!("app@sha256:{}", "A".repeat(64)), "0a".repeat(32));
        for (bad, why) in [(&capitals, "lower case"), (&id, "must be a name")] {
            assert!(error("spec.task.image", bad).is_some_and(|fault| fault.detail.contains(why)), "{bad}");
        }
        assert_eq!(error("spec.task.image", &"0a".repeat(33)), None, "a name may have more digits");
    }

    #[test]
    fn latest_is_seen_whether_said_or_implied() {
        assert!(is_latest("app") && is_latest("localhost:5000/app:latest"));
        assert!(!is_latest("app:1") && !is_latest(&format!("app@sha256:{}", "a".repeat(64))) && !is_latest("a b"));
    }
}
