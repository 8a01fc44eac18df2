//! Who may ask, where the server has been told whom to let in.

use ayatori_webhook::{Clients, Transport};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{LIMITS, Running, head, review, start_with};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn client(issuer: &Issuer, last_year: i32, usage: ExtendedKeyUsagePurpose) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new(vec!["apiserver".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
    params.extended_key_usages = vec![usage];
    let signing_key = KeyPair::generate().unwrap();
    CertifiedKey { cert: params.signed_by(&signing_key, issuer).unwrap(), signing_key }
}

async fn server_for(issuers: &[&Issuer]) -> Running {
    let pem: String = issuers.iter().map(|issuer| issuer.pem()).collect();
    let transport = Transport { clients: Some(Clients::signed_by(pem.as_bytes()).unwrap()), ..Transport::default() };
    start_with(transport, LIMITS).await
}

/// Whether a review is answered. In TLS 1.3 a client learns that it is not wanted only after its own part of the
/// handshake, so what it sends then may go nowhere.
async fn is_answered(server: &Running, client: Option<&CertifiedKey<KeyPair>>) -> bool {
    let Ok(mut connection) = server.connect_as(client, "http/1.1").await else { return false };
    let body = review("x");
    let whole = [head("application/json", body.len()).as_bytes(), &body].concat();
    let mut answer = [0; 16];
    let asked = async {
        connection.write_all(&whole).await?;
        connection.flush().await?;
        connection.read_exact(&mut answer).await
    };
    asked.await.is_ok() && answer.starts_with(b"HTTP/1.1 200 ")
}

#[tokio::test]
async fn only_a_client_with_a_certificate_of_a_named_authority_gets_in() {
    let (first, second, other) = (authority(), authority(), authority());
    let server = server_for(&[&first, &second]).await;
    for issuer in [&first, &second] {
        let good = client(issuer, 2090, ExtendedKeyUsagePurpose::ClientAuth);
        assert!(is_answered(&server, Some(&good)).await);
    }
    assert!(!is_answered(&server, None).await, "without a certificate");
    let strange = client(&other, 2090, ExtendedKeyUsagePurpose::ClientAuth);
    assert!(!is_answered(&server, Some(&strange)).await, "of another authority");
    let expired = client(&first, 2021, ExtendedKeyUsagePurpose::ClientAuth);
    assert!(!is_answered(&server, Some(&expired)).await, "expired");
    let servers = client(&first, 2090, ExtendedKeyUsagePurpose::ServerAuth);
    assert!(!is_answered(&server, Some(&servers)).await, "a server's");
}
