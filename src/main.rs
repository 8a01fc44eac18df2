//! `ayatori`: the admission webhooks and the controllers of the batch API, in one process.
//!
//! What happens in which order is in [`run`]; what can be set is in [`config`].

use std::process::ExitCode;

use clap::Parser;

mod admin;
mod config;
mod lookups;
mod metrics;
mod platform;
mod preflight;
mod run;
mod serving_certificate;
mod telemetry;

#[tokio::main]
async fn main() -> ExitCode {
    let config = config::Config::parse();
    telemetry::init(config.log_format);
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::error!("another TLS crypto provider is installed already");
        return ExitCode::FAILURE;
    }
    match run::run(config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
