//! Load on ayatori's webhook, for the suite `serving`: see [`ayatori_tests::load`].

use anyhow::Context;

/// `ayatori-webhook-client PLAN`, the plan in JSON.
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A process has one provider; nothing has chosen one before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ayatori_tests::load::run(&std::env::args().nth(1).context("no plan")?).await
}
