//! How much and how long the server bears with a client (spec B9).

use std::time::Duration;

/// Bounds of the server. Every one of them is finite: nobody proves who he is before his request is read, so each
/// thing that a client could hold for ever is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. At the bound a new one takes the place of the one that has had nothing to answer for the
    /// longest time; while all have, it waits in the kernel's queue.
    pub connections: usize,
    /// Reviews that run.
    pub requests: usize,
    /// Bytes of all bodies that are being read or reviewed. They count as they arrive, so a client that sends its body
    /// slowly, or not at all, takes no room from others. One body more may be there without being counted.
    pub bodies_bytes: usize,
    /// Bytes of one body. The API server stores objects up to about 1.5 MB, sends two of them on an UPDATE and writes
    /// `<`, `>` and `&` as six bytes: 3.5 MB was the largest review of a storable Job.
    pub body_bytes: usize,
    /// From accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the handshake to the end of the first request's head.
    pub first_request: Duration,
    /// How long a connection may be idle. The API server keeps its own idle connections for 90 s (Go's default); were
    /// ours shorter, its next POST would race with our close and fail.
    pub idle: Duration,
    /// From a request's head to the end of its body.
    pub body: Duration,
    /// A request that names no `?timeout=` is answered within this time (the API server's own default).
    pub request: Duration,
    /// No request takes longer than this, whatever it asks for: 30 s is the most a webhook configuration may set.
    pub longest_request: Duration,
    /// At the stop: how long connections are still accepted and every answer says `Connection: close`, so that clients
    /// leave by themselves and no request meets a closed door.
    pub farewell: Duration,
    /// After that: how long the requests in flight have to end before they are cut.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            requests: 32,
            // Two of the longest, or thousands of ordinary ones. The densest body that is a Job (`"env":[{"name":""},…`)
            // takes 13 times its length while it is decoded, and the container has 512 MiB.
            bodies_bytes: 16 * 1024 * 1024,
            body_bytes: 8 * 1024 * 1024,
            handshake: Duration::from_secs(3),
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            body: Duration::from_secs(5),
            request: Duration::from_secs(10),
            longest_request: Duration::from_secs(30),
            farewell: Duration::from_secs(3),
            drain: Duration::from_secs(15),
        }
    }
}

impl Limits {
    /// Of a server beside the webhook: a few clients, each of which comes again by itself, so nobody's goodbye holds up the
    /// stop of the process.
    #[must_use]
    pub fn for_a_few() -> Self {
        Self { connections: 32, farewell: Duration::ZERO, drain: Duration::from_secs(1), ..Self::default() }
    }
}
