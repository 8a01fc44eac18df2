//! How Kubernetes writes names and labels, where the schema does not say it.

use super::FieldError;

/// A DNS subdomain (RFC 1123): what names most objects, and stands before the `/` of a label key. Nothing else may be
/// put into the path of a request.
#[must_use]
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// A DNS label (RFC 1123): what names namespaces.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

fn is_dns_part(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('-')
        && !part.ends_with('-')
        && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// A key in the data of a Secret or ConfigMap.
#[must_use]
pub fn is_data_key(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text != "."
        && !text.starts_with("..")
}

/// A word of a label: up to 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends.
fn is_label_word(word: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    word.len() <= 63
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && ends(word.chars().next())
        && ends(word.chars().next_back())
}

/// The fault of the name of an object, if it has one.
pub(super) fn name_error(path: &str, name: &str) -> Option<FieldError> {
    (!is_subdomain(name)).then(|| {
        let detail =
            "must be a name: up to 253 lower case letters, digits, '-' or '.', with a letter or digit at the ends";
        FieldError::invalid(path, name, detail)
    })
}

/// The fault of a label key, if it has one.
pub(super) fn label_key_error(path: &str, key: &str) -> Option<FieldError> {
    let (prefix, word) = key.split_once('/').map_or((None, key), |(prefix, word)| (Some(prefix), word));
    (!is_label_word(word) || !prefix.is_none_or(is_subdomain)).then(|| {
        FieldError::invalid(
            path,
            key,
            "must be a label key: an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' or '.'",
        )
    })
}

/// The fault of a label value, if it has one.
pub(super) fn label_value_error(path: &str, value: &str) -> Option<FieldError> {
    (!value.is_empty() && !is_label_word(value)).then(|| {
        FieldError::invalid(path, value, "must be a label value: empty, or up to 63 letters, digits, '-', '_' or '.'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_subdomains_and_never_paths() {
        for good in ["a", "0", "a-b.c-d", "x.example.com", &"a".repeat(253)] {
            assert!(is_subdomain(good), "{good}");
            assert_eq!(name_error("f", good), None);
        }
        for bad in ["", ".", "..", "a..b", "-a", "a-", "A", "a/b", "../x", "a b", "a_b", "é", "a%2fb", &"a".repeat(254)]
        {
            assert!(!is_subdomain(bad), "{bad}");
            assert!(name_error("f", bad).is_some());
        }
        assert!(is_dns_label("team-a") && !is_dns_label("team.a") && !is_dns_label(&"a".repeat(64)));
    }

    #[test]
    fn keys_of_data_are_file_names() {
        for good in ["tls.crt", "API_KEY", ".dockerconfigjson", "a"] {
            assert!(is_data_key(good), "{good}");
        }
        for bad in ["", ".", "..", "..a", "a/b", "a b", "é", &"a".repeat(254)] {
            assert!(!is_data_key(bad), "{bad}");
        }
    }

    #[test]
    fn labels_have_an_optional_prefix_and_a_word() {
        for good in ["tier", "example.com/tier", "A_b.c"] {
            assert_eq!(label_key_error("f", good), None, "{good}");
        }
        for bad in ["", "/tier", "example.com/", "a/b/c", "Example.com/x", "-a", &"a".repeat(64)] {
            assert!(label_key_error("f", bad).is_some(), "{bad}");
        }
        assert_eq!(label_value_error("f", ""), None);
        assert!(label_value_error("f", "a b").is_some());
    }
}
