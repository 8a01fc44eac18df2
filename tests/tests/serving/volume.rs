//! A Secret as kubelet mounts it, and certificates to put into it.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

type Issuer = CertifiedIssuer<'static, KeyPair>;

/// A root, and an intermediate that signs.
pub(crate) struct Pki {
    root: Issuer,
    intermediate: Issuer,
}

/// What is in the Secret.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificates: String,
    pub(crate) key: String,
}

impl Pki {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let root = CertifiedIssuer::self_signed(ca("root")?, KeyPair::generate()?)?;
        let intermediate = CertifiedIssuer::signed_by(ca("intermediate")?, KeyPair::generate()?, &root)?;
        Ok(Self { root, intermediate })
    }

    /// All that a client needs to trust.
    pub(crate) fn root(&self) -> String {
        self.root.pem()
    }

    /// A new certificate with its chain.
    pub(crate) fn issue(&self) -> anyhow::Result<Pair> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2090, 1, 1));
        let certificate = params.signed_by(&key, &self.intermediate)?;
        let certificates = format!("{}{}", certificate.pem(), self.intermediate.pem());
        Ok(Pair { certificates, key: key.serialize_pem() })
    }
}

fn ca(name: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2090, 1, 1));
    Ok(params)
}

/// `tls.crt -> ..data/tls.crt`, `..data -> ..N`: one rename changes both files.
pub(crate) struct Volume {
    folder: PathBuf,
    version: u32,
}

impl Volume {
    pub(crate) fn mount(folder: &Path, pair: &Pair) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut volume = Self { folder: folder.to_owned(), version: 0 };
        volume.put(pair)?;
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), folder.join(file))?;
        }
        Ok(volume)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// As kubelet's atomic writer does it.
    pub(crate) fn put(&mut self, pair: &Pair) -> io::Result<()> {
        let before = self.folder.join(format!("..{}", self.version));
        self.version += 1;
        let name = format!("..{}", self.version);
        let data = self.folder.join(&name);
        fs::create_dir(&data)?;
        fs::write(data.join("tls.crt"), &pair.certificates)?;
        fs::write(data.join("tls.key"), &pair.key)?;
        let link = self.folder.join("..data_tmp");
        symlink(&name, &link)?;
        fs::rename(link, self.folder.join("..data"))?;
        if before.is_dir() {
            fs::remove_dir_all(before)?;
        }
        Ok(())
    }
}
