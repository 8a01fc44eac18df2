//! What can be set, by flags or environment.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::{Parser, ValueEnum};

/// The admission webhooks and controllers of the ayatori batch API.
#[derive(Debug, Clone, Parser)]
#[command(name = "ayatori", version)]
pub(crate) struct Config {
    /// The address that the webhook listens on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub(crate) webhook_host: IpAddr,
    /// The port that the webhook listens on.
    #[arg(long, default_value_t = 9443)]
    pub(crate) webhook_port: u16,
    /// The Service through which the API server reaches the webhook.
    #[arg(long, default_value = "ayatori-webhook")]
    pub(crate) webhook_service: String,
    /// A further name or IP address for the serving certificate, for a webhook that is reached by URL. May be repeated.
    #[arg(long)]
    pub(crate) webhook_cert_extra_name: Vec<String>,
    /// The Secret, in our own namespace, that keeps the webhook's CA for all replicas.
    #[arg(long, default_value = "ayatori-webhook-ca")]
    pub(crate) webhook_ca_secret: String,
    /// The address that serves /healthz and /readyz.
    #[arg(long, default_value = "0.0.0.0:8081")]
    pub(crate) health_probe_bind_address: SocketAddr,
    /// Our own namespace.
    #[arg(long, env = "POD_NAMESPACE", default_value = "ayatori-system")]
    pub(crate) namespace: String,
    /// How log lines look. What is logged is set by RUST_LOG, for example `info,ayatori_controller=debug`.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// The address of the webhook.
    pub(crate) fn webhook_address(&self) -> SocketAddr {
        SocketAddr::new(self.webhook_host, self.webhook_port)
    }

    /// The names in the serving certificate. The API server asks for the Service as `NAME.NAMESPACE.svc`.
    pub(crate) fn webhook_names(&self) -> Vec<String> {
        let service = format!("{}.{}.svc", self.webhook_service, self.namespace);
        std::iter::once(service).chain(self.webhook_cert_extra_name.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_well_formed() {
        Config::command().debug_assert();
    }

    #[test]
    fn the_certificate_names_the_service_first() {
        let config = Config::parse_from(["ayatori", "--namespace", "sys", "--webhook-cert-extra-name", "127.0.0.1"]);
        assert_eq!(config.webhook_names(), ["ayatori-webhook.sys.svc", "127.0.0.1"]);
        assert_eq!(config.webhook_address(), "0.0.0.0:9443".parse().unwrap());
    }
}
