//! Where the metrics are served, and who may read them. The flags are those of the ecosystem (controller-runtime).

use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Result, ensure};
use ayatori_certs::{TLS_CERT, TLS_KEY};
use clap::{ArgAction, Args};

/// The flags.
#[derive(Debug, Clone, Args)]
pub(crate) struct MetricsFlags {
    /// The address that serves /metrics. `0` serves them nowhere.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443", value_parser = bind_address)]
    metrics_bind_address: BindAddress,
    /// Serves the metrics by HTTPS, and only to whom the cluster allows to `get` the URL /metrics. `false`: by HTTP, to
    /// anybody.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", action = ArgAction::Set)]
    metrics_secure: bool,
    /// The folder of the certificate of the metrics. Read every 10 s. Without it the process makes one that nobody can
    /// verify, in memory.
    #[arg(long, value_name = "FOLDER")]
    metrics_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder, intermediates after it.
    #[arg(long, value_name = "FILE", default_value = TLS_CERT, requires = "metrics_cert_path")]
    metrics_cert_name: PathBuf,
    /// The file of its key in that folder.
    #[arg(long, value_name = "FILE", default_value = TLS_KEY, requires = "metrics_cert_path")]
    metrics_cert_key: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BindAddress {
    Nowhere,
    At(SocketAddr),
}

fn bind_address(text: &str) -> Result<BindAddress, &'static str> {
    match text {
        "0" => Ok(BindAddress::Nowhere),
        _ => {
            text.parse().map(BindAddress::At).map_err(|_| "must be an address with a port, such as 0.0.0.0:8443, or 0")
        }
    }
}

/// By what the metrics are guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Security {
    /// By nothing: plain HTTP for anybody.
    Open,
    /// By TLS with a certificate of our own making, and by the cluster's word on who may read them.
    OwnCertificate,
    /// The same, with a certificate that somebody else keeps in these files.
    Files {
        /// The chain.
        certificates: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

impl MetricsFlags {
    /// Where they are served, and by what they are guarded; None where they are not served.
    ///
    /// # Errors
    /// A certificate that would serve nothing.
    pub(crate) fn serving(&self) -> Result<Option<(SocketAddr, Security)>> {
        let BindAddress::At(address) = self.metrics_bind_address else { return Ok(None) };
        let security = match (self.metrics_secure, &self.metrics_cert_path) {
            (false, files) => {
                ensure!(
                    files.is_none(),
                    "--metrics-cert-path does nothing beside --metrics-secure=false: leave one out"
                );
                Security::Open
            }
            (true, None) => Security::OwnCertificate,
            (true, Some(folder)) => Security::Files {
                certificates: folder.join(&self.metrics_cert_name),
                key: folder.join(&self.metrics_cert_key),
            },
        };
        Ok(Some((address, security)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        metrics: MetricsFlags,
    }

    fn serving(flags: &str) -> Result<Option<(SocketAddr, Security)>, String> {
        let arguments = std::iter::once("ayatori").chain(flags.split_whitespace());
        let line = Line::try_parse_from(arguments).map_err(|error| error.to_string())?;
        line.metrics.serving().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn metrics_are_served_guarded_on_8443_unless_it_is_said_otherwise() {
        let at = |address: &str, security| Ok(Some((address.parse().unwrap(), security)));
        assert_eq!(serving(""), at("0.0.0.0:8443", Security::OwnCertificate));
        assert_eq!(serving("--metrics-bind-address 0"), Ok(None));
        assert_eq!(serving("--metrics-secure --metrics-bind-address [::1]:9"), at("[::1]:9", Security::OwnCertificate));
        assert_eq!(serving("--metrics-secure=false"), at("0.0.0.0:8443", Security::Open));
        let files = |certificates: &str, key: &str| {
            at("0.0.0.0:8443", Security::Files { certificates: certificates.into(), key: key.into() })
        };
        assert_eq!(serving("--metrics-cert-path /tls"), files("/tls/tls.crt", "/tls/tls.key"));
        let named = "--metrics-cert-path /tls --metrics-cert-name a.pem --metrics-cert-key b.pem";
        assert_eq!(serving(named), files("/tls/a.pem", "/tls/b.pem"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (flags, told) in [
            ("--metrics-bind-address 8443", "such as 0.0.0.0:8443, or 0"),
            ("--metrics-secure=perhaps", "--metrics-secure"),
            ("--metrics-cert-key a", "--metrics-cert-path"),
            ("--metrics-secure=false --metrics-cert-path /tls", "does nothing beside --metrics-secure=false"),
        ] {
            let error = serving(flags).unwrap_err();
            assert!(error.contains(told), "{flags}: {error}");
        }
    }
}
