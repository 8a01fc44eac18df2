//! One bounded call to the API server, and what its failure means.

use std::{future::Future, time::Duration};

use kube::core::Status;

/// Longest time that one call may take. The API server ends its own calls after 60 s; a reconcile is decided afresh
/// after any failure, so waiting longer than this only holds a worker.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a call failed. Whether it was carried out is unknown for [`CallError::Timeout`] and [`CallError::Other`].
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The object changed since it was seen (409).
    #[error("the object changed meanwhile: {0}")]
    Conflict(String),
    /// There is already one (409).
    #[error("it exists already: {0}")]
    AlreadyExists(String),
    /// It is not there (404).
    #[error("not found: {0}")]
    NotFound(String),
    /// The request was refused as it stood (403, 422; 400 where an admission webhook gives no code; 500 where one that must
    /// be asked does not answer).
    #[error("refused by the API server: {0}")]
    Refused(String),
    /// No answer within [`CALL_TIMEOUT`].
    #[error("no answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
    /// A visit took more steps than any way through a life has.
    #[error("not settled after {0} steps")]
    Unsettled(usize),
    /// Anything else.
    #[error(transparent)]
    Other(kube::Error),
}

impl CallError {
    /// One word, for metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::AlreadyExists(_) => "already_exists",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
            Self::Timeout => "timeout",
            Self::Unsettled(_) => "unsettled",
            Self::Other(_) => "error",
        }
    }
}

/// What the API server says of an admission webhook that it cannot ask.
const WEBHOOK_FAILED: &str = "failed calling webhook";

impl From<kube::Error> for CallError {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else { return Self::Other(error) };
        let Status { message, code, reason, .. } = status.as_ref();
        match (code, reason.as_str()) {
            (409, "AlreadyExists") => Self::AlreadyExists(message.clone()),
            (409, _) => Self::Conflict(message.clone()),
            // Only the API server's own word proves an absence: a proxy's 404 has no such reason.
            (404, "NotFound") => Self::NotFound(message.clone()),
            (400 | 403 | 422, _) => Self::Refused(message.clone()),
            // `failurePolicy: Fail`: admission comes before anything is stored.
            (500, "InternalError") if message.contains(WEBHOOK_FAILED) => Self::Refused(message.clone()),
            _ => Self::Other(error),
        }
    }
}

/// Waits for the answer of one call, at most [`CALL_TIMEOUT`].
///
/// # Errors
/// The call's own failure, classified; [`CallError::Timeout`].
pub async fn bounded<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, CallError> {
    tokio::time::timeout(CALL_TIMEOUT, call).await.map_err(|_| CallError::Timeout)?.map_err(CallError::from)
}

/// `None` instead of "not found".
///
/// # Errors
/// Every other failure.
pub fn found<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CallError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16, reason: &str) -> &'static str {
        let status = Status { code, reason: reason.to_owned(), ..Status::default() };
        CallError::from(kube::Error::Api(Box::new(status))).word()
    }

    #[test]
    fn an_answer_is_classed_by_its_code_and_an_absence_only_by_the_api_servers_own_word() {
        for (code, reason, word) in [
            (409, "AlreadyExists", "already_exists"),
            (409, "Conflict", "conflict"),
            (404, "NotFound", "not_found"),
            (404, "", "error"),
            (403, "Forbidden", "refused"),
            (422, "Invalid", "refused"),
            // A denial of an admission webhook without a code.
            (400, "", "refused"),
            (500, "InternalError", "error"),
            (429, "TooManyRequests", "error"),
        ] {
            assert_eq!(answered(code, reason), word, "{code} {reason}");
        }
        let status = Status {
            code: 500,
            reason: "InternalError".to_owned(),
            message: r#"Internal error occurred: failed calling webhook "a.example": no endpoints available"#
                .to_owned(),
            ..Status::default()
        };
        assert_eq!(CallError::from(kube::Error::Api(Box::new(status))).word(), "refused");
    }
}
