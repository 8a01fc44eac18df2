//! The keys and certificates of one cluster: one CA, a certificate for each server and each client.

use std::{fs, path::Path};

use anyhow::Context;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// A client of the API server: the name of its files, its user and its group.
type ClientName = (&'static str, &'static str, Option<&'static str>);

/// The name of the one node.
pub const NODE_NAME: &str = "node";
/// The address of the API server and of the kubelet: on a link of the cluster's own network namespace.
pub(crate) const NODE_ADDRESS: &str = "10.89.0.1";

const CLIENTS: &[ClientName] = &[
    ("admin", "ayatori-admin", Some("system:masters")),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("proxy", "system:kube-proxy", None),
    ("kubelet", "system:node:node", Some("system:nodes")),
    // The default role for kubelets' APIs needs a binding; the group needs none.
    ("apiserver-to-kubelet", "ayatori-apiserver", Some("system:masters")),
];

/// Writes `ca.crt`, `NAME.crt`, `NAME.key` of each server and client, and the key pair of ServiceAccount tokens
/// (`service-account.key`, `service-account.pub`) into `dir`.
pub(crate) fn write(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir)?;
    let put = |name: &str, text: String| fs::write(dir.join(name), text).with_context(|| format!("write {name}"));

    let mut params = params("ayatori-test-cluster", None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    put("ca.crt", ca.pem())?;

    let issue = |name: &str, params: &CertificateParams| -> anyhow::Result<()> {
        let key = KeyPair::generate()?;
        put(&format!("{name}.crt"), params.signed_by(&key, &ca)?.pem())?;
        put(&format!("{name}.key"), key.serialize_pem())
    };
    for &(name, user, group) in CLIENTS {
        let mut params = self::params(user, group)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        issue(name, &params)?;
    }
    // 10.0.0.1 is the first address of the service range: the Service `kubernetes`.
    let api = ["localhost", "kubernetes.default.svc", "127.0.0.1", "10.0.0.1", NODE_ADDRESS];
    for (name, hosts) in [("apiserver", &api[..]), ("kubelet-server", &[NODE_NAME, "127.0.0.1", NODE_ADDRESS][..])] {
        let mut params = self::params(name, None)?;
        params.subject_alt_names =
            CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        issue(name, &params)?;
    }

    let tokens = KeyPair::generate()?;
    put("service-account.key", tokens.serialize_pem())?;
    put("service-account.pub", tokens.public_key_pem())
}

/// A subject and a validity from yesterday (clocks differ) for a week (no test cluster lives so long).
fn params(common_name: &str, organization: Option<&str>) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let day = |days: i64| -> anyhow::Result<_> {
        let date = today.checked_add(days.days())?;
        Ok(date_time_ymd(date.year().into(), date.month().try_into()?, date.day().try_into()?))
    };
    params.not_before = day(-1)?;
    params.not_after = day(7)?;
    Ok(params)
}

/// A kubeconfig for one of the clients, with keys and certificates inside so that the file can be moved.
pub(crate) fn kubeconfig(pki: &Path, client: &str, server: &str) -> anyhow::Result<String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let data = |name: String| -> anyhow::Result<String> {
        Ok(STANDARD.encode(fs::read(pki.join(&name)).with_context(|| format!("read {name}"))?))
    };
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": server,
            "certificate-authority-data": data("ca.crt".to_owned())?,
        }}],
        "users": [{"name": client, "user": {
            "client-certificate-data": data(format!("{client}.crt"))?,
            "client-key-data": data(format!("{client}.key"))?,
        }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": client}}],
        "current-context": "test",
    });
    // JSON is YAML.
    Ok(serde_json::to_string_pretty(&config)?)
}
