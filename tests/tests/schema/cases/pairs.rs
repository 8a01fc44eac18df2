//! Two changes in one object.

use super::Case;

/// How many pairs a kind has at least.
const PAIRS: usize = 60;
/// How many cases a kind has at least.
const ENOUGH: usize = 320;
/// Most draws hit; this ends the search in any case.
const DRAWS: usize = 10_000;

/// Adds pairs of the single changes, drawn by a generator with a fixed seed.
pub(crate) fn add(cases: &mut Vec<Case>) {
    let singles = cases.clone();
    let wanted = PAIRS.max(ENOUGH.saturating_sub(singles.len()));
    let mut seen: std::collections::BTreeSet<String> = std::collections::BTreeSet::new();
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for _ in 0..DRAWS {
        if seen.len() == wanted {
            break;
        }
        let (one, two) = (&singles[random.below(singles.len())], &singles[random.below(singles.len())]);
        if !fit(one, two) {
            continue;
        }
        let changes = vec![one.changes[0].clone(), two.changes[0].clone()];
        let case = Case { kind: one.kind, changes };
        if seen.insert(case.name()) {
            cases.push(case);
        }
    }
    assert_eq!(seen.len(), wanted);
}

/// Whether both can be made in one object: both in the spec or both in the status, and neither within the other.
fn fit(one: &Case, two: &Case) -> bool {
    let (a, b) = (&one.changes[0].at, &two.changes[0].at);
    let within = |inner: &str, outer: &str| inner == outer || inner.starts_with(&format!("{outer}/"));
    one.is_status() == two.is_status() && a < b && !within(a, b) && !within(b, a)
}

/// Marsaglia's xorshift: enough for a spread, and the same everywhere.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}
