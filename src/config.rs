//! What can be set, by flags or environment. What the platform asks for is in a file as well ([`crate::platform`]).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ayatori_controller::job::{options::Options, patience::Patience};
use clap::{Parser, ValueEnum};
use jiff::SignedDuration;

use crate::platform::{Platform, PlatformFlags};

mod metrics;
mod serving;

pub(crate) use metrics::{MetricsFlags, Security};
pub(crate) use serving::{Certificates, Serving};

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
    /// How the webhook is served.
    #[command(flatten)]
    pub(crate) serving: Serving,
    /// The address that serves /healthz and /readyz.
    #[arg(long, default_value = "0.0.0.0:8081")]
    pub(crate) health_probe_bind_address: SocketAddr,
    /// Who may read the metrics, and where.
    #[command(flatten)]
    pub(crate) metrics: MetricsFlags,
    /// Our own namespace.
    #[arg(long, env = "POD_NAMESPACE", default_value = "ayatori-system")]
    pub(crate) namespace: String,
    /// How long a start may fail for a cause that hardly ever cures itself: no such image, a task that is refused.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) start_grace_permanent: SignedDuration,
    /// How long a registry may ask for (better) credentials.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) start_grace_auth: SignedDuration,
    /// How long a start may fail for any other cause: a registry that is busy or away, a missing Secret.
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    pub(crate) start_grace_transient: SignedDuration,
    /// How long nothing may be heard of a running task, for example as its node is away, before its result is unknown.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) unknown_after: SignedDuration,
    /// How log lines look. What is logged is set by RUST_LOG, for example `info,ayatori_controller=debug`.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// What the platform asks for.
    #[command(flatten)]
    pub(crate) platform: PlatformFlags,
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

    /// What the Job controller is set to.
    pub(crate) fn job_options(&self, platform: &Platform) -> Options {
        let patience = Patience {
            permanent: self.start_grace_permanent,
            authorization: self.start_grace_auth,
            transient: self.start_grace_transient,
            unknown_after: self.unknown_after,
        };
        Options { patience, policy: platform.policy, reference_checks: platform.reference_checks }
    }

    /// The names in our own serving certificate.
    pub(crate) fn webhook_names(&self) -> Vec<String> {
        self.serving.names(&self.webhook_service, &self.namespace)
    }
}

/// A duration as the ecosystem writes it: `30s`, `2m`, `1h30m`.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let duration: SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    if duration.is_negative() { Err("must not be negative".to_owned()) } else { Ok(duration) }
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
    fn durations_are_written_as_elsewhere_in_the_ecosystem() {
        let config = Config::parse_from(["ayatori"]);
        let platform = config.platform.platform().unwrap();
        assert_eq!(config.job_options(&platform).patience, Patience::default());
        assert_eq!(duration("1h30m"), Ok(SignedDuration::from_mins(90)));
        for wrong in ["-1s", "30", "soon", ""] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_webhook_listens_everywhere_and_is_named_by_its_service() {
        let config = Config::parse_from(["ayatori", "--namespace", "sys"]);
        assert_eq!(config.webhook_names(), ["ayatori-webhook.sys.svc"]);
        assert_eq!(config.webhook_address(), "0.0.0.0:9443".parse().unwrap());
    }
}
