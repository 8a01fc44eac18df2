//! Reads the certificate files again and again; what is served of them is decided in `ayatori_certs::files`.
//!
//! Polled, for watches of files miss the second time that kubelet swaps the symlink of a volume; and kubelet itself takes
//! up to a minute to bring a changed Secret, so ten seconds more cost nothing.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ayatori_certs::{
    CertSource, FromFiles, Validity,
    files::{Look, PemFiles, Watched},
};
use jiff::Timestamp;
use tokio::{task::spawn_blocking, time::sleep};

/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_secs(10);
/// A chain of ten with big keys is 30 KiB. A Secret holds 1 MiB at most.
const LONGEST_FILE: u64 = 1024 * 1024;
/// The files are read until two readings agree: between the files of one reading kubelet may swap the folder.
const READINGS: usize = 3;

/// Serves what two files hold.
pub(crate) struct CertificateFiles {
    paths: Paths,
    look: Duration,
    watched: Watched,
    source: FromFiles,
}

#[derive(Debug, Clone)]
struct Paths {
    certificates: PathBuf,
    key: PathBuf,
}

impl CertificateFiles {
    pub(crate) fn new(certificates: PathBuf, key: PathBuf, look: Duration) -> Self {
        let paths = Paths { certificates, key };
        Self { paths, look, watched: Watched::default(), source: FromFiles::default() }
    }

    pub(crate) fn source(&self) -> Arc<dyn CertSource> {
        Arc::new(self.source.clone())
    }

    /// Returns when the files have once held what can be served: whoever makes them may be slower than we are.
    pub(crate) async fn first(&mut self) {
        self.take().await;
        while self.source.validity().is_none() {
            sleep(self.look).await;
            self.take().await;
        }
    }

    /// Never ends.
    pub(crate) async fn keep(mut self) {
        loop {
            sleep(self.look).await;
            self.take().await;
        }
    }

    async fn take(&mut self) {
        let paths = self.paths.clone();
        // Files may hang, as those of a network file system do.
        let read = spawn_blocking(move || paths.read()).await;
        let read = read.unwrap_or_else(|error| Err(format!("reading them failed: {error}")));
        let files = &self.paths;
        match self.watched.look(read, Timestamp::now()) {
            Look::Unchanged => {}
            Look::Serve(pair) => {
                let validity = pair.validity();
                self.source.serve(pair);
                match self.source.healthy(Timestamp::now()) {
                    Ok(()) => tracing::info!(?files, until = %validity.not_after, "serving a new certificate"),
                    Err(why) => tracing::warn!(?files, "serving a new certificate that nobody accepts: {why}"),
                }
            }
            Look::Later(Validity { not_before, not_after }) => {
                tracing::warn!(?files, from = %not_before, until = %not_after, "nobody would accept the certificate of \
                     these files now, serving the last good one");
            }
            Look::Refused(why) => {
                let instead = if self.source.validity().is_some() { "the last good one" } else { "none" };
                tracing::warn!(?files, "cannot serve the certificate of these files, serving {instead}: {why}");
            }
        }
    }
}

impl Paths {
    fn read(&self) -> Result<PemFiles, String> {
        let mut before = None;
        for _ in 0..READINGS {
            let now = PemFiles { certificates: read(&self.certificates)?, key: read(&self.key)? };
            if before.as_ref() == Some(&now) {
                return Ok(now);
            }
            before = Some(now);
        }
        Err(format!("they changed during each of {READINGS} readings"))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= LONGEST_FILE) {
        Ok(bytes)
    } else {
        Err(format!("{} is longer than {LONGEST_FILE} bytes", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use tempfile::TempDir;

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);
    /// For something that takes a few looks.
    const SOON: Duration = Duration::from_secs(20);

    /// A pair that holds until that year, by which tests know it.
    fn pair(year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    /// Puts files where a volume's link points to, in one step, as kubelet does.
    fn put(volume: &Path, name: &str, (certificates, key): (&str, &str)) {
        fs::create_dir(volume.join(name)).unwrap();
        fs::write(volume.join(name).join("tls.crt"), certificates).unwrap();
        fs::write(volume.join(name).join("tls.key"), key).unwrap();
        symlink(name, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    }

    fn volume() -> TempDir {
        let volume = tempfile::tempdir().unwrap();
        symlink("..data/tls.crt", volume.path().join("tls.crt")).unwrap();
        symlink("..data/tls.key", volume.path().join("tls.key")).unwrap();
        volume
    }

    fn files(volume: &Path) -> CertificateFiles {
        CertificateFiles::new(volume.join("tls.crt"), volume.join("tls.key"), SHORT)
    }

    async fn serves(source: &dyn CertSource, year: &str) {
        let is_it = || source.validity().is_some_and(|validity| validity.not_after.to_string().starts_with(year));
        tokio::time::timeout(SOON, async {
            while !is_it() {
                sleep(SHORT).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{:?} instead of {year}", source.validity()));
    }

    #[tokio::test]
    async fn a_swapped_link_is_seen_also_the_second_time_and_a_broken_pair_is_not_served() {
        let (volume, pairs) = (volume(), [pair(2081), pair(2082), pair(2083)]);
        let of = |number: usize| (pairs[number].0.as_str(), pairs[number].1.as_str());
        put(volume.path(), "..1", of(0));
        let mut files = files(volume.path());
        let source = files.source();
        files.first().await;
        serves(source.as_ref(), "2081").await;

        let keeping = tokio::spawn(files.keep());
        put(volume.path(), "..2", of(1));
        serves(source.as_ref(), "2082").await;
        put(volume.path(), "..3", (of(2).0, of(0).1));
        sleep(SHORT * 20).await;
        serves(source.as_ref(), "2082").await;
        put(volume.path(), "..4", of(2));
        serves(source.as_ref(), "2083").await;
        fs::remove_file(volume.path().join("..data")).unwrap();
        sleep(SHORT * 20).await;
        serves(source.as_ref(), "2083").await;
        keeping.abort();
    }

    #[tokio::test]
    async fn the_first_certificate_is_awaited() {
        let volume = volume();
        let mut files = files(volume.path());
        let source = files.source();
        let first = tokio::spawn(async move { files.first().await });
        sleep(SHORT * 20).await;
        assert!(!first.is_finished() && source.validity().is_none());
        let (certificates, key) = pair(2081);
        put(volume.path(), "..1", (&certificates, &key));
        tokio::time::timeout(SOON, first).await.unwrap().unwrap();
        serves(source.as_ref(), "2081").await;
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let volume = volume();
        let paths = files(volume.path()).paths;
        let error = paths.read().err().unwrap();
        assert!(error.starts_with("cannot read ") && error.contains("tls.crt"), "{error}");
        put(volume.path(), "..1", (&"x".repeat(1024 * 1024 + 1), ""));
        assert!(paths.read().err().unwrap().ends_with("tls.crt is longer than 1048576 bytes"));
    }
}
