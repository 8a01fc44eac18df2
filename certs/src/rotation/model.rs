//! Several replicas that carry out what is decided, against a world that does its worst: views that are acted upon late,
//! writes that are lost, a Secret that people delete or break, clocks that are set, API servers that learn of a caBundle
//! seconds after it was written. Certificates are made up here: the decision knows only their times and who is who.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::testing::now as beginning;

const AUTHORITY: SignedDuration = SignedDuration::from_secs(600);
const LEAF: SignedDuration = SignedDuration::from_secs(120);
const SETTLE: SignedDuration = SignedDuration::from_secs(10);
/// How long an API server may go on with a former caBundle, and how soon a replica that says that it is ready is asked:
/// less than [`SETTLE`] by more than what a clock is set at once ([`CLOCK_STEP`]).
const LAG: SignedDuration = SignedDuration::from_secs(5);
/// In seconds.
const CLOCK_STEP: i64 = 2;
/// What the process takes for one look: see `STEPS_A_LOOK` there.
const STEPS: usize = 8;

struct World {
    now: Timestamp,
    made: u64,
    /// With its resourceVersion.
    secret: Option<(u64, Stored)>,
    configurations: Vec<Published>,
    replicas: Vec<Replica>,
}

/// A webhook configuration with all it ever said.
struct Published {
    name: &'static str,
    /// Since when, and what; never empty. Its length is the resourceVersion.
    history: Vec<(Timestamp, Bundle)>,
}

#[derive(Clone, Default)]
struct Replica {
    /// What its clock is ahead.
    ahead: SignedDuration,
    served: Option<Served>,
    /// Since when requests reach it.
    asked_since: Timestamp,
    trusted: Option<Trusted>,
    look: Option<Look>,
}

/// What was seen, for a step that may come later.
#[derive(Clone)]
struct Look {
    view: View,
    at: Timestamp,
    secret: Option<u64>,
    configurations: Vec<usize>,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Lost,
}

impl World {
    fn new(replicas: usize) -> Self {
        let published = |name| Published { name, history: vec![(beginning(), Bundle::default())] };
        Self {
            now: beginning(),
            made: 0,
            secret: None,
            configurations: vec![published("mutating"), published("validating")],
            replicas: vec![Replica::default(); replicas],
        }
    }

    fn id(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn clock(&self, replica: usize) -> Timestamp {
        self.now + self.replicas[replica].ahead
    }

    fn store(&mut self, stored: Stored) {
        self.secret = Some((self.id(), stored));
    }

    /// Reads everything, as a look of the process does.
    fn look(&mut self, replica: usize) {
        let at = self.clock(replica);
        let stored = self.secret.as_ref().map_or(Stored::Absent, |(_, stored)| stored.clone());
        let configurations: Vec<Configuration> = self.configurations.iter().map(Published::newest).collect();
        let held = &mut self.replicas[replica];
        held.trusted = Trusted::after(held.trusted.take(), &stored, &configurations, at);
        let view = View { stored, served: held.served.clone(), configurations, trusted: held.trusted.clone() };
        held.look = Some(Look {
            view,
            at,
            secret: self.secret.as_ref().map(|(version, _)| *version),
            configurations: self.configurations.iter().map(|published| published.history.len()).collect(),
        });
    }

    /// Takes the step that follows from the last look, however long ago that was. True where there was something to do.
    fn act(&mut self, replica: usize, fate: Fate) -> bool {
        let Some(look) = self.replicas[replica].look.take() else { return false };
        match decide(&look.view, SETTLE, look.at) {
            Step::WaitUntil(until) => {
                assert!(until > look.at, "a wait lies in the future");
                return false;
            }
            Step::CreateAuthority | Step::ReplaceAuthority(_) => {
                let unchanged = self.secret.as_ref().map(|(version, _)| *version) == look.secret;
                if fate == Fate::Done && unchanged {
                    let id = self.id();
                    let times = Validity::starting(self.clock(replica), AUTHORITY);
                    self.store(Stored::Present(Certificate::made_up(id, times)));
                }
            }
            Step::PublishBundle(publications) => {
                for Publication { configuration, ca_bundle } in publications {
                    let index = self.configurations.iter().position(|held| held.name == configuration).unwrap();
                    let published = &mut self.configurations[index];
                    if fate == Fate::Done && published.history.len() == look.configurations[index] {
                        published.history.push((self.now, ca_bundle));
                    }
                }
            }
            Step::IssueLeaf(_) => {
                let Stored::Present(signer) = look.view.stored else { panic!("signed by nobody") };
                let mut times = Validity::starting(look.at, LEAF);
                times.not_before = times.not_before.max(signer.validity().not_before);
                times.not_after = times.not_after.min(signer.validity().not_after);
                // Its readiness goes by its own clock.
                let now = self.clock(replica);
                let until = self.now + LAG;
                let held = &mut self.replicas[replica];
                if !held.served.as_ref().is_some_and(|leaf| leaf.validity.holds(now)) {
                    // It was not ready, and has to say so first.
                    held.asked_since = until;
                }
                held.served = Some(Served { validity: times, signer });
            }
        }
        true
    }

    /// A whole look of the process: steps until nothing is due. True where there was something to do.
    fn visit(&mut self, replica: usize, mut fate: Fate) -> bool {
        for step in 0..STEPS {
            self.look(replica);
            if !self.act(replica, std::mem::replace(&mut fate, Fate::Done)) {
                return step > 0;
            }
        }
        panic!("no rest");
    }

    fn restart(&mut self, replica: usize) {
        self.replicas[replica] = Replica { ahead: self.replicas[replica].ahead, ..Replica::default() };
    }

    /// Whoever is asked shows a leaf that every API server trusts, with whatever caBundle it still goes.
    fn check(&self) {
        for replica in &self.replicas {
            let Some(leaf) = &replica.served else { continue };
            if self.now < replica.asked_since || !leaf.validity.holds(self.now) {
                continue;
            }
            assert!(leaf.signer.validity().holds(self.now), "its CA does not hold");
            for published in &self.configurations {
                for bundle in published.in_use(self.now) {
                    assert!(bundle.holds(&leaf.signer), "{} does not trust what is served", published.name);
                }
            }
        }
    }

    /// Whether all serve a leaf of the stored CA, and every caBundle has it.
    fn is_settled(&self) -> bool {
        let Some((_, Stored::Present(ca))) = &self.secret else { return false };
        let served = |leaf: &Served| leaf.validity.holds(self.now) && leaf.signer == *ca;
        self.replicas.iter().all(|replica| replica.served.as_ref().is_some_and(served))
            && self.configurations.iter().all(|published| published.newest().holds(ca))
    }
}

impl Published {
    fn newest(&self) -> Configuration {
        let (_, bundle) = self.history.last().unwrap();
        Configuration { name: self.name.to_owned(), bundles: vec![bundle.clone()] }
    }

    /// What some API server may still go by: the newest, and each that was the newest less than [`LAG`] ago.
    fn in_use(&self, now: Timestamp) -> impl Iterator<Item = &Bundle> {
        let until = [Timestamp::MAX].into_iter().chain(self.history.iter().rev().map(|(since, _)| *since));
        let newest_first = self.history.iter().rev().zip(until);
        newest_first.take_while(move |(_, until)| *until > now - LAG).map(|((_, bundle), _)| bundle)
    }
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    Look(Index),
    Act(Index, Fate),
    Elapse(i64),
    SetClock(Index, i64),
    Restart(Index),
    DeleteSecret,
    BreakSecret,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Done), 1 => Just(Fate::Lost)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => any::<Index>().prop_map(Event::Look),
        8 => (any::<Index>(), fate()).prop_map(|(replica, fate)| Event::Act(replica, fate)),
        6 => (1..40_i64).prop_map(Event::Elapse),
        1 => (any::<Index>(), -CLOCK_STEP..=CLOCK_STEP).prop_map(|(replica, ahead)| Event::SetClock(replica, ahead)),
        1 => any::<Index>().prop_map(Event::Restart),
        1 => Just(Event::DeleteSecret),
        1 => Just(Event::BreakSecret),
    ]
}

fn happen(world: &mut World, event: &Event) {
    let chosen = |index: &Index| index.index(world.replicas.len());
    match event {
        Event::Look(replica) => world.look(chosen(replica)),
        Event::Act(replica, fate) => {
            world.act(chosen(replica), *fate);
        }
        Event::Elapse(seconds) => {
            for second in 1..=*seconds {
                world.now += SignedDuration::from_secs(1);
                // What is asked and what is in use changes within that time after a step, and then no more.
                if second <= LAG.as_secs() + 1 || second == *seconds {
                    world.check();
                }
            }
        }
        Event::SetClock(replica, ahead) => {
            let replica = chosen(replica);
            world.replicas[replica].ahead = SignedDuration::from_secs(*ahead);
        }
        Event::Restart(replica) => world.restart(chosen(replica)),
        Event::DeleteSecret => world.secret = None,
        Event::BreakSecret => world.store(Stored::Unreadable("broken".to_owned())),
    }
    world.check();
}

/// Everybody looks, and time goes on until the next look.
fn round(world: &mut World, fates: &[Fate]) -> bool {
    let mut busy = false;
    for (replica, fate) in (0..world.replicas.len()).zip(fates.iter().cycle()) {
        busy |= world.visit(replica, *fate);
        world.check();
    }
    happen(world, &Event::Elapse(SETTLE.as_secs()));
    busy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Looks and steps come in any order and at any time; then the faults end.
    #[test]
    fn whatever_happens_nobody_serves_what_is_not_trusted_and_afterwards_all_is_in_order(
        replicas in 1..4_usize,
        events in prop::collection::vec(event(), 1..160),
    ) {
        let mut world = World::new(replicas);
        for event in &events {
            happen(&mut world, event);
        }
        // At some time, and not for ever: a CA may be due in between.
        let settled = (0..4).any(|_| {
            round(&mut world, &[Fate::Done]);
            world.is_settled()
        });
        prop_assert!(settled, "no rest at {}", world.now);
    }
}

proptest! {
    // Each is half an hour of looks.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Everybody looks when he should; writes are lost, the Secret is deleted now and then, replicas come and go.
    #[test]
    fn with_regular_looks_nobody_ever_serves_what_has_expired_and_the_bundle_does_not_grow(
        replicas in 1..4_usize,
        rounds in prop::collection::vec(
            (prop::collection::vec(fate(), 3), 0..12_u8, any::<Index>()), 180),
    ) {
        let mut world = World::new(replicas);
        round(&mut world, &[Fate::Done]);
        // A rotation takes three looks when a write is lost; one that begins while it goes on is another matter.
        let mut quiet = 0;
        for (fates, event, replica) in &rounds {
            quiet += 1;
            match event {
                0 if quiet > 6 => {
                    (world.secret, quiet) = (None, 0);
                }
                1 => world.restart(replica.index(replicas)),
                _ => {}
            }
            round(&mut world, fates);
            for replica in &world.replicas {
                // A look before, all who serve have seen the last one.
                let leaf = replica.served.as_ref().map(|leaf| leaf.validity);
                prop_assert!(leaf.is_none_or(|validity| validity.holds(world.now)), "expired at {}", world.now);
            }
            for published in &world.configurations {
                // At most one CA in seven looks, each trusted for 66 looks; it goes when the next one comes.
                let held = published.history.last().unwrap().1.len();
                prop_assert!(held <= 66 / 7 + 2, "{held} are trusted");
            }
        }
    }
}

#[test]
fn where_nothing_happens_certificates_are_renewed_in_turn_and_between_them_nothing_is_written() {
    let mut world = World::new(2);
    let (mut busy, mut authorities) = (0, std::collections::BTreeSet::new());
    let rounds = 6 * AUTHORITY.as_secs() / SETTLE.as_secs();
    for _ in 0..rounds {
        busy += i64::from(round(&mut world, &[Fate::Done]));
        let Some((version, _)) = &world.secret else { panic!("no Secret") };
        authorities.insert(*version);
    }
    assert!(world.is_settled());
    // Due 380 s after its making: two thirds of 660 s, the first 60 of which lie in the past.
    assert_eq!(authorities.len(), 10, "CAs in six lives");
    assert!(busy < rounds / 4, "{busy} of {rounds} looks had something to do");
    assert!(world.configurations.iter().all(|published| published.history.last().unwrap().1.len() <= 3));
}
