//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>): which trace a Job belongs to (spec B7). What clients
//! send is untrusted, so it is parsed strictly, bounded, and written anew. Baggage is ignored.

/// The trace that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-TRACE-SPAN-FLAGS`.
    traceparent: String,
    /// What tracing systems along the way added; empty where nothing did.
    tracestate: String,
}

/// Bytes of a `traceparent` of version 00.
const TRACEPARENT_LENGTH: usize = 55;
/// Bytes of a `tracestate` that are kept: the least that the standard asks for.
const TRACESTATE_LENGTH: usize = 512;
/// List members of a `tracestate`, at most.
const TRACESTATE_MEMBERS: usize = 32;

impl TraceContext {
    /// Reads both headers. Without a good `traceparent` there is no context; a bad `tracestate` is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let traceparent = parse_traceparent(traceparent)?;
        Some(Self { traceparent, tracestate: tracestate.and_then(parse_tracestate).unwrap_or_default() })
    }

    /// The header `traceparent`.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The header `tracestate`, if there is one.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        Some(self.tracestate.as_str()).filter(|state| !state.is_empty())
    }
}

/// The context in the form of version 00. A later version may have more at its end, of which nothing is known.
fn parse_traceparent(text: &str) -> Option<String> {
    let known = text.get(..TRACEPARENT_LENGTH)?;
    let rest = &text[TRACEPARENT_LENGTH..];
    let mut parts = known.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_zero = |part: &str| part.bytes().all(|b| b == b'0');
    let well_formed = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let ends_well = if version == "00" { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
    if !well_formed || parts.next().is_some() || !ends_well || version == "ff" || is_zero(trace) || is_zero(span) {
        return None;
    }
    // Bit 0 (sampled) is the only one of version 00; the others must be written as 0.
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1;
    Some(format!("00-{trace}-{span}-{sampled:02x}"))
}

/// The list with optional blanks and empty members left out; None where any member is wrong or the whole is too much.
fn parse_tracestate(text: &str) -> Option<String> {
    let members: Vec<&str> =
        text.split(',').map(|member| member.trim_matches([' ', '\t'])).filter(|member| !member.is_empty()).collect();
    let keys: Option<Vec<&str>> = members.iter().map(|member| tracestate_key(member)).collect();
    let mut keys = keys?;
    keys.sort_unstable();
    let repeated = keys.windows(2).any(|pair| pair[0] == pair[1]);
    let list = members.join(",");
    (members.len() <= TRACESTATE_MEMBERS && !repeated && list.len() <= TRACESTATE_LENGTH).then_some(list)
}

/// The key of a well-formed `key=value`.
fn tracestate_key(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let is_key_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'*' | b'/');
    let begins = |part: &str, digit_too: bool| {
        part.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || digit_too && b.is_ascii_digit())
    };
    let key_is_good = match key.split_once('@') {
        None => key.len() <= 256 && begins(key, false) && key.bytes().all(is_key_byte),
        Some((tenant, system)) => {
            tenant.len() <= 241
                && system.len() <= 14
                && begins(tenant, true)
                && begins(system, false)
                && tenant.bytes().chain(system.bytes()).all(is_key_byte)
        }
    };
    let value_is_good = (1..=256).contains(&value.len())
        && value.bytes().all(|b| (0x20..=0x7e).contains(&b) && b != b',' && b != b'=')
        && !value.ends_with(' ');
    (key_is_good && value_is_good).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parent(text: &str) -> Option<String> {
        TraceContext::parse(text, None).map(|context| context.traceparent().to_owned())
    }

    fn state(text: &str) -> Option<String> {
        TraceContext::parse(GOOD, Some(text)).unwrap().tracestate().map(str::to_owned)
    }

    #[test]
    fn a_good_parent_is_kept() {
        assert_eq!(parent(GOOD).as_deref(), Some(GOOD));
        assert_eq!(parent(&GOOD.replace("-01", "-00")), Some(GOOD.replace("-01", "-00")));
    }

    #[test]
    fn flags_that_nobody_knows_and_later_versions_are_brought_to_version_00() {
        assert_eq!(parent(&GOOD.replace("-01", "-ff")).as_deref(), Some(GOOD));
        assert_eq!(parent(&GOOD.replace("00-4", "cc-4")).as_deref(), Some(GOOD));
        assert_eq!(parent(&format!("{}-what-comes", GOOD.replace("00-4", "cc-4"))).as_deref(), Some(GOOD));
    }

    #[test]
    fn a_parent_with_any_fault_is_none() {
        let zero = |length: usize| "0".repeat(length);
        for wrong in [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-x"),
            format!("{GOOD}0"),
            format!("{}x", GOOD.replace("00-4", "cc-4")),
            GOOD.to_uppercase(),
            GOOD.replace("00-4", "ff-4"),
            GOOD.replace('-', "_"),
            format!(" {GOOD}"),
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zero(32)),
            GOOD.replace("00f067aa0ba902b7", &zero(16)),
            GOOD.replace("4bf92f", "4bf92-"),
            GOOD.replace("4bf92f", "4bfé9"),
            "é".repeat(55),
        ] {
            assert_eq!(parent(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_good_state_is_kept_without_its_blanks() {
        assert_eq!(state("rojo=00f067aa0ba902b7").as_deref(), Some("rojo=00f067aa0ba902b7"));
        assert_eq!(state("a=1 , \tb@c=x y,,").as_deref(), Some("a=1,b@c=x y"));
        assert_eq!(state("1a@b=x").as_deref(), Some("1a@b=x"));
        assert_eq!(state(""), None);
    }

    #[test]
    fn a_state_with_any_fault_is_left_out_and_the_parent_stays() {
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        for wrong in [
            "a",
            "=1",
            "a=",
            "a=1,a=2",
            "A=1",
            "1a=x",
            "a=é",
            "a=\u{1}",
            "a=b=c",
            "a@=1",
            "@a=1",
            "a@1=x",
            "a@b@c=1",
            "a b=1",
            &many.join(","),
            &format!("a={}", "x".repeat(257)),
            &format!("a={},b={}", "x".repeat(255), "y".repeat(256)),
        ] {
            assert_eq!(state(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_what_is_kept_is_well_formed_and_bounded(parent in "\\PC{0,80}", state in "\\PC{0,600}") {
            if let Some(context) = TraceContext::parse(&parent, Some(&state)) {
                prop_assert_eq!(context.traceparent().len(), 55);
                prop_assert!(context.tracestate().unwrap_or_default().len() <= 512);
            }
        }

        #[test]
        fn what_was_kept_is_kept_again(
            parent in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}",
            state in "[a-c][a-z0-9@_*/-]{0,3}=[ -~]{1,9}(,[d-z]=[ -~]{1,9}){0,3}",
        ) {
            if let Some(once) = TraceContext::parse(&parent, Some(&state)) {
                let twice = TraceContext::parse(once.traceparent(), once.tracestate());
                prop_assert_eq!(twice, Some(once));
            }
        }
    }
}
