//! Bounded waiting.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Between two looks: short against what is waited for, long against the cost of a request (a millisecond).
const POLL: Duration = Duration::from_millis(50);

/// Looks again and again until `look` succeeds.
///
/// # Errors
/// It has not within `bound`; the last look's error says what was missing.
pub async fn eventually<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + bound;
    let mut last = anyhow::anyhow!("no look came to an end");
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => last = error,
            Err(_) => {}
        }
        if Instant::now() + POLL > deadline {
            return Err(last.context(format!("{what}: not within {} s", bound.as_secs())));
        }
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::eventually;
    use std::time::Duration;

    #[tokio::test]
    async fn the_last_look_is_in_the_error() {
        let mut looks = 0;
        let wait = eventually("x", Duration::from_secs(1), async || {
            looks += 1;
            anyhow::ensure!(looks > 100, "only {looks} looks");
            Ok(())
        });
        let error = format!("{:#}", wait.await.unwrap_err());
        assert!(error.starts_with("x: not within 1 s: only ") && looks > 1, "{error}");
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_ended() {
        let wait = eventually("x", Duration::from_millis(60), async || {
            std::future::pending::<()>().await;
            Ok(())
        });
        assert!(wait.await.is_err());
    }
}
