//! What the client is to do, and what came of it. All times are bounds or paces, never promises of the server.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::product::process::Ports;

/// What to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Plan {
    /// Ask for reviews; the report is a [`Report`].
    Reviews(Reviews),
    /// Begin and do not go on; first comes the word `"open"`, then a list of [`Cut`]s.
    Stalls(Stalls),
}

/// Reviews at an even pace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reviews {
    /// The processes that are asked.
    pub targets: Vec<Ports>,
    /// What their certificates are checked against.
    pub trust: Trust,
    /// The namespace of the Jobs in the reviews.
    pub namespace: String,
    /// Reviews in a second, by all workers together.
    pub rate: u32,
    /// How many ask at once. Half of them ask for defaulting, half for validation.
    pub workers: u32,
    /// How long a worker keeps a connection.
    pub connection_life: Duration,
    /// How late the client learns that a process is ready, or no longer; `None`: it takes all of them to be, always.
    pub lag: Option<Duration>,
    /// The end, if the input has not ended before.
    pub bound: Duration,
}

/// Where the CAs are that the client trusts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Trust {
    /// In the webhook configurations, as a watch shows them: `KUBECONFIG` says where.
    Published,
    /// In a file.
    File(PathBuf),
}

/// What came of the reviews.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// Reviews that were answered well: HTTP 200, their own uid, allowed.
    pub reviews: u64,
    /// All others.
    pub failed: u64,
    /// What happened to the first of those.
    pub failures: Vec<String>,
    /// TLS connections made.
    pub connections: u64,
    /// How long it took.
    pub time: Duration,
    /// Half of the reviews were answered within this time, connecting included.
    pub p50: Duration,
    /// 99 of 100 were.
    pub p99: Duration,
    /// The certificates that each process showed, by its port, in the order in which they were first seen.
    pub leaves: BTreeMap<u16, Vec<LeafSeen>>,
    /// The largest number of certificates in a caBundle.
    pub most_trusted: usize,
}

/// A serving certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeafSeen {
    /// Its serial number.
    pub serial: String,
    /// The key identifier of the CA that signed it: the CAs of one installation share their name.
    pub issuer: String,
}

impl Report {
    /// Well answered reviews in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.reviews).unwrap_or(u32::MAX)) / self.time.as_secs_f64()
    }
}

/// Clients that stall.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stalls {
    /// The process that is bothered.
    pub target: Ports,
    /// What its certificate is checked against.
    pub trust: Trust,
    /// How many stall at each stage.
    pub each: usize,
    /// When to give up waiting to be cut.
    pub bound: Duration,
}

/// Where a client stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Before its first byte of TLS.
    Handshake,
    /// In the head of its request.
    Head,
    /// In the body.
    Body,
}

/// The end of a client that stalled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cut {
    /// Where it did.
    pub stage: Stage,
    /// How long it was borne; `None`: longer than the client's own patience.
    pub after: Option<Duration>,
    /// The status line that it got, if any.
    pub said: String,
}
