//! `resource.Quantity` as Kubernetes reads it: a decimal number with an optional suffix, compared by value.

use std::{cmp::Ordering, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// A quantity as its author wrote it (`500m`, `1Gi`, `2`). The text is kept, so that writing it back changes nothing.
///
/// `==` compares the text; compare values with [`Quantity::amount`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

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

const NANO: i128 = 1_000_000_000;

impl Amount {
    /// The amount of zero.
    pub const ZERO: Self = Self { nanos: 0 };

    /// Whether the amount is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is a whole number of `1/denominator` units: 1000 asks for whole milli, 1 for whole units.
    #[must_use]
    pub fn is_multiple_of_fraction(self, denominator: i128) -> bool {
        self.nanos * denominator % NANO == 0
    }

    /// Parses a quantity the way Kubernetes does, except that a value past 2⁶³-1 is an error instead of being capped.
    ///
    /// # Errors
    /// [`QuantityError::Malformed`] for anything but `<signed number><suffix>`; [`QuantityError::Overflow`].
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(QuantityError::Malformed);
        }
        let (multiplier, exponent) = scale(suffix).ok_or(QuantityError::Malformed)?;
        let nanos = scaled(whole, fraction, multiplier, exponent)?;
        Ok(Self { nanos: if negative { -nanos } else { nanos } })
    }
}

/// The suffix as (binary multiplier, decimal exponent); None where Kubernetes knows no such suffix.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            if digits.strip_prefix(['+', '-']).unwrap_or(digits).bytes().all(|b| b.is_ascii_digit()) {
                (1, digits.parse().ok()?)
            } else {
                return None;
            }
        }
    })
}

/// `whole.fraction × multiplier × 10^exponent` in nanos, rounded up (away from zero) as Kubernetes rounds.
fn scaled(whole: &str, fraction: &str, multiplier: i128, exponent: i32) -> Result<i128, QuantityError> {
    let digits: String = format!("{whole}{fraction}").trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return Ok(0);
    }
    // The value is digits × multiplier × 10^shift nanos.
    let shift = i64::from(exponent) + 9 - i64::try_from(fraction.len()).map_err(|_| QuantityError::Overflow)?;
    // 2^63 × 10^9 has 28 digits: whatever has more before its point cannot fit.
    let magnitude = i64::try_from(digits.len()).map_err(|_| QuantityError::Overflow)? + shift;
    if magnitude > 29 {
        return Err(QuantityError::Overflow);
    }
    if magnitude < -20 {
        return Ok(1);
    }
    // Keep at most 30 digits exactly (30 digits × 2^60 would not fit an i128, so the shift goes first); the rest only
    // decides whether to round up.
    let (kept, dropped) = digits.split_at(digits.len().min(19));
    let shift = shift + i64::try_from(dropped.len()).map_err(|_| QuantityError::Overflow)?;
    let inexact = dropped.bytes().any(|b| b != b'0');
    let value: i128 = kept.parse().map_err(|_| QuantityError::Malformed)?;
    let value = value.checked_mul(multiplier).ok_or(QuantityError::Overflow)?;
    let power = 10_i128
        .checked_pow(u32::try_from(shift.unsigned_abs()).map_err(|_| QuantityError::Overflow)?)
        .ok_or(QuantityError::Overflow);
    let nanos = if shift >= 0 {
        value.checked_mul(power?).ok_or(QuantityError::Overflow)? + i128::from(inexact)
    } else {
        // A power too large to hold is larger than any value: what is left rounds up to one nano.
        power.map_or(1, |power| value / power + i128::from(value % power != 0 || inexact))
    };
    if nanos > i128::from(i64::MAX) * NANO { Err(QuantityError::Overflow) } else { Ok(nanos) }
}

impl Quantity {
    /// The value, for comparing.
    ///
    /// # Errors
    /// As [`Amount::parse`].
    pub fn amount(&self) -> Result<Amount, QuantityError> {
        Amount::parse(&self.0)
    }

    /// Whether both stand for the same value (`1` and `1000m`); texts that do not parse are compared as texts.
    #[must_use]
    pub fn same_value(&self, other: &Self) -> bool {
        self.0 == other.0
            || matches!((self.amount(), other.amount()), (Ok(one), Ok(two)) if one.cmp(&two) == Ordering::Equal)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntOrString;
        impl de::Visitor<'_> for IntOrString {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity: an integer or a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Quantity, E> {
                Ok(Quantity(text))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(IntOrString)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    /// An integer or a string; the pattern is the one that Kubernetes publishes for `resource.Quantity`.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            // Longer than any number that means something; keeps the cost of comparing in CEL bounded.
            "maxLength": 64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> Result<i128, QuantityError> {
        Amount::parse(text).map(|amount| amount.nanos)
    }

    #[test]
    fn the_table_of_values() {
        for (text, expected) in [
            ("0", 0),
            ("1", NANO),
            ("1000m", NANO),
            ("+1", NANO),
            ("-1", -NANO),
            (".5", NANO / 2),
            ("1.", NANO),
            ("0.5Gi", (NANO << 30) / 2),
            ("512Mi", (NANO << 20) * 512),
            ("1G", NANO * 1_000_000_000),
            ("1e9", NANO * 1_000_000_000),
            ("1E9", NANO * 1_000_000_000),
            ("1E", NANO * 1_000_000_000_000_000_000),
            ("1e-3", 1_000_000),
            ("100n", 100),
            ("0.1n", 1),
            ("1e-400", 1),
            ("9223372036854775807", i128::from(i64::MAX) * NANO),
            ("000000000000000000000000000000001", NANO),
            ("1.0000000000000000000000000000001", NANO + 1),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity() {
        for text in ["", "-", ".", "1.2.3", "1 Gi", "1gi", "1K", "0x10", "1e", "1e1.5", "NaN", "１", "--1", "m"] {
            assert_eq!(nanos(text), Err(QuantityError::Malformed), "{text:?}");
        }
        for text in ["9223372036854775808", "8Ei", "1e19", "1e999999999", "99999999999999999999Ei"] {
            assert_eq!(nanos(text), Err(QuantityError::Overflow), "{text}");
        }
    }

    #[test]
    fn values_compare_across_suffixes() {
        assert!(Quantity::from("1").same_value(&Quantity::from("1000m")));
        assert!(Quantity::from("0.5Gi").same_value(&Quantity::from("512Mi")));
        assert!(!Quantity::from("1Gi").same_value(&Quantity::from("1G")));
        assert!(Quantity::from("junk").same_value(&Quantity::from("junk")));
        assert!(!Quantity::from("junk").same_value(&Quantity::from("1")));
    }

    #[test]
    fn an_integer_in_json_is_a_quantity_and_a_float_is_none() {
        assert_eq!(serde_json::from_str::<Quantity>("2").unwrap(), Quantity::from("2"));
        assert_eq!(serde_json::from_str::<Quantity>("\"2Gi\"").unwrap(), Quantity::from("2Gi"));
        assert!(serde_json::from_str::<Quantity>("1.5").is_err());
    }

    #[test]
    fn fractions_finer_than_asked_are_seen() {
        assert!(Amount::parse("1500m").unwrap().is_multiple_of_fraction(1000));
        assert!(!Amount::parse("0.1m").unwrap().is_multiple_of_fraction(1000));
        assert!(Amount::parse("0.5Gi").unwrap().is_multiple_of_fraction(1));
        assert!(!Amount::parse("1500m").unwrap().is_multiple_of_fraction(1));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = Amount::parse(&text);
        }

        #[test]
        fn milli_and_unit_agree(units in 0_i64..9_000_000_000_000) {
            prop_assert_eq!(nanos(&units.to_string()), nanos(&format!("{units}000m")));
            prop_assert_eq!(nanos(&format!("{units}k")), nanos(&format!("{units}000")));
        }

        #[test]
        fn order_is_that_of_the_numbers(one in -1_000_000_i64..1_000_000, two in -1_000_000_i64..1_000_000) {
            let (a, b) = (Amount::parse(&format!("{one}m")).unwrap(), Amount::parse(&format!("{two}m")).unwrap());
            prop_assert_eq!(a.cmp(&b), one.cmp(&two));
        }
    }
}
