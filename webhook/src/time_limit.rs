//! How long one request may take, from its own `?timeout=`.

use std::time::Duration;

use crate::Limits;

/// Nine tenths of what the client waits: the answer must reach it before it gives up, else it sees
/// `context deadline exceeded` in place of our words.
const SHARE: u32 = 9;

/// The time from the request's head to its answer.
pub(crate) fn time_limit(query: Option<&str>, limits: &Limits) -> Duration {
    let asked = query
        .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("timeout=")))
        .and_then(go_duration)
        .filter(|asked| !asked.is_zero());
    asked.unwrap_or(limits.request).min(limits.longest_request) / 10 * SHARE
}

/// Reads what Go's `Duration.String()` writes: numbers with units, the largest first, such as `10s` or `1m0.5s`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, after) = rest.split_at(number);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(value.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_asks_for_no_time_gets_the_default_less_a_tenth() {
        let limits = Limits::default();
        for query in [None, Some(""), Some("timeout="), Some("timeout=soon"), Some("timeout=0s"), Some("t=1s")] {
            assert_eq!(time_limit(query, &limits), Duration::from_secs(9), "{query:?}");
        }
    }

    #[test]
    fn the_answer_comes_before_the_client_gives_up() {
        let limits = Limits::default();
        assert_eq!(time_limit(Some("timeout=1s"), &limits), Duration::from_millis(900));
        assert_eq!(time_limit(Some("dryRun=All&timeout=20s"), &limits), Duration::from_secs(18));
    }

    #[test]
    fn no_request_gets_more_than_the_longest() {
        assert_eq!(time_limit(Some("timeout=2h"), &Limits::default()), Duration::from_secs(27));
    }

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(go_duration("1m0.5s"), Some(Duration::from_millis(60_500)));
        assert_eq!(go_duration("1h2m3s"), Some(Duration::from_secs(3723)));
        assert_eq!(go_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(go_duration("3µs4ns"), Some(Duration::from_nanos(3004)));
        for wrong in ["", "5", "s", "-1s", "1d", "1..5s", "1s1", "99999999999999999999999h"] {
            assert_eq!(go_duration(wrong), None, "{wrong}");
        }
    }
}
