//! Nearly right inputs, for as long as `AYATORI_FUZZ_SECONDS` says (5 by default; the targets run side by side), against
//! oracles that hold for every input.
//!
//! Each input follows from a seed, and a failure says which: `AYATORI_FUZZ_SEED=N` begins with it. Inputs are made from
//! right ones by changes to bytes and to JSON values.
//!
//! No engine guides them by coverage. The stable compiler could mark the branches (`-Cpasses=sancov-module`), but libFuzzer
//! behind cargo-fuzz and bolero wants a C++ compiler and a second, marked build of every dependency, which CI has no time
//! for. The targets here take their input from a number, so an engine can be put before them as they are.
// Tests outside of a crate are not seen as tests by clippy's allow-*-in-tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime};

use ayatori_crds::Quantity;
use ayatori_webhook::configuration::MUTATE_JOBS;
use ayatori_webhook::{Arrival, Reviews};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::chance::Chance;
use crate::cluster::{PATHS, good, review, reviews};

mod chance;
mod cluster;
mod mutation;

/// Inputs that a target tries at least, however slow the machine is.
const LEAST: u64 = 200;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: not a number: {text:?}")))
}

/// Tries inputs until the time is over; says the seed of the one that fails.
fn fuzz(target: &str, mut try_one: impl FnMut(&mut Chance)) {
    let time = Duration::from_secs(from_environment("AYATORI_FUZZ_SECONDS").unwrap_or(5));
    let by_clock = || u64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
    let first = from_environment("AYATORI_FUZZ_SEED").unwrap_or_else(by_clock);
    let (begin, mut tried) = (Instant::now(), 0);
    while tried < LEAST || begin.elapsed() < time {
        let seed = first.wrapping_add(tried);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| try_one(&mut Chance::seeded(seed)))) {
            eprintln!("{target}: failed after {tried} inputs; AYATORI_FUZZ_SEED={seed} begins with this one");
            resume_unwind(panic);
        }
        tried += 1;
    }
    eprintln!("{target}: {tried} inputs from seed {first}");
}

/// The handlers, and what runs them.
struct Server {
    runtime: Runtime,
    reviews: Reviews,
}

impl Server {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { runtime, reviews: reviews() }
    }

    /// The whole answer, or why no uid could be read.
    fn answer(&self, path: &str, body: &[u8]) -> Result<Value, String> {
        let handler = self.reviews.at(path).unwrap();
        let answer = self.runtime.block_on(self.reviews.answer(handler, body, Arrival::default()));
        assert_eq!(self.reviews.panics(), 0, "a handler panicked at {}", String::from_utf8_lossy(body));
        answer.map(|answer| serde_json::from_slice(&answer).unwrap()).map_err(|unreadable| unreadable.to_string())
    }

    /// The response to a body that has a uid.
    fn response(&self, path: &str, body: &Value) -> Value {
        let mut answer = self.answer(path, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer["response"]["uid"], body["request"]["uid"]);
        answer["response"].take()
    }
}

/// A review of one of the kinds, by one of its paths.
fn any_review(chance: &mut Chance) -> (&'static str, Value) {
    let (path, resource) = *chance.pick(&PATHS);
    let (object, mut old) = (good(resource), good(resource));
    mutation::value(&mut old, chance);
    let operation = *chance.pick(&["CREATE", "UPDATE", "DELETE"]);
    let review = match operation {
        "CREATE" => review(resource, operation, &object, &Value::Null),
        "UPDATE" => review(resource, operation, &object, &old),
        _ => review(resource, operation, &Value::Null, &old),
    };
    (path, review)
}

/// What is said in every answer is well formed and bounded.
fn check_response(response: &Value) {
    let text = response.to_string();
    // The uid comes back, however long it is.
    assert!(text.len() <= 64 * 1024 + response["uid"].to_string().len(), "{} bytes", text.len());
    let warnings = response["warnings"].as_array().cloned().unwrap_or_default();
    for warning in warnings.iter().map(|warning| warning.as_str().unwrap()) {
        assert!(warning.chars().count() < 120 && !warning.contains(char::is_control), "{warning:?}");
    }
    if response["allowed"] == true {
        assert!(response["status"].is_null(), "{text}");
        return;
    }
    let status = &response["status"];
    assert!(warnings.is_empty() && response["patch"].is_null(), "{text}");
    assert!(status.to_string().len() <= 32 * 1024, "{} bytes", status.to_string().len());
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    assert!(causes.len() <= 64);
    assert_eq!(causes.is_empty(), status["code"] != 422, "a 422 without causes says nothing: {text}");
}

/// Whatever comes is answered, with its uid wherever one can be read.
#[test]
fn review_decoding() {
    let server = Server::new();
    fuzz("review decoding", |chance| {
        let (path, mut review) = any_review(chance);
        if chance.once_in(2) {
            mutation::value(&mut review, chance);
        }
        let mut body = review.to_string().into_bytes();
        mutation::bytes(&mut body, chance);
        let uid = serde_json::from_slice::<Value>(&body).ok().and_then(|review| {
            Some(review.get("request")?.get("uid")?.as_str()?.to_owned()).filter(|uid| !uid.is_empty())
        });
        match (server.answer(path, &body), uid) {
            (Ok(answer), Some(uid)) => {
                assert_eq!(answer["response"]["uid"], uid.as_str());
                check_response(&answer["response"]);
            }
            // serde_json's own `Value` nests less deep and takes the last of two equal keys.
            (Ok(answer), None) => check_response(&answer["response"]),
            (Err(why), Some(_)) => assert!(why.contains("duplicate field"), "{why}"),
            (Err(_), None) => {}
        }
    });
}

/// Defaulting admits every object, adds only where nothing is, and has nothing to add to its own outcome.
#[test]
fn patching() {
    let server = Server::new();
    fuzz("patching", |chance| {
        let mut object = good("jobs");
        for field in ["/spec/jobClassName", "/spec/ttlSecondsAfterFinished", "/metadata/finalizers"] {
            if chance.once_in(2) {
                let (parent, name) = field.rsplit_once('/').unwrap();
                object.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
            }
        }
        mutation::value(&mut object, chance);
        let old = if chance.once_in(3) { good("jobs") } else { Value::Null };
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let patched = |object: &Value| {
            let response = server.response(MUTATE_JOBS, &review("jobs", operation, object, &old));
            assert_eq!(response["allowed"], true, "{object}");
            let patch: json_patch::Patch = match response["patch"].as_str() {
                None => json_patch::Patch::default(),
                Some(_) => {
                    let decoded: k8s_openapi::ByteString = serde_json::from_value(response["patch"].clone()).unwrap();
                    serde_json::from_slice(&decoded.0).unwrap()
                }
            };
            let mut after = object.clone();
            json_patch::patch(&mut after, &patch).unwrap();
            (after, patch)
        };
        let (once, patch) = patched(&object);
        for operation in &patch.0 {
            let json_patch::PatchOperation::Add(add) = operation else { panic!("it does not add: {operation:?}") };
            let there = object.pointer(add.path.as_str());
            assert!(there.is_none_or(|there| there.is_null() || *there == ""), "{operation:?} overwrites {there:?}");
        }
        let (_, again) = patched(&once);
        assert!(again.is_empty(), "twice is not once: {again:?} on {once}");
        assert_eq!(once["ofALaterVersion"], object["ofALaterVersion"]);
    });
}

/// The value in thousandths by an arithmetic of its own; None for what it does not know, or what is too large for it.
fn milli(text: &str) -> Option<i128> {
    let (digits, suffix) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: i128 = digits.parse().ok()?;
    let factor = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "Ki" => 1_024_000,
        "Mi" => 1_048_576_000,
        "Gi" => 1_073_741_824_000,
        _ => return None,
    };
    number.checked_mul(factor).filter(|milli| *milli <= i128::from(i64::MAX) * 1_000)
}

/// Reading a quantity never fails other than by saying so; comparing agrees with plain numbers.
#[test]
fn quantity() {
    const RIGHT: [&str; 16] =
        ["0", "1", "1000m", "500m", "1.5", "0.25Gi", "64Mi", "1k", "2M", "1G", "3Ki", "1e3", "12E6", "+1", "-5m", "1E"];
    fuzz("quantity", |chance| {
        let text = |chance: &mut Chance| {
            let mut bytes = chance.pick(&RIGHT).as_bytes().to_vec();
            if chance.once_in(4) {
                let suffix = *chance.pick(&["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]);
                return format!("{}{suffix}", chance.next() >> chance.below(64));
            }
            mutation::bytes(&mut bytes, chance);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (one, two) = (text(chance), text(chance));
        let (a, b) = (Quantity(one.clone()), Quantity(two.clone()));
        assert!(a.same_value(&a), "{one:?}");
        assert_eq!(a.same_value(&b), b.same_value(&a), "{one:?} and {two:?}");
        if let (Ok(first), Ok(second)) = (a.amount(), b.amount()) {
            assert_eq!(first.cmp(&second), second.cmp(&first).reverse());
            assert_eq!(first == second, a.same_value(&b));
        }
        if let (Some(first), Some(second)) = (milli(&one), milli(&two)) {
            let (x, y) = (a.amount().unwrap(), b.amount().unwrap());
            assert_eq!(x.cmp(&y), first.cmp(&second), "{one:?} and {two:?}");
            assert!(!x.is_negative());
        }
    });
}

/// Validation ends for every object, says the same twice, and each fault has a place.
#[test]
fn validation() {
    let server = Server::new();
    fuzz("validation", |chance| {
        let (path, resource) = PATHS[1 + chance.below(PATHS.len() - 1)];
        let (mut object, mut old) = (good(resource), good(resource));
        if resource == "jobs" && chance.once_in(2) {
            object["spec"]["jobClassName"] = json!("boxed");
        }
        mutation::value(&mut object, chance);
        let review = match chance.below(4) {
            0 => {
                mutation::value(&mut old, chance);
                review(resource, "UPDATE", &object, &old)
            }
            1 => review(resource, "UPDATE", &object, &old),
            _ => review(resource, "CREATE", &object, &Value::Null),
        };
        let response = server.response(path, &review);
        check_response(&response);
        assert_eq!(response, server.response(path, &review), "another answer to the same");
        for cause in response["status"]["details"]["causes"].as_array().into_iter().flatten() {
            let field = cause["field"].as_str().unwrap();
            assert!(has_place(&object, field), "{field} is no place in {object}");
        }
    });
}

/// Whether a field path leads into the object, perhaps to fields that are missing; never to an entry of a list that is
/// not there, or into a value that has no fields.
fn has_place(object: &Value, field: &str) -> bool {
    let mut at = Some(object);
    let mut rest = field;
    while !rest.is_empty() {
        let (step, bracketed, after) = match rest.strip_prefix('[') {
            Some(inner) => {
                // A key may hold brackets and dots itself: it ends with the last one.
                let end = if at.is_some_and(Value::is_object) { inner.rfind(']') } else { inner.find(']') };
                let Some(end) = end else { return rest.ends_with('…') };
                (&inner[..end], true, &inner[end + 1..])
            }
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (&rest[..end], false, &rest[end..])
            }
        };
        at = match (at, bracketed) {
            (Some(Value::Array(list)), true) => match step.parse::<usize>().ok().and_then(|index| list.get(index)) {
                Some(entry) => Some(entry),
                None => return false,
            },
            (Some(Value::Object(map)), _) => map.get(step),
            (None | Some(Value::Null), false) => None,
            // serde takes a list for a struct's fields in their order; the schema, which comes first, does not.
            (Some(Value::Array(list)), false) if list.is_empty() => None,
            _ => return false,
        };
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    true
}
