//! A small world around the production `decide`: two controllers without any leader, stale views, answers that are
//! lost, requests that land late, crashes, a user who cancels or deletes, an execution that may vanish.
//!
//! One Job UID; what needs two (a Job made anew under the same name) is tested where the requests are made.
//!
//! Random walks through it check the invariants of spec section 9 after every move. That the walks can find a fault
//! at all is shown by worlds that break one promise each.

use ayatori_crds::{
    JobState,
    conditions::{self, reason},
};
use proptest::prelude::*;

mod invariants;
mod world;

use world::{Broken, World};

fn walk(broken: Broken, actions: &[u16]) -> Result<World, String> {
    let mut world = World::new(broken);
    for action in actions {
        let before = world.jobs.len() - 1;
        world.go(*action);
        if let Some(violation) = world.violation(before) {
            return Err(violation);
        }
    }
    Ok(world)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_walk_breaks_an_invariant_and_every_one_comes_to_rest(actions in prop::collection::vec(any::<u16>(), 0..160)) {
        let mut world = walk(Broken::Nothing, &actions).map_err(TestCaseError::fail)?;
        world.settle();
        prop_assert_eq!(world.violation(0), None);
        if let Some(job) = world.job() {
            let state = JobState::of(job);
            // A cancel does not make the outcome of an execution known that is gone: an administrator rules (E4).
            let unknown = conditions::find(job.conditions(), conditions::SUCCEEDED)
                .is_some_and(|condition| condition.reason == reason::RESULT_UNKNOWN);
            let at_rest = state.is_terminal() || unknown;
            prop_assert!(at_rest && job.metadata.deletion_timestamp.is_none(), "stuck in {:?}: {:?}", state, job);
        }
        let versions = world.jobs.len();
        world.settle();
        prop_assert_eq!(world.jobs.len(), versions, "I12: an idle Job is written to");
    }
}

/// Each weakened world lets a walk break an invariant: the walks above are not blind.
#[test]
fn every_promise_is_needed() {
    for broken in [Broken::StatusPrecondition, Broken::ReleaseTest, Broken::ReleaseMark, Broken::Suspension] {
        let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
        let found = (0..4_000).any(|_| {
            let actions: Vec<u16> = (0..160)
                .map(|_| {
                    // xorshift64: fixed, so that a failure is the same everywhere.
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random.to_le_bytes()[..2].try_into().map(u16::from_le_bytes).unwrap()
                })
                .collect();
            walk(broken, &actions).is_err()
        });
        assert!(found, "{broken:?} was not noticed");
    }
}
