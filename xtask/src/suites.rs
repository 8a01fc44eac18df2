//! The programs that hold the tests, run side by side.
//!
//! `cargo test` runs one after the other, and half of the machine idles meanwhile: suites wait for graces, deadlines and
//! image pulls most of their time.

use std::{
    io::{Read, Seek},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{progress::say, workspace};

/// Suites at a time: each has a cluster and two threads of its own, and the lanes are for machines of two cores.
const LANES: usize = 2;

/// The longest, which begin first, so that nobody waits for one of them in the end.
const LONGEST: [&str; 4] = ["product", "faults", "schema", "node_matrix"];

/// Measures how soon a server answers, and needs the machine for itself.
const ALONE: &str = "serving";

/// Only computes, for as long as it is told to: it takes what the others leave.
const IDLE_TIME_ONLY: &str = "fuzz";

/// A program with tests, as cargo has built it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    name: String,
    program: PathBuf,
    /// The package's folder, where cargo runs its tests.
    folder: PathBuf,
}

/// Builds all tests of the workspace.
pub(crate) fn build() -> Result<Vec<Suite>> {
    let mut cargo = workspace::cargo(&["test", "--quiet", "--workspace", "--no-run"]);
    let cargo = cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = cargo.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "building the tests ended with {}", output.status);
    let suites = built(&String::from_utf8_lossy(&output.stdout))?;
    ensure!(!suites.is_empty(), "cargo named no program with tests");
    Ok(suites)
}

/// What cargo says that it has built, the longest first.
fn built(messages: &str) -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for line in messages.lines() {
        let Message {
            executable: Some(program),
            profile: Some(Profile { test: true }),
            target: Some(target),
            manifest_path,
        } = serde_json::from_str(line).with_context(|| format!("cargo said {line:?}"))?
        else {
            continue;
        };
        let folder = manifest_path.parent().context("a manifest without a folder")?.to_owned();
        let what = if target.kind.iter().any(|kind| kind == "test") { "" } else { "unit tests of " };
        suites.push(Suite { name: format!("{what}{}", target.name), program, folder });
    }
    suites.sort_by_key(|suite| LONGEST.iter().position(|name| *name == suite.name).unwrap_or(LONGEST.len()));
    Ok(suites)
}

/// Runs all of them to their ends, whichever fail, with these variables in their environment.
pub(crate) fn run(suites: Vec<Suite>, environment: &[(&str, &str)]) -> Result<()> {
    let (background, suites): (Vec<_>, Vec<_>) = suites.into_iter().partition(|suite| suite.name == IDLE_TIME_ONLY);
    let (alone, queue): (Vec<_>, Vec<_>) = suites.into_iter().partition(|suite| suite.name == ALONE);
    let (queue, failed) = (Mutex::new(queue.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_one = |suite: &Suite, idle_time_only: bool| {
        if let Err(error) = suite.run(environment, idle_time_only) {
            say(&format!("{}: {error:#}", suite.name));
            failed.lock().unwrap_or_else(PoisonError::into_inner).push(suite.name.clone());
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| background.iter().for_each(|suite| run_one(suite, true)));
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(suite) = next() {
                    run_one(&suite, false);
                }
            });
        }
    });
    alone.iter().for_each(|suite| run_one(suite, false));
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() { Ok(()) } else { bail!("these failed: {}", failed.join(", ")) }
}

impl Suite {
    /// Runs it, then shows what it said: the lines of two at once would be unreadable.
    fn run(&self, environment: &[(&str, &str)], idle_time_only: bool) -> Result<()> {
        // A file without a name: two packages may have suites of the same name.
        let mut log = tempfile::tempfile().context("no file for the log")?;
        let mut command;
        if idle_time_only {
            command = Command::new("nice");
            // As many threads as it may have targets: each takes the same time, however little of a processor it gets.
            command.args(["-n", "19"]).arg(&self.program).arg("--test-threads=16");
        } else {
            command = Command::new(&self.program);
            // More threads than cores only make all of them slow.
            command.arg("--test-threads=2");
        }
        command.envs(environment.iter().copied()).env("CARGO_MANIFEST_DIR", &self.folder).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        say(&format!("{} …", self.name));
        let begin = Instant::now();
        let status = command.status().with_context(|| format!("cannot run {}", self.program.display()))?;
        let seconds = begin.elapsed().as_secs_f32();
        let outcome = if status.success() { "passed" } else { "FAILED" };
        let mut said = Vec::new();
        log.rewind().and_then(|()| log.read_to_end(&mut said)).context("cannot read the log")?;
        eprint!("· {}: {outcome} after {seconds:.1} s\n{}", self.name, String::from_utf8_lossy(&said));
        ensure!(status.success(), "ended with {status}");
        Ok(())
    }
}

/// The fields that matter of a line of cargo's `--message-format json`.
#[derive(Debug, Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
    #[serde(default)]
    manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: &str, name: &str, test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/p/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
        )
    }

    #[test]
    fn every_program_with_tests_is_one_the_longest_first() {
        let lines = [
            artifact("lib", "a", false, "null"),
            artifact("bin", "a", false, r#""/t/a""#),
            artifact("lib", "a", true, r#""/t/a-1""#),
            artifact("test", "faults", true, r#""/t/faults-2""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let suite =
            |name: &str, program: &str| Suite { name: name.to_owned(), program: program.into(), folder: "/w/p".into() };
        let expected = vec![suite("faults", "/t/faults-2"), suite("unit tests of a", "/t/a-1")];
        assert_eq!(built(&lines.join("\n")).unwrap(), expected);
        assert!(built("no JSON").is_err());
    }

    #[test]
    fn one_that_fails_keeps_no_other_from_running_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let suite = |name: &str, program: &str| Suite {
            name: name.to_owned(),
            program: program.into(),
            folder: folder.path().to_owned(),
        };
        let suites = vec![suite("good", "/bin/true"), suite("bad", "/bin/false"), suite("absent", "/no/such")];
        let error = run(suites, &[]).unwrap_err().to_string();
        let named: std::collections::BTreeSet<_> = error.trim_start_matches("these failed: ").split(", ").collect();
        assert_eq!(named, ["absent", "bad"].into());
        run(["good", "fuzz", "serving"].map(|name| suite(name, "/bin/true")).into(), &[]).unwrap();
        for name in ["fuzz", "serving"] {
            assert!(run(vec![suite(name, "/bin/false")], &[]).is_err(), "{name} is run, too");
        }
    }
}
