//! A Secret as kubelet mounts it, certificates to put into it, and what a client trusts them by.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use ayatori_tests::load::plan::Trust;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

/// A Secret that is mounted in some replicas: each has a volume of its own, and its own time of being brought up to date.
pub(crate) struct Mounts {
    folder: tempfile::TempDir,
    pub(crate) pki: Pki,
    volumes: Vec<Volume>,
}

impl Mounts {
    /// With a first certificate, the same for all.
    pub(crate) fn new(count: usize) -> anyhow::Result<Self> {
        let (folder, pki) = (tempfile::tempdir()?, Pki::new()?);
        fs::write(root(&folder), pki.root.pem())?;
        let pair = pki.issue()?;
        let mount = |number: usize| Volume::mount(&folder.path().join(number.to_string()), &pair);
        let volumes = (0..count).map(mount).collect::<io::Result<_>>()?;
        Ok(Self { folder, pki, volumes })
    }

    /// All that a client needs.
    pub(crate) fn trust(&self) -> Trust {
        Trust::File(root(&self.folder))
    }

    /// What each replica is started with.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.volumes.iter().map(|volume| format!("--webhook-cert-path={}", volume.folder.display())).collect()
    }

    /// Brings all of them up to date.
    pub(crate) fn put(&mut self, pair: &Pair) -> io::Result<()> {
        self.volumes.iter_mut().try_for_each(|volume| volume.put(pair))
    }
}

fn root(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("root.pem")
}

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
    fn new() -> anyhow::Result<Self> {
        let root = CertifiedIssuer::self_signed(ca("root")?, KeyPair::generate()?)?;
        let intermediate = CertifiedIssuer::signed_by(ca("intermediate")?, KeyPair::generate()?, &root)?;
        Ok(Self { root, intermediate })
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
struct Volume {
    folder: PathBuf,
    version: u32,
}

impl Volume {
    fn mount(folder: &Path, pair: &Pair) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut volume = Self { folder: folder.to_owned(), version: 0 };
        volume.put(pair)?;
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), folder.join(file))?;
        }
        Ok(volume)
    }

    /// As kubelet's atomic writer does it.
    fn put(&mut self, pair: &Pair) -> io::Result<()> {
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
