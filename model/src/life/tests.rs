//! How much of the model is checked. In CI each setting is small enough to be seen whole; `AYATORI_DEEP=1` adds the large
//! ones.

use std::{collections::BTreeSet, io::Write, time::Instant};

use ayatori_crds::conditions::{self, SUCCEEDED};
use stateright::{Checker, HasDiscoveries, Model};

use super::{Setting, World, weakened::Without};

/// Set to also check what takes minutes and gigabytes.
const DEEP: &str = "AYATORI_DEEP";

/// States that a check may generate. A small one stays below a tenth of it; to reach it is a failure, as then not all
/// were seen.
const CAP: usize = 20_000_000;
/// The same for the large ones: 200 million generated states are about 35 million different ones, and 7 GB.
const DEEP_CAP: usize = 200_000_000;

/// Different states that the large ones must have in all.
const MANY: usize = 10_000_000;

/// What goes wrong, and the way there.
struct Wrong {
    what: String,
    steps: Vec<String>,
}

/// Checks a setting state by state, up to the first thing that goes wrong. `met` are the verdicts and doubts that must
/// have been among the states where nothing does. Answers how many states there are.
fn check(name: &str, setting: Setting, without: Option<Without>, cap: usize, met: &[&str]) -> Result<usize, Wrong> {
    let begin = Instant::now();
    let checker = World::new(setting, without).checker().threads(2).target_state_count(cap);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let world = checker.model();
    let wrong = checker.discoveries().into_values().next().map(|path| {
        let steps = path.clone().into_actions().iter().map(|action| format!("{action:?}")).collect();
        let last = path.into_states().pop().unwrap();
        let what = last.broken.or_else(|| world.wrong_in_the_end(&last)).unwrap_or("nothing, when asked again");
        Wrong { what: what.to_owned(), steps }
    });
    let found = wrong.as_ref().map_or_else(
        || "nothing goes wrong".to_owned(),
        |wrong| format!("{}, after {} steps", wrong.what, wrong.steps.len()),
    );
    // Not by println!, which the harness keeps to itself.
    let _ = writeln!(
        std::io::stderr(),
        "model: {name}: {} states ({} generated), depth {}, {} versions of Jobs, {} decisions, {:.1} s: {found}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        world.objects.jobs.len(),
        world.decisions.len(),
        begin.elapsed().as_secs_f32(),
    );
    if wrong.is_none() {
        assert!(checker.state_count() < cap, "{name}: more than {cap} states: not all were seen");
        let said: BTreeSet<String> = world
            .objects
            .jobs
            .map(|job| conditions::find(job.conditions(), SUCCEEDED).map(|condition| condition.reason.clone()));
        for reason in met {
            assert!(said.contains(*reason), "{name}: no Job was ever {reason}, only {said:?}");
        }
    }
    wrong.map_or_else(|| Ok(checker.unique_state_count()), Err)
}

fn holds(name: &str, setting: Setting, cap: usize, met: &[&str]) -> usize {
    check(name, setting, None, cap, met)
        .unwrap_or_else(|Wrong { what, steps }| panic!("{name}: {what}, after\n{}", steps.join("\n")))
}

const ONE: Setting = Setting { cancels: 1, deletes: 1, ..Setting::CALM };
const TWO: Setting = Setting { controllers: 2, ..ONE };

#[test]
fn one_controller_survives_misfortune_and_meddling() {
    let setting = Setting { meddling: 1, misfortune: true, foreign: true, ..ONE };
    holds("one, meddling", setting, CAP, &["Completed", "ProcessFailed", "Cancelled", "ResultUnknown"]);
    let slowly = Setting { ticks: 1, meddling: 1, deletes: 0, ..ONE };
    holds("one, meddling and time", slowly, CAP, &["Completed", "Cancelled", "ResultUnknown"]);
}

#[test]
fn one_controller_survives_time_and_a_second_uid() {
    let setting = Setting { ticks: 1, deadline: true, ttl: true, creates: 1, cancels: 0, ..ONE };
    holds("one, time", setting, CAP, &["Completed", "Cancelled", "DeadlineExceeded"]);
}

#[test]
fn two_controllers_survive_each_other_and_a_second_uid() {
    holds("two, anew", Setting { creates: 1, ..TWO }, CAP, &["Completed", "Cancelled"]);
}

#[test]
fn two_controllers_survive_stores_that_stop() {
    holds("two, stale", Setting { stale: 1, deletes: 0, ..TWO }, CAP, &["Completed", "Cancelled"]);
}

#[test]
fn two_controllers_survive_late_requests() {
    holds("two, late", Setting { late: 1, ..TWO }, CAP, &["Completed", "Cancelled"]);
}

#[test]
fn two_controllers_survive_meddling() {
    let setting = Setting { meddling: 1, deletes: 0, ..TWO };
    holds("two, meddling", setting, CAP, &["Completed", "Cancelled", "ResultUnknown"]);
}

#[test]
fn one_controller_survives_silent_nodes() {
    let silent = Setting { silences: 1, ticks: 1, deletes: 0, ..ONE };
    let stuck = Setting { misfortune: true, ..silent };
    holds("one, silence", stuck, CAP, &["Completed", "ProcessFailed", "Cancelled", "ImagePullFailed", "ResultUnknown"]);
    let late = Setting { ticks: 2, deadline: true, cancels: 0, ..silent };
    holds("one, silence and a deadline", late, CAP, &["Completed", "DeadlineExceeded", "ResultUnknown"]);
}

#[test]
fn one_controller_survives_nodes_that_are_given_up() {
    let setting = Setting { silences: 1, meddling: 1, ..ONE };
    holds("one, given up", setting, CAP, &["Completed", "Cancelled", "ResultUnknown"]);
    holds("one, given up and stale", Setting { stale: 1, deletes: 0, ..setting }, CAP, &["Cancelled", "ResultUnknown"]);
    let ruled = Setting { rulings: 1, cancels: 0, ..setting };
    holds("one, given up and ruled", ruled, CAP, &["Completed", "ResultUnknown", "BackendLost", "Released"]);
}

#[test]
fn two_controllers_survive_nodes_that_are_given_up() {
    let setting = Setting { silences: 1, meddling: 1, deletes: 0, ..TWO };
    holds("two, given up", setting, CAP, &["Completed", "Cancelled", "ResultUnknown"]);
}

#[test]
fn two_controllers_survive_silent_nodes() {
    let setting = Setting { silences: 1, ticks: 1, deletes: 0, ..TWO };
    holds("two, silence", setting, CAP, &["Completed", "Cancelled", "ResultUnknown"]);
}

#[test]
fn one_controller_carries_rulings_out() {
    let met = ["Completed", "Cancelled", "ResultUnknown", "BackendLost", "Released"];
    holds("one, rulings", Setting { rulings: 1, meddling: 1, ..ONE }, CAP, &met);
    let silent = Setting { rulings: 1, silences: 1, ticks: 1, cancels: 0, ..ONE };
    holds("one, rulings on silence", silent, CAP, &met);
    let stuck = Setting { rulings: 1, meddling: 1, misfortune: true, cancels: 0, deletes: 0, ..ONE };
    holds("one, rulings on what waits", stuck, CAP, &["Completed", "ProcessFailed", "ResultUnknown", "BackendLost"]);
}

#[test]
fn two_controllers_carry_rulings_out() {
    let ruled = Setting { rulings: 1, cancels: 0, ..TWO };
    holds("two, released", ruled, CAP, &["Completed", "Cancelled", "Released"]);
    let lost = Setting { meddling: 1, deletes: 0, ..ruled };
    holds("two, lost", lost, CAP, &["Completed", "ResultUnknown", "BackendLost"]);
}

#[test]
fn one_controller_survives_refusals() {
    let setting = Setting { refusals: 2, ticks: 1, misfortune: true, deletes: 0, ..ONE };
    holds("one, refused", setting, CAP, &["Completed", "ProcessFailed", "Cancelled"]);
}

#[test]
fn two_controllers_survive_refusals() {
    holds("two, refused", Setting { refusals: 1, ..TWO }, CAP, &["Completed", "Cancelled"]);
}

#[test]
fn one_controller_survives_changes_of_the_class() {
    holds("one, class", Setting { changes: 2, ..ONE }, CAP, &["Completed", "Cancelled", "Pending"]);
}

#[test]
fn two_controllers_survive_changes_of_the_class() {
    let setting = Setting { changes: 1, stale: 1, cancels: 0, deletes: 0, ..TWO };
    holds("two, class", setting, CAP, &["Completed", "Pending"]);
}

#[test]
fn everything_at_once_when_asked_for() {
    if std::env::var_os(DEEP).is_none_or(|value| value != "1") {
        return;
    }
    let all = Setting { stale: 1, late: 1, meddling: 1, misfortune: true, foreign: true, ..ONE };
    let met = ["Completed", "Cancelled", "ResultUnknown", "BackendLost", "Released"];
    let seen = [
        holds("deep: one, all faults", all, DEEP_CAP, &met[..3]),
        holds("deep: two, late and meddling", Setting { late: 1, meddling: 1, ..TWO }, DEEP_CAP, &met[..3]),
        holds("deep: two, silence", Setting { silences: 1, ticks: 1, ..TWO }, DEEP_CAP, &met[..3]),
        holds("deep: two, given up", Setting { silences: 1, meddling: 1, ..TWO }, DEEP_CAP, &met[..3]),
        holds("deep: two, rulings", Setting { rulings: 1, meddling: 1, ..TWO }, DEEP_CAP, &met),
        holds("deep: two, stale and late", Setting { stale: 1, late: 1, ..TWO }, DEEP_CAP, &met[..2]),
    ];
    let all: usize = seen.iter().sum();
    assert!(all >= MANY, "only {all} states in all");
}

/// Where each rule is needed.
fn needed(without: Without) -> Setting {
    match without {
        Without::StatusVersion => TWO,
        Without::FinalizerPreconditions => Setting { creates: 1, ..TWO },
        Without::TtlPreconditions => Setting { ticks: 1, ttl: true, creates: 1, cancels: 0, ..TWO },
        Without::ReleaseUid | Without::ReleaseMark => Setting { meddling: 1, ..TWO },
        Without::Suspension | Without::StopPrepared | Without::StopAtZero => Setting { late: 1, ..ONE },
        Without::RecordFirst => ONE,
        Without::NeverAgain => Setting { meddling: 1, ..ONE },
        Without::Ownership => Setting { foreign: true, ..ONE },
        Without::FinalizerFirst | Without::VerdictFirst => ONE,
        Without::StopProof => ONE,
        Without::LiveAbsence => Setting { stale: 1, deletes: 0, ..TWO },
        Without::Evidence => Setting { stale: 1, cancels: 0, deletes: 0, ..TWO },
        Without::LifeInSilence => Setting { silences: 1, ticks: 1, deletes: 0, ..ONE },
        Without::DoubtBeforeStop | Without::DoubtRemembered => Setting { silences: 1, meddling: 1, deletes: 0, ..ONE },
        Without::LookBeforeStop => Setting { stale: 1, silences: 1, meddling: 1, deletes: 0, ..ONE },
        Without::DoubtBeforeRuling => Setting { rulings: 1, cancels: 0, deletes: 0, ..ONE },
        Without::LookBeforeRuling | Without::EvidenceBeforeRuling => {
            Setting { rulings: 1, silences: 1, ticks: 1, cancels: 0, deletes: 0, ..ONE }
        }
        Without::DeletionBeforeRelease => Setting { rulings: 1, deletes: 0, ..ONE },
        Without::RefusedAgain | Without::RefusalTold | Without::WhyTold => Setting { refusals: 1, deletes: 0, ..ONE },
        Without::ClassUid | Without::SettingsUid | Without::Readiness | Without::AcceptedClass => {
            Setting { changes: 1, cancels: 0, deletes: 0, ..ONE }
        }
        Without::EndAfterStop | Without::EndBeforeStop | Without::CodeOfAStop => Setting { deletes: 0, ..ONE },
        Without::LossIsNoFailure | Without::LossIsNoSuccess | Without::LossIsNoRejection => {
            Setting { meddling: 1, cancels: 0, deletes: 0, ..ONE }
        }
        Without::FailureBeforeGivingUp => Setting { ticks: 1, cancels: 0, deletes: 0, ..ONE },
        Without::WholeDeadline => Setting { ticks: 1, deadline: true, cancels: 0, deletes: 0, ..ONE },
        Without::StartWhileDeleted => {
            Setting { rulings: 1, meddling: 1, misfortune: true, cancels: 0, deletes: 0, ..ONE }
        }
        Without::DoubtInSilence => Setting { silences: 1, cancels: 0, deletes: 0, ..ONE },
        Without::HeardAgain => Setting { silences: 1, ticks: 1, cancels: 0, deletes: 0, ..ONE },
    }
}

/// Which promise breaks first without a rule depends on which thread gets there first; that one does, does not.
#[test]
fn every_rule_is_needed() {
    let idle: Vec<_> = Without::ALL
        .into_iter()
        .filter(|without| check(&format!("without {without:?}"), needed(*without), Some(*without), CAP, &[]).is_ok())
        .collect();
    assert!(idle.is_empty(), "nothing goes wrong without {idle:?}");
}
