//! Log lines.

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Lines of the libraries below us are wanted only where something is wrong.
const DEFAULT_FILTER: &str = "warn,ayatori=info,ayatori_controller=info,ayatori_webhook=info,ayatori_certs=info";

/// Starts logging to standard error.
pub(crate) fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
}
