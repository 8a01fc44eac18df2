//! The value of a quantity, by the rules of Go's `resource.ParseQuantity`.

use super::notation::{self, Notation, Scale};

/// A parsed quantity in nano units (10⁻⁹), the finest step that Kubernetes keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    nanos: i128,
}

/// Why a text is no quantity that we take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number with a known suffix.
    #[error("must be a quantity such as 500m, 1 or 2Gi")]
    Malformed,
    /// Outside of what an `i64` of the base unit holds.
    #[error("must be at most 9223372036854775807")]
    Overflow,
}

pub(super) const NANO: i128 = 1_000_000_000;

/// 2⁶³-1 of the base unit, either way.
const LARGEST: i128 = i64::MAX as i128 * NANO;

/// Digits of 2⁶³-1: whatever has more before its point does not fit.
const MOST_DIGITS: usize = 19;

impl Amount {
    /// The amount of zero.
    pub const ZERO: Self = Self { nanos: 0 };

    /// Whether the amount is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// How many `1/denominator` units it is, where that is a whole number: 1000 asks for milli, 1 for whole units.
    #[must_use]
    pub fn whole(self, denominator: i128) -> Option<i128> {
        let scaled = self.nanos.checked_mul(denominator)?;
        (scaled % NANO == 0).then_some(scaled / NANO)
    }

    /// Parses a quantity the way Kubernetes does, apart from what is refused on top (see [`Quantity`](super::Quantity)).
    ///
    /// # Errors
    /// [`QuantityError::Malformed`] for anything but `<signed number><suffix>`; [`QuantityError::Overflow`].
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        read(text).map(|(amount, _)| amount)
    }

    /// The sum, where it fits.
    pub(super) fn plus(self, other: Self) -> Result<Self, QuantityError> {
        fitting(self.nanos + other.nanos).map(|nanos| Self { nanos })
    }

    pub(super) fn nanos(self) -> i128 {
        self.nanos
    }
}

/// The value of a text and the way in which it is written.
pub(super) fn read(text: &str) -> Result<(Amount, Notation), QuantityError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Malformed);
    }
    let (scale, notation) = notation::read(suffix).ok_or(QuantityError::Malformed)?;
    let nanos = match scale {
        Scale::Ten(exponent) => shifted(whole, fraction, exponent)?,
        Scale::Two(power) => product(whole, fraction, NANO << power)?,
    };
    // Nobody writes 0.5 in powers of two.
    let notation = if notation == Notation::Binary && 0 < nanos && nanos < NANO { Notation::Decimal } else { notation };
    Ok((Amount { nanos: if text.starts_with('-') { -nanos } else { nanos } }, notation))
}

/// The digits in front, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// `whole.fraction × 10^exponent` in nanos: the point moves.
fn shifted(whole: &str, fraction: &str, exponent: i32) -> Result<i128, QuantityError> {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let length = |text: &str| i64::try_from(text.len()).map_err(|_| QuantityError::Overflow);
    // Digits before the point once it has moved; negative: zeros behind it before the first digit.
    let before = length(digits)? - length(fraction)? + i64::from(exponent);
    match usize::try_from(before) {
        _ if digits.is_empty() => Ok(0),
        Ok(before) if before > MOST_DIGITS => Err(QuantityError::Overflow),
        Ok(before) if before > digits.len() => product(&format!("{digits:0<before$}"), "", NANO),
        Ok(before) => product(&digits[..before], &digits[before..], NANO),
        // Nine zeros: less than a nano, which is rounded up like every other fraction of it.
        Err(_) if before <= -9 => Ok(1),
        Err(_) => {
            let zeros = usize::try_from(-before).unwrap_or_default();
            product("", &format!("{}{digits}", "0".repeat(zeros)), NANO)
        }
    }
}

/// `whole.fraction × unit`, rounded up (away from zero, as there is no sign here): who asks for something gets
/// something.
fn product(whole: &str, fraction: &str, unit: i128) -> Result<i128, QuantityError> {
    let whole = whole.trim_start_matches('0');
    if whole.len() > MOST_DIGITS {
        return Err(QuantityError::Overflow);
    }
    let whole = whole.bytes().fold(0, |number, digit| number * 10 + value(digit));
    // From the last digit to the first, so that every division by ten is of a number below `unit × 10`.
    let (part, inexact) = fraction.bytes().rev().fold((0, false), |(part, inexact), digit| {
        let sum = value(digit) * unit + part;
        (sum / 10, inexact || sum % 10 != 0)
    });
    let whole: i128 = unit.checked_mul(whole).ok_or(QuantityError::Overflow)?;
    fitting(whole.saturating_add(part + i128::from(inexact)))
}

fn value(digit: u8) -> i128 {
    i128::from(digit - b'0')
}

fn fitting(nanos: i128) -> Result<i128, QuantityError> {
    if nanos.abs() > LARGEST { Err(QuantityError::Overflow) } else { Ok(nanos) }
}
