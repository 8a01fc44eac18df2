//! Log lines.

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Lines of the libraries below us are wanted only where something is wrong.
const DEFAULT_FILTER: &str = "warn,ayatori=info,ayatori_controller=info,ayatori_webhook=info,ayatori_certs=info";

/// Starts logging to standard error.
pub(crate) fn init(format: LogFormat) {
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let filter = asked.as_deref().map(EnvFilter::try_new);
    let malformed = filter.as_ref().and_then(|filter| filter.as_ref().err().map(ToString::to_string));
    let filter = filter.and_then(Result::ok).unwrap_or_else(|| EnvFilter::new(DEFAULT_FILTER));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    if let Some(error) = malformed {
        tracing::warn!(error, "RUST_LOG is not understood; the default is used");
    }
}
