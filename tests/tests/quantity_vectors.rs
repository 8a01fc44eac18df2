//! The vectors that the quantity type in `crds` is tested with are what Go's library says, and nothing else (A7).
#![allow(clippy::unwrap_used)]

use std::{fs, path::Path, process::Command};

/// Set it to write the file anew.
const UPDATE: &str = "UPDATE_QUANTITIES";

#[test]
fn the_go_library_still_says_exactly_what_the_vectors_say() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("go")
        .args(["run", "-trimpath", "."])
        .current_dir(tests.join("tools/quantity"))
        .env("CGO_ENABLED", "0")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = tests.parent().unwrap().join("crds/tests/quantity_vectors.tsv");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, &made.stdout).unwrap();
    }
    let differs = fs::read(&file).unwrap() != made.stdout;
    assert!(
        !differs,
        "{} differs; write it with: {UPDATE}=1 cargo test -p ayatori-tests --test quantity_vectors",
        file.display()
    );
}

/// The version that judges our vectors is the version that judges our CRDs.
#[test]
fn the_vectors_are_made_with_the_kubernetes_of_the_test_cluster() {
    let version = |module: &str| {
        let go_mod = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(module).join("go.mod");
        let text = fs::read_to_string(go_mod).unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/apimachinery ")).unwrap().to_owned();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(version("quantity"), version("kubernetes"));
}
