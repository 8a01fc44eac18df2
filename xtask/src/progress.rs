//! What long steps are doing and for how long they took.

use std::time::Instant;

use anyhow::Result;

/// One line.
pub(crate) fn say(text: &str) {
    eprintln!("· {text}");
}

/// Says what begins, and how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(&format!("{what} …"));
    let begin = Instant::now();
    let result = work();
    let (seconds, outcome) = (begin.elapsed().as_secs_f32(), if result.is_ok() { "done" } else { "FAILED" });
    say(&format!("{what}: {outcome} after {seconds:.1} s"));
    result
}
