//! The quantity type against what Go's `resource.Quantity` says of some thousand texts (`tests/tools/quantity` makes
//! the file; `ayatori-tests` checks that it still makes exactly this one).

use ayatori_crds::{
    Quantity,
    quantity::{Amount, QuantityError},
};

const VECTORS: &str = include_str!("quantity_vectors.tsv");

/// What Go takes and we refuse on purpose: no digit at all, or an exponent that it cuts off.
fn refused_on_purpose(text: &str) -> bool {
    !text.contains(|c: char| c.is_ascii_digit())
        || text.split_once(['e', 'E']).is_some_and(|(_, exponent)| exponent.parse::<i64>().is_ok_and(|e| i32::try_from(e).is_err()))
        // The only digits are those of the exponent.
        || text.trim_start_matches(['+', '-', '.']).starts_with(['e', 'E'])
}

/// The column, where it says a number.
fn number(column: &str) -> Option<i128> {
    column.parse().ok()
}

#[test]
fn every_vector_is_read_compared_written_and_added_as_go_does_it() {
    let mut before: Option<Quantity> = None;
    let (mut taken, mut faults) = (0, vec![]);
    for line in VECTORS.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let quantity = Quantity::from(columns[0]);
        let expected = match columns[1] {
            "!" => Err(QuantityError::Malformed),
            ">" => Err(QuantityError::Overflow),
            _ if refused_on_purpose(&quantity.0) => Err(QuantityError::Malformed),
            canonical => Ok(Quantity::from(canonical)),
        };
        let canonical = quantity.canonical();
        if canonical != expected {
            faults.push(format!("{line:?}: {canonical:?}"));
        }
        let Ok(amount) = quantity.amount() else {
            // Go went on with what it took it for.
            if refused_on_purpose(&quantity.0) && number(columns[1]).is_some() {
                before = Some(Quantity::from(columns[1]));
            }
            continue;
        };
        taken += 1;
        for (column, denominator) in [(columns[2], 1000), (columns[3], 1)] {
            let whole = amount.whole(denominator).filter(|number| i64::try_from(*number).is_ok());
            if whole != number(column) {
                faults.push(format!("{line:?}: {whole:?} of 1/{denominator}"));
            }
        }
        if let Some(before) = &before {
            let compared = before.amount().map(|before: Amount| amount.cmp(&before));
            let sum = quantity.plus(before).map_or_else(|_| ">".to_owned(), |sum| sum.0);
            if compared != Ok(number(columns[4]).unwrap().cmp(&0)) || sum != columns[5] {
                faults.push(format!("{line:?} after {before}: {compared:?}, sum {sum}"));
            }
        }
        before = Some(quantity);
    }
    assert!(
        faults.is_empty(),
        "{} faults, the first ones:\n{}",
        faults.len(),
        faults[..faults.len().min(20)].join("\n")
    );
    assert!(VECTORS.lines().count() >= 5_000 && taken >= 3_000, "{taken} of {}", VECTORS.lines().count());
}
