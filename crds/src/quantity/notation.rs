//! How a quantity is written: its suffixes, and the shortest text for a value.

use super::amount::{Amount, NANO};

/// The three ways to write a quantity. A sum keeps that of its first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// `500m`, `2`, `3G`
    Decimal,
    /// `512Mi`
    Binary,
    /// `12e6`
    Exponent,
}

/// What a suffix multiplies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// A power of ten.
    Ten(i32),
    /// A power of two.
    Two(u32),
}

/// Suffixes and their powers of ten.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Suffixes and their powers of two.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// What a suffix says; None where there is no such suffix, or its exponent does not fit an `i32` (Go cuts that off
/// without a word).
pub(super) fn read(suffix: &str) -> Option<(Scale, Notation)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Scale::Ten(*power), Notation::Decimal));
    }
    if let Some((_, power)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((Scale::Two(*power), Notation::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Scale::Ten(exponent), Notation::Exponent))
}

/// The one text that Kubernetes gives to a value: no fraction, the largest suffix that allows that.
pub(super) fn canonical(amount: Amount, notation: Notation) -> String {
    let nanos = amount.nanos();
    if nanos == 0 {
        return "0".to_owned();
    }
    // Below 1024, and where it would have to be rounded, a binary one is written as a decimal one.
    if notation == Notation::Binary && nanos.abs() >= 1024 * NANO && nanos % NANO == 0 {
        let (mantissa, times) = without_factor(nanos / NANO, 1024);
        let suffix = BINARY.iter().find(|(_, power)| *power == times * 10).map_or("", |(suffix, _)| suffix);
        return format!("{mantissa}{suffix}");
    }
    let (mantissa, times) = without_factor(nanos, 10);
    // Nanos are the smallest unit, so its exponent is -9; suffixes stand at every third power of ten.
    let above = times % 3;
    let (mantissa, exponent) = (mantissa * 10_i128.pow(above), i32::try_from(times - above).unwrap_or_default() - 9);
    match notation {
        Notation::Exponent if exponent == 0 => mantissa.to_string(),
        Notation::Exponent => format!("{mantissa}e{exponent}"),
        Notation::Decimal | Notation::Binary => {
            let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent).map_or("", |(suffix, _)| suffix);
            format!("{mantissa}{suffix}")
        }
    }
}

/// The number without that factor, and how often it was in there. Not for zero.
fn without_factor(mut number: i128, factor: i128) -> (i128, u32) {
    let mut times = 0;
    while number % factor == 0 {
        number /= factor;
        times += 1;
    }
    (number, times)
}
