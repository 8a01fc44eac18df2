//! What can be wrong with a certificate or a key. No variant ever carries key material.

/// Why a certificate, a key or a Secret that holds them cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// The Secret lacks a key.
    #[error("the Secret has no `{0}`")]
    MissingEntry(&'static str),
    /// No PEM block with a readable X.509 certificate.
    #[error("`{0}` holds no readable certificate")]
    Certificate(&'static str),
    /// No PEM block with a readable PKCS #8 private key.
    #[error("`{0}` holds no readable private key")]
    PrivateKey(&'static str),
    /// The certificate lacks `CA:TRUE`.
    #[error("the certificate is not a CA certificate")]
    NotAuthority,
    /// The private key belongs to another certificate.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// A leaf for no name at all would be trusted by nobody.
    #[error("a certificate needs at least one DNS name or IP address")]
    NoNames,
    /// Making the key or signing failed.
    #[error("cannot make the certificate: {0}")]
    Signing(String),
}

impl From<rcgen::Error> for CertError {
    fn from(error: rcgen::Error) -> Self {
        Self::Signing(error.to_string())
    }
}
