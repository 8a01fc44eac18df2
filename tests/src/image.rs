//! Container images made from files, without any registry or builder: the same input gives the same bytes.

use std::{collections::BTreeMap, fs, io::Read, path::Path};

use anyhow::Context;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::{digest::sha256_hex, packages};

/// The programs of busybox that the test images have.
const APPLETS: &[&str] = &[
    "cat", "cp", "date", "dd", "echo", "env", "false", "grep", "head", "id", "kill", "ln", "ls", "mkdir", "nc",
    "printf", "ps", "rm", "sed", "seq", "sh", "sleep", "stat", "sync", "tail", "test", "touch", "tr", "true", "wc",
    "wget",
];

/// What stands at a path in an image.
#[derive(Debug, Clone)]
pub enum File {
    /// A directory.
    Directory,
    /// A file that everybody may read.
    Data(Vec<u8>),
    /// A file that everybody may run.
    Program(Vec<u8>),
    /// A symbolic link with its target.
    Link(String),
}

/// An image archive in the OCI layout.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    archive: Vec<u8>,
}

impl Image {
    /// A static busybox with the usual programs; runs as root. Name: `localhost/busybox:1`.
    ///
    /// # Errors
    /// There is no busybox on this machine.
    pub fn busybox() -> anyhow::Result<Self> {
        Self::build("localhost/busybox:1", busybox_files()?, &json!({"Cmd": ["sh"], "Env": ["PATH=/bin"]}))
    }

    /// The same under another name, and with an id of its own: a kubelet remembers by id what was pulled with whose
    /// password.
    ///
    /// # Errors
    /// There is no busybox on this machine.
    pub fn busybox_as(name: &str) -> anyhow::Result<Self> {
        let environment = ["PATH=/bin".to_owned(), format!("IMAGE={name}")];
        Self::build(name, busybox_files()?, &json!({"Cmd": ["sh"], "Env": environment}))
    }

    /// What holds the namespaces of a pod: it sleeps. Name: `localhost/pause:1`.
    pub(crate) fn pause() -> anyhow::Result<Self> {
        // 100 years in seconds; busybox knows no "infinity".
        let sleep = json!({"Entrypoint": ["/bin/sleep", "3153600000"]});
        Self::build(PAUSE, busybox_files()?, &sleep)
    }

    /// An image with one static program at `/NAME-OF-ITS-FILE`, which it runs as user 65532, and more files by their
    /// absolute paths.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn of_binary(
        name: &str,
        program: &Path,
        arguments: &[&str],
        more: BTreeMap<String, File>,
    ) -> anyhow::Result<Self> {
        let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
        let file_name = program.file_name().context("a program has a name")?.to_string_lossy();
        let path = format!("/{file_name}");
        let mut files = more;
        files.insert(path.clone(), File::Program(bytes));
        let users = "root:x:0:0:root:/:\nnonroot:x:65532:65532:nonroot:/:\n";
        files.entry("/etc/passwd".into()).or_insert_with(|| File::Data(users.into()));
        let entrypoint: Vec<&str> = std::iter::once(path.as_str()).chain(arguments.iter().copied()).collect();
        Self::build(name, files, &json!({"Entrypoint": entrypoint, "User": "65532:65532", "WorkingDir": "/"}))
    }

    /// An image of files by their absolute paths, and the `config` of an OCI image configuration.
    ///
    /// # Errors
    /// A path is too long for an archive.
    pub fn build(name: &str, files: BTreeMap<String, File>, config: &Value) -> anyhow::Result<Self> {
        let layer = layer(files)?;
        let layer_digest = sha256_hex(&layer);
        let config = serde_json::to_vec(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_digest}")]},
        }))?;
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        }))?;
        let mut entry = descriptor(MANIFEST, &manifest);
        entry["annotations"] = json!({"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name});
        let index = serde_json::to_vec(&json!({"schemaVersion": 2, "manifests": [entry]}))?;

        let mut archive = BTreeMap::new();
        archive.insert("/oci-layout".to_owned(), File::Data(br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()));
        archive.insert("/index.json".to_owned(), File::Data(index));
        for blob in [layer, config, manifest] {
            archive.insert(format!("/blobs/sha256/{}", sha256_hex(&blob)), File::Data(blob));
        }
        Ok(Self { name: name.to_owned(), archive: layer_of(archive)? })
    }

    /// The name that pods use; `imagePullPolicy` must not be `Always`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a registry stores.
    pub(crate) fn contents(&self) -> anyhow::Result<Contents> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(self.archive.as_slice()).entries()? {
            let mut entry = entry?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(entry.path()?.display().to_string(), bytes);
        }
        let index: Value = serde_json::from_slice(files.get("index.json").context("an archive without an index")?)?;
        let digest = index["manifests"][0]["digest"].as_str().context("an index without a manifest")?;
        let manifest = files.remove(&blob_path(digest)).context("an index that names no blob of the archive")?;
        let blobs = files.into_iter().filter_map(|(path, bytes)| Some((digest_of(&path)?, bytes)));
        Ok(Contents { manifest, blobs: blobs.collect() })
    }

    /// The bytes of the archive, as `ctr images import` takes them.
    #[must_use]
    pub fn archive(&self) -> &[u8] {
        &self.archive
    }
}

/// An image as a registry stores it.
#[derive(Debug)]
pub(crate) struct Contents {
    /// What names all others.
    pub(crate) manifest: Vec<u8>,
    /// Configuration and layer, each with its digest.
    pub(crate) blobs: Vec<(String, Vec<u8>)>,
}

/// `sha256:X` lies in the archive at `blobs/sha256/X`.
fn blob_path(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn digest_of(path: &str) -> Option<String> {
    Some(path.strip_prefix("blobs/")?.replace('/', ":"))
}

/// The name of the image that holds pods' namespaces.
pub(crate) const PAUSE: &str = "localhost/pause:1";
/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// As Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256_hex(blob)), "size": blob.len()})
}

fn busybox_files() -> anyhow::Result<BTreeMap<String, File>> {
    let path = packages::find(packages::BUSYBOX).context("there is no busybox: install busybox-static")?;
    let busybox = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let mut files: BTreeMap<String, File> =
        APPLETS.iter().map(|applet| (format!("/bin/{applet}"), File::Link("busybox".into()))).collect();
    files.insert("/bin/busybox".into(), File::Program(busybox));
    files.insert("/tmp".into(), File::Directory);
    files.insert("/etc/passwd".into(), File::Data(b"root:x:0:0:root:/:/bin/sh\n".to_vec()));
    Ok(files)
}

/// A tar of the files and all directories above them.
fn layer(mut files: BTreeMap<String, File>) -> anyhow::Result<Vec<u8>> {
    let above =
        |path: &String| Path::new(path).ancestors().skip(1).map(|dir| dir.display().to_string()).collect::<Vec<_>>();
    for dir in files.keys().flat_map(above).collect::<Vec<_>>() {
        if dir != "/" {
            files.entry(dir).or_insert(File::Directory);
        }
    }
    layer_of(files)
}

/// A tar of exactly these files, in the order of their names, without times and owners.
fn layer_of(files: BTreeMap<String, File>) -> anyhow::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for (path, file) in files {
        let path = path.trim_start_matches('/');
        let mut header = Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        match file {
            File::Directory => {
                header.set_entry_type(EntryType::Directory);
                // As /tmp: the images are for tests, and some of those run as another user.
                header.set_mode(if path == "tmp" { 0o1777 } else { 0o755 });
                tar.append_data(&mut header, path, std::io::empty())
            }
            File::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                tar.append_link(&mut header, path, target)
            }
            File::Data(bytes) => {
                header.set_mode(0o644);
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, path, bytes.as_slice())
            }
            File::Program(bytes) => {
                header.set_mode(0o755);
                header.set_size(bytes.len() as u64);
                tar.append_data(&mut header, path, bytes.as_slice())
            }
        }
        .with_context(|| format!("put {path} into an archive"))?;
    }
    Ok(tar.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::{File, Image, sha256_hex};
    use serde_json::{Value, json};

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let files = || [("/a/b".to_owned(), File::Data(b"text".to_vec()))].into();
        let build = || Image::build("localhost/x:1", files(), &json!({"User": "1"})).unwrap();
        assert_eq!(build().archive(), build().archive());
        assert_eq!(build().name(), "localhost/x:1");
    }

    #[test]
    fn a_registry_gets_what_the_manifest_names_under_the_digests_that_it_says() {
        let image = Image::build("host/x:1", [("/a".to_owned(), File::Data(b"text".to_vec()))].into(), &json!({}));
        let contents = image.unwrap().contents().unwrap();
        let manifest: Value = serde_json::from_slice(&contents.manifest).unwrap();
        let named = [&manifest["config"]["digest"], &manifest["layers"][0]["digest"]];
        assert_eq!(contents.blobs.len(), 2);
        for (digest, blob) in contents.blobs {
            assert!(named.iter().any(|named| **named == digest.as_str()), "{digest}: {manifest}");
            assert_eq!(digest, format!("sha256:{}", sha256_hex(&blob)));
        }
    }
}
