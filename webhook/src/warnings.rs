//! What an admitted request's sender should know (spec B3).

/// Characters of one warning, at most. The API server's own advice is to stay below 120.
const LENGTH: usize = 119;
/// Bytes of all warnings of one answer: past this the API server cuts or drops them itself.
const TOTAL: usize = 4096;
/// Names that a list tells before it counts the rest.
const NAMED: usize = 3;

/// The warnings of one answer: bounded, without control characters (the API server drops such a warning without a
/// word) and without repetition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Adds a warning, cut and cleaned. One that would pass the total, an empty one and a repeated one are left out.
    pub fn add(&mut self, text: &str) {
        let mut clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some((cut, _)) = clean.char_indices().nth(LENGTH) {
            clean.truncate(clean[..cut].char_indices().next_back().map_or(0, |(last, _)| last));
            clean.push('…');
        }
        let total: usize = self.0.iter().map(String::len).sum();
        if !clean.trim().is_empty() && total + clean.len() <= TOTAL && !self.0.contains(&clean) {
            self.0.push(clean);
        }
    }

    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The texts, in the order in which they were added.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.0
    }
}

/// `a, b, c and 4 more`: a list that fits into a warning.
#[must_use]
pub(crate) fn first_few(names: &[impl AsRef<str>]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let listed = named.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => listed,
        rest => format!("{listed} and {rest} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(texts: &[&str]) -> Warnings {
        let mut warnings = Warnings::default();
        texts.iter().for_each(|text| warnings.add(text));
        warnings
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(warnings(&["a\nb\tc\u{1b}d\u{7f}e"]).texts(), ["a b c d e"]);
    }

    #[test]
    fn a_warning_stays_under_120_characters_whatever_its_alphabet() {
        for text in ["x".repeat(119), "界".repeat(119)] {
            assert_eq!(warnings(&[&text]).texts(), [text]);
        }
        for text in ["x".repeat(120), "界".repeat(500)] {
            let cut = warnings(&[&text]).texts()[0].clone();
            assert_eq!(cut.chars().count(), 119);
            assert!(cut.ends_with('…'));
        }
    }

    #[test]
    fn empty_and_repeated_warnings_are_left_out() {
        assert_eq!(warnings(&["a", "", " \n", "a", "b"]).texts(), ["a", "b"]);
        assert!(warnings(&["\n"]).is_empty());
    }

    #[test]
    fn all_together_stay_within_four_kilobytes() {
        let mut all = Warnings::default();
        (0..200).for_each(|n| all.add(&format!("{n} {}", "界".repeat(60))));
        let total: usize = all.texts().iter().map(String::len).sum();
        assert!((3800..=4096).contains(&total), "{total}");
    }

    #[test]
    fn a_list_tells_three_names_and_counts_the_rest() {
        assert_eq!(first_few(&[""; 0]), "");
        assert_eq!(first_few(&["a", "b", "c"]), "a, b, c");
        assert_eq!(first_few(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
