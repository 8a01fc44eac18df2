//! TLS: which versions and protocols are offered, and who may come in.

use std::fmt;
use std::sync::Arc;

use ayatori_certs::CertSource;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

/// HTTP/1.1 in ALPN.
const HTTP_1: &[u8] = b"http/1.1";
/// HTTP/2 in ALPN.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// What may be chosen about the way in. By default anybody may ask, in HTTP/1.1 only: the API server's webhook client
/// speaks nothing else, and a protocol that is not spoken needs no bounds.
#[derive(Debug, Clone, Default)]
pub struct Transport {
    /// Who may ask; `None`: anybody.
    pub clients: Option<Clients>,
    /// Offers HTTP/2 beside HTTP/1.1.
    pub http2: bool,
}

/// The clients whose certificate was signed by one of some CAs. Without such a certificate, or with an expired one, there
/// is no TLS connection.
#[derive(Clone)]
pub struct Clients(Arc<dyn ClientCertVerifier>);

/// Why a file names no CAs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientsError {
    /// It would let nobody in.
    #[error("there is no certificate in PEM")]
    Empty,
    /// One of them, counted from 1.
    #[error("certificate {0} cannot be read as that of a CA")]
    Broken(usize),
}

impl Clients {
    /// Reads the certificates of CAs, in PEM.
    ///
    /// # Errors
    /// When there is none, or one that cannot be read: half a list would lock out somebody without a word.
    pub fn signed_by(pem: &[u8]) -> Result<Self, ClientsError> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let broken = ClientsError::Broken(index + 1);
            let certificate = certificate.map_err(|_| broken.clone())?;
            roots.add(certificate).map_err(|_| broken)?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
        // Its only complaints are an empty list and broken revocation lists, of which there are none.
        Ok(Self(verifier.build().map_err(|_| ClientsError::Empty)?))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl Transport {
    /// TLS 1.2 and 1.3, with the certificate that `source` has at each handshake.
    pub(crate) fn tls(&self, source: &dyn CertSource) -> Result<ServerConfig, rustls::Error> {
        let versions = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let clients = match &self.clients {
            Some(Clients(verifier)) => versions.with_client_cert_verifier(Arc::clone(verifier)),
            None => versions.with_no_client_auth(),
        };
        let mut config = clients.with_cert_resolver(source.resolver());
        // The client's own order is what counts for it: only what both know is ever taken.
        let offered: &[&[u8]] = if self.http2 { &[HTTP_2, HTTP_1] } else { &[HTTP_1] };
        config.alpn_protocols = offered.iter().map(|protocol| protocol.to_vec()).collect();
        // No resumption: a resumed session would go on under a certificate that has been replaced, or a client's that
        // has expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use ayatori_certs::{AUTHORITY_LIFETIME, Authority, SelfManaged};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn http_2_is_offered_only_where_it_is_asked_for() {
        let offered = |http2| {
            let transport = Transport { http2, ..Transport::default() };
            transport.tls(&SelfManaged::default()).unwrap().alpn_protocols
        };
        assert_eq!(offered(false), [HTTP_1]);
        assert_eq!(offered(true), [HTTP_2, HTTP_1]);
    }

    #[test]
    fn a_list_of_client_authorities_is_read_whole_or_not_at_all() {
        let ca = || Authority::create(Timestamp::now(), AUTHORITY_LIFETIME).unwrap().certificate_pem().to_owned();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let read = |pem: &str| Clients::signed_by(pem.as_bytes()).map(drop);
        assert_eq!(read(&format!("{}{}", ca(), ca())), Ok(()));
        assert_eq!(read(""), Err(ClientsError::Empty));
        assert_eq!(read("no PEM"), Err(ClientsError::Empty));
        assert_eq!(read(&format!("{}{broken}", ca())), Err(ClientsError::Broken(2)));
    }
}
