//! How the webhook is served: its certificate, who may ask it, and in which protocol.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use ayatori_certs::{Lifetimes, TLS_CERT, TLS_KEY};
use ayatori_webhook::Transport;
use clap::Args;
use jiff::SignedDuration;

use super::duration;

/// The flags. Those of one way to get a certificate are refused beside those of the other, for they would do nothing.
#[derive(Debug, Clone, Args)]
pub(crate) struct Serving {
    /// The folder of the webhook's certificate, for example cert-manager's Secret as a volume. Read every 10 s. Without
    /// it the process makes its own, and writes its CA into the webhook configurations.
    #[arg(long, value_name = "FOLDER")]
    webhook_cert_path: Option<PathBuf>,
    /// The file of the certificate in that folder, intermediates after it.
    #[arg(long, value_name = "FILE", default_value = TLS_CERT, requires = "webhook_cert_path")]
    webhook_cert_name: PathBuf,
    /// The file of its key in that folder.
    #[arg(long, value_name = "FILE", default_value = TLS_KEY, requires = "webhook_cert_path")]
    webhook_cert_key: PathBuf,
    /// A further name or IP address for our own certificate, for a webhook that is reached by URL. May be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "webhook_cert_path")]
    webhook_cert_extra_name: Vec<String>,
    /// The Secret, in our own namespace, that keeps our own CA for all replicas.
    #[arg(long, value_name = "NAME", default_value = "ayatori-webhook-ca", conflicts_with = "webhook_cert_path")]
    pub(crate) webhook_ca_secret: String,
    /// How long our own CA holds: a new one takes over at two thirds of it.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration, conflicts_with = "webhook_cert_path")]
    webhook_ca_lifetime: SignedDuration,
    /// How long a certificate of our own CA holds: a new one takes over at two thirds of it.
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = duration, conflicts_with = "webhook_cert_path")]
    webhook_leaf_lifetime: SignedDuration,
    /// A file with the CAs, in PEM, one of which must have signed the certificate of whoever asks the webhook. Without it
    /// anybody may. Read at the start.
    #[arg(long, value_name = "FILE")]
    webhook_client_ca: Option<PathBuf>,
    /// Offers HTTP/2 as well. The API server speaks HTTP/1.1 with webhooks; others may want it.
    #[arg(long)]
    enable_http2: bool,
}

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// Somebody else keeps these files.
    Files {
        /// The chain.
        certificates: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// We make it ourselves.
    SelfManaged(Lifetimes),
}

impl Serving {
    /// Where the serving certificate comes from.
    pub(crate) fn certificates(&self) -> Result<Certificates> {
        Ok(match &self.webhook_cert_path {
            Some(folder) => Certificates::Files {
                certificates: folder.join(&self.webhook_cert_name),
                key: folder.join(&self.webhook_cert_key),
            },
            None => Certificates::SelfManaged(
                Lifetimes::new(self.webhook_ca_lifetime, self.webhook_leaf_lifetime)
                    .context("--webhook-ca-lifetime and --webhook-leaf-lifetime")?,
            ),
        })
    }

    /// The names in our own certificate. The API server asks for the Service as `NAME.NAMESPACE.svc`.
    pub(crate) fn names(&self, service: &str, namespace: &str) -> Vec<String> {
        let service = format!("{service}.{namespace}.svc");
        std::iter::once(service).chain(self.webhook_cert_extra_name.iter().cloned()).collect()
    }

    /// Who may ask, and in which protocol.
    pub(crate) fn transport(&self) -> Result<Transport> {
        let mut transport = Transport { http2: self.enable_http2, ..Transport::default() };
        if let Some(file) = &self.webhook_client_ca {
            let context = || format!("--webhook-client-ca: {}", file.display());
            let pem = fs::read(file).with_context(context)?;
            transport.clients = Some(ayatori_webhook::Clients::signed_by(&pem).with_context(context)?);
        }
        Ok(transport)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        serving: Serving,
    }

    fn parse(flags: &str) -> Result<Serving, String> {
        let arguments = std::iter::once("ayatori").chain(flags.split_whitespace());
        Flags::try_parse_from(arguments).map(|flags| flags.serving).map_err(|error| error.to_string())
    }

    #[test]
    fn the_process_makes_its_own_certificate_unless_a_folder_is_named() {
        assert_eq!(parse("").unwrap().certificates().unwrap(), Certificates::SelfManaged(Lifetimes::default()));
        let files =
            |certificates: &str, key: &str| Certificates::Files { certificates: certificates.into(), key: key.into() };
        let plain = parse("--webhook-cert-path /tls").unwrap();
        assert_eq!(plain.certificates().unwrap(), files("/tls/tls.crt", "/tls/tls.key"));
        let named = parse("--webhook-cert-path /tls --webhook-cert-name a.pem --webhook-cert-key b.pem").unwrap();
        assert_eq!(named.certificates().unwrap(), files("/tls/a.pem", "/tls/b.pem"));
    }

    #[test]
    fn lifetimes_are_written_as_elsewhere_and_bounded() {
        let lifetimes = |flags: &str| parse(flags).and_then(|flags| flags.certificates().map_err(|e| format!("{e:#}")));
        let expected = Lifetimes::new(SignedDuration::from_hours(720), SignedDuration::from_mins(90)).unwrap();
        assert_eq!(
            lifetimes("--webhook-ca-lifetime 720h --webhook-leaf-lifetime 1h30m").unwrap(),
            Certificates::SelfManaged(expected)
        );
        for (flags, said) in [
            ("--webhook-leaf-lifetime 1s", "must live at least 5s"),
            ("--webhook-ca-lifetime 10h", "must live at least twice as long"),
            ("--webhook-leaf-lifetime soon", "invalid value 'soon'"),
            ("--webhook-leaf-lifetime 90", "invalid value '90'"),
        ] {
            let error = lifetimes(flags).unwrap_err();
            assert!(error.contains(said) && error.contains("--webhook-leaf-lifetime"), "{flags}: {error}");
        }
    }

    #[test]
    fn flags_that_would_do_nothing_are_refused() {
        for flags in [
            "--webhook-cert-name a",
            "--webhook-cert-key a",
            "--webhook-cert-path a --webhook-leaf-lifetime 1h",
            "--webhook-cert-path a --webhook-ca-lifetime 1h",
            "--webhook-cert-path a --webhook-ca-secret b",
            "--webhook-cert-path a --webhook-cert-extra-name b",
        ] {
            assert!(parse(flags).is_err(), "{flags}");
        }
    }

    #[test]
    fn anybody_may_ask_in_http_1_unless_it_is_said_otherwise() {
        let transport = parse("").unwrap().transport().unwrap();
        assert!(transport.clients.is_none() && !transport.http2);
        assert!(parse("--enable-http2").unwrap().transport().unwrap().http2);
        let error = parse("--webhook-client-ca /no/such/file").unwrap().transport().unwrap_err();
        assert!(format!("{error:#}").starts_with("--webhook-client-ca: /no/such/file: "), "{error:#}");
    }

    #[test]
    fn our_own_certificate_names_the_service_first() {
        let serving = parse("--webhook-cert-extra-name 127.0.0.1").unwrap();
        assert_eq!(serving.names("ayatori-webhook", "sys"), ["ayatori-webhook.sys.svc", "127.0.0.1"]);
    }
}
