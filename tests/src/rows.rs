//! Rows: tests that mostly wait for a cluster, many of them side by side.
//!
//! `cargo test` runs as many tests at once as it is told, for all suites alike, and for those that compute that is the
//! number of processors. A row waits; so a suite of rows has a `main` of its own (`harness = false`) with lanes, each
//! as wide as what its rows share allows. The suite understands what `cargo test` hands on: names to run,
//! `--exact` and `--list`.

use std::{
    io::Write,
    panic::catch_unwind,
    process::ExitCode,
    sync::{Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::suite;

/// A row; [`rows!`](crate::rows!) makes them.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its module and function.
    pub name: &'static str,
    /// Runs it to its end.
    pub run: fn() -> anyhow::Result<()>,
    /// Why only the long setting runs it (`AYATORI_DEEP`).
    pub deep: Option<&'static str>,
}

/// Rows that share something.
#[derive(Debug, Clone)]
pub struct Lane {
    /// How many of them run at the same time.
    pub at_once: usize,
    /// Begun in this order: the longest first.
    pub rows: Vec<Row>,
}

/// A list of [`Row`]s from `module::async_function`, each with `=> "why"` where only the long setting runs it.
#[macro_export]
macro_rules! rows {
    ($($module:ident :: $row:ident $(=> $deep:literal)?),+ $(,)?) => {
        vec![$($crate::rows::Row {
            name: concat!(stringify!($module), "::", stringify!($row)),
            run: || $crate::rows::to_its_end($module::$row()),
            deep: $crate::rows!(@deep $($deep)?),
        }),+]
    };
    (@deep $deep:literal) => { Some($deep) };
    (@deep) => { None };
}

/// As `#[tokio::test]` runs it.
///
/// # Errors
/// Those of the row.
pub fn to_its_end(row: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(row)
}

/// The `main` of a suite of rows.
#[must_use]
pub fn main(lanes: Vec<Lane>) -> ExitCode {
    match Asked::parse(std::env::args().skip(1)).and_then(|asked| run(&asked, lanes)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print(format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    names: Vec<String>,
    exact: bool,
    list: bool,
}

impl Asked {
    fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut asked = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => asked.exact = true,
                "--list" => asked.list = true,
                // How wide a lane is depends on what its rows share; and what a row says is always shown.
                "--test-threads" => drop(arguments.next().context("--test-threads takes a number")?),
                "--nocapture" | "--no-capture" | "--show-output" => {}
                _ if argument.starts_with("--test-threads=") => {}
                _ if argument.starts_with('-') => bail!("a suite of rows knows --exact and --list, not {argument}"),
                _ => asked.names.push(argument),
            }
        }
        Ok(asked)
    }

    fn wants(&self, row: &Row) -> bool {
        let matches = |name: &String| if self.exact { row.name == name } else { row.name.contains(name.as_str()) };
        self.names.is_empty() || self.names.iter().any(matches)
    }
}

/// How a row ended.
struct Ended {
    row: Row,
    outcome: Result<(), String>,
    took: Duration,
}

/// Runs what was asked for; whether all of it passed.
fn run(asked: &Asked, mut lanes: Vec<Lane>) -> anyhow::Result<bool> {
    lanes.iter_mut().for_each(|lane| lane.rows.retain(|row| asked.wants(row)));
    let rows: Vec<Row> = lanes.iter().flat_map(|lane| lane.rows.iter().copied()).collect();
    if asked.list {
        rows.iter().for_each(|row| print(format_args!("{}: test", row.name)));
        return Ok(true);
    }
    let begin = Instant::now();
    let deep = suite::setting(false, true);
    let (now, later): (Vec<Row>, Vec<Row>) = rows.iter().copied().partition(|row| deep || row.deep.is_none());
    print(format_args!("\nrunning {} rows", now.len()));
    for row in &later {
        print(format_args!(
            "test {} ... ignored, as {} is not set: {}",
            row.name,
            suite::DEEP,
            row.deep.unwrap_or_default()
        ));
    }
    lanes.iter_mut().for_each(|lane| lane.rows.retain(|row| deep || row.deep.is_none()));
    let failures = run_lanes(&lanes, tell);
    for Ended { row, outcome, .. } in &failures {
        print(format_args!("\n---- {} ----\n{}", row.name, outcome.as_ref().err().map_or("", String::as_str)));
    }
    let (failed, took) = (failures.len(), begin.elapsed().as_secs_f32());
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let passed = now.len() - failed;
    print(format_args!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {} ignored; finished in {took:.1}s\n",
        later.len()
    ));
    Ok(failed == 0)
}

/// All lanes at the same time; tells of each end as it comes, and returns those of the rows that failed.
fn run_lanes(lanes: &[Lane], tell: impl Fn(&Ended)) -> Vec<Ended> {
    let (sender, ends) = mpsc::channel();
    let queues: Vec<_> = lanes.iter().map(|lane| Mutex::new(lane.rows.iter())).collect();
    std::thread::scope(|scope| {
        for (lane, queue) in lanes.iter().zip(&queues) {
            for _ in 0..lane.at_once {
                let sender = sender.clone();
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                scope.spawn(move || {
                    while let Some(row) = next() {
                        // The receiver lives as long as this scope.
                        let _ = sender.send(run_one(*row));
                    }
                });
            }
        }
        drop(sender);
        ends.into_iter().inspect(tell).filter(|ended| ended.outcome.is_err()).collect()
    })
}

fn run_one(row: Row) -> Ended {
    let begin = Instant::now();
    let outcome = match catch_unwind(row.run) {
        Ok(outcome) => outcome.map_err(|error| format!("{error:#}")),
        // The panic itself has told where and why.
        Err(_) => Err("it panicked".to_owned()),
    };
    Ended { row, outcome, took: begin.elapsed() }
}

fn tell(ended: &Ended) {
    let word = if ended.outcome.is_ok() { "ok" } else { "FAILED" };
    print(format_args!("test {} ... {word} ({:.1} s)", ended.row.name, ended.took.as_secs_f32()));
}

/// A line for the person who runs the suite.
fn print(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn asked(arguments: &[&str]) -> anyhow::Result<Asked> {
        Asked::parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    fn named(name: &'static str) -> Row {
        Row { name, run: || Ok(()), deep: None }
    }

    #[test]
    fn what_cargo_hands_to_every_suite_is_understood() {
        let all = asked(&["--test-threads=2", "--nocapture", "--test-threads", "4"]).unwrap();
        assert_eq!(all, Asked::default());
        assert!(asked(&["--shuffle"]).is_err_and(|error| error.to_string().ends_with("not --shuffle")));
    }

    #[test]
    fn names_choose_rows_as_they_do_elsewhere() {
        let part = asked(&["ends::"]).unwrap();
        assert!(part.wants(&named("ends::a")) && !part.wants(&named("pulls::a")));
        let exact = asked(&["--exact", "ends::a"]).unwrap();
        assert!(exact.wants(&named("ends::a")) && !exact.wants(&named("ends::ab")));
    }

    #[test]
    fn every_row_of_every_lane_runs_once_and_those_that_fail_are_told_apart() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let count = || {
            RUNS.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let row = |name, run| Row { name, run, deep: None };
        let lanes = [
            Lane { at_once: 3, rows: vec![row("a", count), row("b", || bail!("as it should")), row("c", count)] },
            Lane { at_once: 1, rows: vec![row("d", || panic!("as it should")), row("e", count)] },
        ];
        let mut failed: Vec<&str> = run_lanes(&lanes, |_| ()).iter().map(|ended| ended.row.name).collect();
        failed.sort_unstable();
        assert_eq!((failed, RUNS.load(Ordering::Relaxed)), (vec!["b", "d"], 3));
    }

    #[test]
    fn a_lane_is_never_wider_than_it_says() {
        static NOW: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let run = || {
            MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            NOW.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        };
        let rows = vec![Row { name: "a", run, deep: None }; 8];
        assert!(run_lanes(&[Lane { at_once: 2, rows }], |_| ()).is_empty());
        assert!((1..=2).contains(&MOST.load(Ordering::SeqCst)));
    }
}
