//! `resource.Quantity` as Kubernetes reads it: a decimal number with an optional suffix, compared by value.
//!
//! The rules are those of Go's library; `tests/quantity_vectors.tsv` holds what it says of some thousand texts.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

mod amount;
mod notation;
#[cfg(test)]
mod tests;

pub use amount::{Amount, QuantityError};

/// A quantity as its author wrote it (`500m`, `1Gi`, `2`). The text is kept, so that writing it back changes nothing.
///
/// `==` compares the text; compare values with [`Quantity::amount`]. Three things that Go's library takes are refused
/// here (spec A7), as no one can have meant what it makes of them:
/// - a value past 2⁶³-1, which it keeps for decimal suffixes and silently caps for binary ones;
/// - a text without a digit (`m`, `-`), which it reads as zero, and its own published pattern refuses;
/// - an exponent that does not fit an `i32`, which it cuts off (`1e4294967297` is 10 there).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

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
        self.0 == other.0 || matches!((self.amount(), other.amount()), (Ok(one), Ok(two)) if one == two)
    }

    /// The same value as Kubernetes writes it: no fraction, the largest suffix of its kind that allows that.
    ///
    /// # Errors
    /// As [`Amount::parse`].
    pub fn canonical(&self) -> Result<Self, QuantityError> {
        let (amount, notation) = amount::read(&self.0)?;
        Ok(Self(notation::canonical(amount, notation)))
    }

    /// The sum in its canonical form. It is written in the way of the first, or of the second where the first is zero.
    ///
    /// # Errors
    /// As [`Amount::parse`], for either and for the sum.
    pub fn plus(&self, other: &Self) -> Result<Self, QuantityError> {
        let (one, first) = amount::read(&self.0)?;
        let (two, second) = amount::read(&other.0)?;
        Ok(Self(notation::canonical(one.plus(two)?, if one == Amount::ZERO { second } else { first })))
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
