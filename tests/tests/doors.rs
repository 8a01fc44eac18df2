//! The doors between the rooms: which crate may know which, that no backend's words leave its folder, and that the rules
//! that comments cite stand where a reader finds them.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use ayatori_tests::cargo::cargo;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Our crates and which of our crates each names in its `[dependencies]`.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null());
        all.map(name).filter(|dependency| ours.contains(dependency)).collect()
    };
    packages.iter().map(|package| (name(package), of(package))).collect()
}

#[test]
fn every_crate_knows_only_the_rooms_that_it_has_a_door_to() {
    let doors: [(&str, &[&str]); 8] = [
        ("ayatori", &["ayatori-certs", "ayatori-controller", "ayatori-crds", "ayatori-webhook"]),
        ("ayatori-certs", &[]),
        ("ayatori-controller", &["ayatori-crds"]),
        ("ayatori-crds", &[]),
        // Its tests know the controller; nobody knows it.
        ("ayatori-model", &[]),
        ("ayatori-tests", &["ayatori-crds", "ayatori-webhook"]),
        ("ayatori-webhook", &["ayatori-certs", "ayatori-crds"]),
        ("xtask", &["ayatori-crds", "ayatori-tests", "ayatori-webhook"]),
    ];
    let doors: BTreeMap<String, BTreeSet<String>> = doors
        .into_iter()
        .map(|(room, known)| (room.to_owned(), known.iter().map(|name| (*name).to_owned()).collect()))
        .collect();
    assert_eq!(dependencies(), doors);
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files = vec![];
    for path in entries {
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Places in these files, comments aside, that hold one of the words.
fn places(files: &[PathBuf], words: &[&str]) -> Vec<String> {
    let mut found = vec![];
    for file in files {
        for (number, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
            let code = line.trim_start();
            if !code.starts_with("//") && words.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {code}", file.strip_prefix(root()).unwrap().display(), number + 1));
            }
        }
    }
    found
}

#[test]
fn the_domain_speaks_only_the_backend_contract() {
    let controller = root().join("controller/src");
    let mut files = vec![
        controller.join("job.rs"),
        controller.join("job_class.rs"),
        controller.join("parameters.rs"),
        controller.join("ttl.rs"),
    ];
    for folder in ["job", "job_class", "parameters", "ttl"] {
        files.extend(sources(&controller.join(folder)));
    }
    assert!(files.len() > 10, "the domain is somewhere else: {files:?}");
    let words =
        ["api::batch", "api::core", "api::node", "backend::kubernetes", "opensandbox", "NativeJob", "NativePod"];
    assert_eq!(places(&files, &words), Vec::<String>::new());
}

#[test]
fn what_decides_has_no_clock_no_async_and_no_client() {
    let controller = root().join("controller/src");
    let mut files = sources(&root().join("crds/src"));
    let pure = [
        "job/decide.rs",
        "clock/skew.rs",
        "job/accept.rs",
        "job/options.rs",
        "job/patience.rs",
        "job/references.rs",
        "job/status.rs",
        "job/view.rs",
        "job_class/decide.rs",
        "job_class/status.rs",
        "parameters/decide.rs",
        "ttl/decide.rs",
        "patch.rs",
        "backend/start_failure.rs",
        "metrics/doubts.rs",
        "backend/kubernetes/left_behind.rs",
        "backend/kubernetes/limit.rs",
        "backend/kubernetes/observe.rs",
        "backend/kubernetes/silence.rs",
        "backend/kubernetes/start_failure.rs",
        "backend/kubernetes/waiting.rs",
        "backend/kubernetes/words.rs",
        "backend/kubernetes/verdict.rs",
        "backend/kubernetes/render.rs",
    ];
    files.extend(pure.map(|file| controller.join(file)));
    files.extend(sources(&controller.join("job/decide")));
    files.extend(sources(&root().join("certs/src")));
    let words =
        ["async fn", ".await", "Timestamp::now(", "SystemTime::now(", "Instant::now(", "kube::Client", "tokio::"];
    assert_eq!(places(&files, &words), Vec::<String>::new());
}

/// The numbers of rules in a text, such as B4.
fn rules(text: &str) -> BTreeSet<&str> {
    let is_rule = |word: &&str| match word.as_bytes() {
        [b'A'..=b'K', number @ ..] => (1..=2).contains(&number.len()) && number.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    text.split(|c: char| !c.is_alphanumeric()).filter(is_rule).collect()
}

#[test]
fn every_rule_that_a_comment_cites_stands_in_the_contract() {
    let contract = fs::read_to_string(root().join("docs/contract.md")).unwrap();
    let known = rules(&contract);
    let rooms = ["certs", "controller", "crds", "model", "src", "tests", "webhook", "xtask"];
    let (mut cited, mut unknown) = (0, vec![]);
    for file in rooms.iter().flat_map(|room| sources(&root().join(room))) {
        let text = fs::read_to_string(&file).unwrap();
        for comment in text.lines().map(str::trim_start).filter(|line| line.starts_with("//")) {
            cited += rules(comment).len();
            unknown.extend(rules(comment).difference(&known).map(|rule| format!("{rule} in {}", file.display())));
        }
    }
    assert!(cited > 100, "the sources are somewhere else: {cited} rules cited");
    assert_eq!(unknown, Vec::<String>::new());
}
