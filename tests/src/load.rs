//! Load on ayatori's webhook as API servers make it, from inside of a cluster's network: the program
//! `ayatori-webhook-client`, which takes a [`Plan`] as its argument, works until its input ends, and writes a report.
//!
//! - [`plan`]: what to do, and what came of it;
//! - `reviews`: workers that ask for reviews at an even pace, each on connections that live a while;
//! - `trust`: what the webhook's certificate is checked against: the published caBundles as a watch shows them, or a file;
//! - `endpoints`: which processes are ready, as a Service would know it: a little late;
//! - `stalls`: clients that begin something and do not go on.

mod connection;
mod endpoints;
pub mod plan;
mod reviews;
mod stalls;
mod trust;

use std::io::Write;

use anyhow::Context;
use serde::Serialize;
use tokio::io::AsyncReadExt;

use plan::Plan;

/// Carries out a plan, given as JSON.
///
/// # Errors
/// The plan cannot be read, or the work cannot begin. What fails later is in the report.
pub async fn run(plan: &str) -> anyhow::Result<()> {
    match serde_json::from_str(plan).context("read the plan")? {
        Plan::Reviews(reviews) => say(&reviews::run(reviews, until_input_ends()).await?),
        Plan::Stalls(stalls) => stalls::run(stalls, until_input_ends()).await,
    }
}

async fn until_input_ends() {
    let mut input = tokio::io::stdin();
    while input.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {}
}

/// One line of JSON on the output.
fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(what)?)?;
    Ok(output.flush()?)
}
