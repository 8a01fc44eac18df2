//! Foreign texts as we repeat them (spec E3, E5): on one line, cut, and without what may be a credential.

/// Longest message of a kubelet, a runtime or the API server that we repeat, in characters.
const REPEATED_MESSAGE_LIMIT: usize = 256;

/// A foreign text as we repeat one.
pub(super) fn cut(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<String> = line.split(' ').map(without_credentials).collect();
    words.join(" ").chars().take(REPEATED_MESSAGE_LIMIT).collect()
}

/// An address without its user and its query: registries sign the addresses of layers that they redirect to.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let address = format!("{scheme}://{host}{path}");
    let end = address.trim_end_matches(['"', '\'', ':', ',', ';', ')']).len();
    match address.find('?') {
        Some(query) => format!("{}{}", &address[..query], &address[end.max(query)..]),
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_cut_to_one_line() {
        assert_eq!(cut("two\nlines\u{1b}[0m"), "two lines [0m");
        assert_eq!(cut(&"é".repeat(999)).chars().count(), 256);
    }

    #[test]
    fn no_credential_in_an_address_is_repeated() {
        for (text, expected) in [
            (
                "unexpected status from GET request to https://s3.test/blob?X-Amz-Signature=abc: 403 Forbidden",
                "unexpected status from GET request to https://s3.test/blob: 403 Forbidden",
            ),
            (
                "Get \"https://user:password@registry.test/v2/\": no such host",
                "Get \"https://registry.test/v2/\": no such host",
            ),
            ("Head \"https://r.test?sig=1\": EOF", "Head \"https://r.test\": EOF"),
            ("see https://r.test/a, or not?", "see https://r.test/a, or not?"),
        ] {
            assert_eq!(cut(text), expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_repeated_on_one_line_within_the_limit(text in any::<String>()) {
            let repeated = cut(&text);
            prop_assert!(repeated.chars().count() <= 256 && !repeated.chars().any(char::is_control));
        }
    }
}
