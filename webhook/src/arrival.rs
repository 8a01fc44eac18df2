//! What the transport knows of a request beside its body.

use std::time::Duration;

use ayatori_crds::TraceContext;
use http::HeaderMap;
use tokio::time::Instant;

/// The part of its time that a request gives to what is only good to know.
const SHARE: u32 = 4;

/// How a request came.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// When the sender stops waiting for the answer; None where nobody does.
    pub deadline: Option<Instant>,
    /// The trace that it belongs to, if its headers say so.
    pub trace: Option<TraceContext>,
}

impl Arrival {
    /// When to give up what is good to know but no ground for a refusal: after a share of the time that is left, and after
    /// `longest`.
    pub(crate) fn give_up(&self, longest: Duration) -> Instant {
        let now = Instant::now();
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now) / SHARE);
        now + left.unwrap_or(longest).min(longest)
    }
}

/// The trace of a request. Whoever sent it chose it, so nothing rests on it.
pub(crate) fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let all = |name| headers.get_all(name).iter().map(|value| value.to_str().ok()).collect::<Option<Vec<_>>>();
    let parents = all("traceparent")?;
    // Two parents are none; several states are one list, in their order (RFC 9110, section 5.3).
    let [parent] = parents.as_slice() else { return None };
    let state = all("tracestate").map(|states| states.join(","));
    TraceContext::parse(parent, state.as_deref())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn trace(headers: &[(&'static str, &[u8])]) -> Option<(String, Option<String>)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        trace_of(&map).map(|trace| (trace.traceparent().to_owned(), trace.tracestate().map(str::to_owned)))
    }

    #[test]
    fn a_request_belongs_to_the_trace_of_its_headers() {
        let parent = ("traceparent", PARENT.as_bytes());
        assert_eq!(trace(&[]), None);
        assert_eq!(trace(&[parent]), Some((PARENT.to_owned(), None)));
        assert_eq!(
            trace(&[parent, ("tracestate", b"a=1"), ("tracestate", b"b=2"), ("baggage", b"secret=x")]),
            Some((PARENT.to_owned(), Some("a=1,b=2".to_owned())))
        );
    }

    #[test]
    fn what_is_ambiguous_or_not_text_is_left_out() {
        let parent = ("traceparent", PARENT.as_bytes());
        assert_eq!(trace(&[parent, parent]), None);
        assert_eq!(trace(&[("traceparent", b"\xff")]), None);
        assert_eq!(trace(&[("tracestate", b"a=1")]), None);
        assert_eq!(trace(&[parent, ("tracestate", b"a=\xff")]), Some((PARENT.to_owned(), None)));
    }
}
