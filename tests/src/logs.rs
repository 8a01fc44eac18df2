//! The logs of the parts of a cluster, for people who look at a failed test.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

/// Lines shown of each log.
const LINES: usize = 40;
/// Bytes read from the end of each log: 40 lines of the API server are about 10 KiB.
const BYTES: u64 = 64 * 1024;

/// The end of each log in the folder, with a heading, sorted by name; empty logs are left out.
pub(crate) fn tails(dir: &Path) -> String {
    let mut files: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().filter_map(|file| tail(file)).collect()
}

fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let name = path.file_stem()?.to_string_lossy();
    (!last.is_empty()).then(|| format!("--- {name}, last {} lines ---\n{}\n", last.len(), last.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::tails;

    #[test]
    fn the_end_of_each_log_is_shown_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let many: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        std::fs::write(dir.path().join("b.log"), many).unwrap();
        std::fs::write(dir.path().join("a.log"), "only\n").unwrap();
        std::fs::write(dir.path().join("empty.log"), "").unwrap();
        let text = tails(dir.path());
        assert!(text.starts_with("--- a, last 1 lines ---\nonly\n--- b, last 40 lines ---\nline 61\n"), "{text}");
        assert!(text.ends_with("line 100\n"));
    }
}
