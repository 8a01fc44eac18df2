use proptest::prelude::*;

use super::{amount::NANO, *};

fn nanos(text: &str) -> Result<i128, QuantityError> {
    Amount::parse(text).map(Amount::nanos)
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
        // Every digit counts, however many there are.
        ("1234567890123456789.5", 1_234_567_890_123_456_789_500_000_000),
        ("0.12345678901234567890123Gi", 132_560_717_819_299_208),
        ("0.000000000000000000000000000012e30", 12 * NANO),
        ("1234567890123456789e-18", 1_234_567_891),
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
fn a_whole_number_of_units_is_told_from_a_fraction() {
    let whole = |text: &str, denominator| Amount::parse(text).unwrap().whole(denominator);
    assert_eq!((whole("1500m", 1000), whole("1500m", 1)), (Some(1500), None));
    assert_eq!((whole("0.1m", 1000), whole("-2", 1000)), (None, Some(-2000)));
    assert_eq!(whole("0.5Gi", 1), Some(1 << 29));
}

#[test]
fn the_largest_value_fits_in_every_notation_and_the_next_step_does_not() {
    let largest = i128::from(i64::MAX) * NANO;
    for text in ["9223372036854775807", "9007199254740991.9990234375Ki", "9223372036854775807000000000n"] {
        assert_eq!((nanos(text), nanos(&format!("-{text}"))), (Ok(largest), Ok(-largest)), "{text}");
    }
    for text in ["9223372036854775807.0000000001", "9007199254740991.99902343751Ki", "9223372036854775807000000001n"] {
        assert_eq!(nanos(text), Err(QuantityError::Overflow), "{text}");
    }
    let sum = |one: &str, two: &str| Quantity::from(one).plus(&Quantity::from(two));
    assert_eq!(sum("9223372036854775806", "1"), Ok(Quantity::from("9223372036854775807")));
    assert_eq!(sum("9223372036854775807", "1n"), Err(QuantityError::Overflow));
}

/// Go's library reads the first ones as zero and cuts the exponent of the last one off.
#[test]
fn what_nobody_can_have_meant_is_refused() {
    for text in ["m", "-", "+", ".", "Gi", "e3", "-.k", "1e4294967297"] {
        assert_eq!(nanos(text), Err(QuantityError::Malformed), "{text:?}");
    }
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
    fn the_canonical_form_keeps_the_value_and_is_its_own(
        number in "[+-]?[0-9]{1,12}(\\.[0-9]{0,12})?", suffix in "([numkMGTPE]|[KMGTP]i|e-?[0-9])?",
    ) {
        let quantity = Quantity(number + &suffix);
        if let Ok(canonical) = quantity.canonical() {
            prop_assert!(canonical.same_value(&quantity), "{canonical}");
            prop_assert_eq!(canonical.canonical().unwrap(), canonical);
        }
    }

    #[test]
    fn order_is_that_of_the_numbers(one in -1_000_000_i64..1_000_000, two in -1_000_000_i64..1_000_000) {
        let (a, b) = (Amount::parse(&format!("{one}m")).unwrap(), Amount::parse(&format!("{two}m")).unwrap());
        prop_assert_eq!(a.cmp(&b), one.cmp(&two));
    }
}
