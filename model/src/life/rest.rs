//! What follows once nothing fails any more: whatever happened before, everything comes to rest, as it should, and then
//! nothing is written.

use std::collections::{HashMap, HashSet};

use ayatori_crds::{
    Job, JobState,
    conditions::{self, ACCEPTED, SUCCEEDED, reason},
    job::DesiredState,
};

use ayatori_controller::job::decide::is_released;

use super::{
    World,
    around::Around,
    cluster::{Execution, Gone, is_ours},
    event::Event,
    kept::Kept,
    objects::REFUSED,
    pod::{Exit, Pod},
    state::{Action, Controller, Ruling, State},
};

/// What the cluster will do in the end, if it can.
pub(super) const CLUSTER: [Event; 6] =
    [Event::Count, Event::Kill(Exit::Signal), Event::Kill(Exit::Zero), Event::Stopped, Event::Collect, Event::Notice];
/// What may take for ever. After the third: misfortune.
const BY_ITSELF: [Event; 6] =
    [Event::Start, Event::End(Exit::Zero), Event::Answer, Event::End(Exit::One), Event::Stick, Event::Forget];

/// Ticks after which waiting for a time counts as rest: whatever is waited for here takes one.
const LONG_ENOUGH: u8 = 5;

/// Steps that one visit may take (as in production).
const STEPS_A_VISIT: usize = 16;

/// What is left of a state without its faults: visits have ended, stores follow, what was late is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Core {
    job: Option<Kept<Job>>,
    executions: [Execution; 2],
    clock: u8,
    refuses: bool,
    around: Around,
}

impl Core {
    fn of(state: &State) -> Self {
        let State { job, executions, clock, refuses, around, .. } = *state;
        Self { job, executions, clock, refuses, around }
    }
}

/// What is known of cores: what is wrong with what follows, if anything.
pub(super) type Verdicts = HashMap<Core, Option<&'static str>>;

impl World {
    /// What may take for ever.
    pub(super) fn by_itself(&self) -> &'static [Event] {
        if self.setting.misfortune { &BY_ITSELF } else { &BY_ITSELF[..3] }
    }

    /// What is wrong with what follows from a state, once nothing fails any more.
    pub(super) fn wrong_in_the_end(&self, state: &State) -> Option<&'static str> {
        let core = Core::of(state);
        if let Some(verdict) = self.verdicts.read().unwrap().get(&core) {
            return *verdict;
        }
        let mut found = HashMap::new();
        let wrong = self.follow(core, &mut HashSet::new(), &mut found);
        self.verdicts.write().unwrap().extend(found);
        wrong
    }

    fn follow(&self, core: Core, path: &mut HashSet<Core>, found: &mut Verdicts) -> Option<&'static str> {
        let known = self.verdicts.read().unwrap().get(&core).copied();
        if let Some(verdict) = known.or_else(|| found.get(&core).copied()) {
            return verdict;
        }
        if !path.insert(core) {
            return Some("it goes round in a circle");
        }
        let wrong = self.followed(core, path, found);
        path.remove(&core);
        found.insert(core, wrong);
        wrong
    }

    fn followed(&self, core: Core, path: &mut HashSet<Core>, found: &mut Verdicts) -> Option<&'static str> {
        let state = self.calm(core);
        let mut certain = match self.certain(&state) {
            Ok(certain) => certain,
            Err(wrong) => return Some(wrong),
        };
        if certain.is_empty() {
            if let Some(wrong) = self.wrong_at_rest(&state) {
                return Some(wrong);
            }
            certain = self.ruled(&state);
        }
        let mut by_itself = self.cluster(&state, self.by_itself());
        by_itself.extend(self.after(&state, Action::Relent));
        by_itself.extend(state.around.mended().into_iter().map(|around| State { around, ..state.clone() }));
        certain
            .into_iter()
            .chain(by_itself)
            .find_map(|next| next.broken.or_else(|| self.follow(Core::of(&next), path, found)))
    }

    /// The state of a core, with nothing left to go wrong.
    fn calm(&self, core: Core) -> State {
        State {
            job: core.job,
            executions: core.executions,
            controllers: [Controller::default(); 2],
            late: vec![],
            clock: core.clock,
            refuses: core.refuses,
            around: core.around,
            left: super::Setting::CALM.left(),
            broken: None,
        }
    }

    /// What an administrator can do about a state in which nothing more happens for certain.
    fn ruled(&self, state: &State) -> Vec<State> {
        let Some(job) = state.job.filter(|_| self.setting.rulings > 0) else { return vec![] };
        let helps = |ruling: Ruling| match ruling {
            Ruling::BackendLost => conditions::says_unknown(job.conditions()),
            Ruling::Released => job.metadata.deletion_timestamp.is_some(),
        };
        let rule = |ruling| {
            let mut open = state.clone();
            open.left.rulings = 1;
            self.after(&open, Action::Rule(ruling))
        };
        Ruling::ALL.into_iter().filter(|ruling| helps(*ruling)).filter_map(rule).collect()
    }

    fn cluster(&self, state: &State, events: &[Event]) -> Vec<State> {
        let both =
            (0..state.executions.len()).flat_map(|uid| events.iter().map(move |event| Action::Cluster(uid, *event)));
        both.filter_map(|action| self.after(state, action)).collect()
    }

    /// What certainly follows, in every order.
    fn certain(&self, state: &State) -> Result<Vec<State>, &'static str> {
        let mut all = self.cluster(state, &CLUSTER);
        all.extend((0..state.executions.len()).filter_map(|uid| self.after(state, Action::Sweep(uid))));
        let (visited, waits) = self.visited(state)?;
        all.extend((visited != *state).then_some(visited));
        if let Some(expired) = self.after(state, Action::Expire(0)) {
            let which = expired.controllers.iter().position(|controller| controller.expired.is_some());
            all.extend(which.and_then(|which| self.after(&expired, Action::DeleteExpired(which))));
        }
        let waits = waits && state.clock < self.setting.ticks + LONG_ENOUGH;
        if all.is_empty() && (waits || self.waits_for_its_ttl(state)) {
            let mut later = state.clone();
            later.clock += 1;
            all.push(later);
        }
        Ok(all)
    }

    fn waits_for_its_ttl(&self, state: &State) -> bool {
        use ayatori_controller::ttl::decide::{Step, decide};
        state.job.is_some_and(|job| matches!(decide(&job, super::objects::instant(state.clock)), Step::WaitUntil(_)))
    }

    /// The state after one whole visit in which all goes well, and whether it ended by waiting for a time.
    fn visited(&self, state: &State) -> Result<(State, bool), &'static str> {
        let mut state = state.clone();
        for _ in 0..STEPS_A_VISIT {
            let waits = self.waits(&state);
            let Some(next) = self.after(&state, Action::Step(0)) else {
                state.controllers = [Controller::default(); 2];
                return Ok((state, waits));
            };
            state = next;
            // Where there are two, the one that is in a visit is last.
            if state.controllers[0].visit.is_none() {
                state.controllers.reverse();
            }
            if state.controllers[0].visit.is_none() {
                return Ok((state, waits));
            }
        }
        Err("a visit without an end")
    }

    /// What is wrong with a state in which nothing more happens for certain.
    fn wrong_at_rest(&self, state: &State) -> Option<&'static str> {
        let Some(job) = state.job else {
            // It is stopped; whether it heeds that cannot be seen.
            let waits = |execution: &Execution| execution.is_silent() && execution.given_up;
            let leftover = state
                .executions
                .iter()
                .any(|execution| execution.native.is_some_and(|native| is_ours(&native)) && !waits(execution));
            return leftover.then_some("what a Job left behind is not swept");
        };
        let succeeded = conditions::find(job.conditions(), SUCCEEDED);
        let is_unknown = succeeded.is_some_and(|c| c.reason == reason::RESULT_UNKNOWN && !c.message.is_empty());
        let execution = state.executions[super::state::index(&job)];
        let cancelled = job.spec.desired_state == DesiredState::Cancelled;
        let may_go_on = execution.is_silent() || execution.gone != Gone::Not;
        let foreign = execution.native.is_some_and(|native| !is_ours(&native));
        match JobState::of(&job) {
            _ if is_released(&job) => Some("a Job that was released does not go"),
            state if !state.is_terminal() && is_unknown && Ruling::BackendLost.is_on(&job) => {
                Some("a ruling is not carried out")
            }
            // Nothing proves an end on a node that does not answer, or of what went without a word before our stop: it
            // is for an administrator to say (F3).
            JobState::Deleting | JobState::Cancelling if is_unknown && may_go_on => None,
            JobState::Deleting => Some("a deletion does not complete"),
            state if state.is_terminal() => {
                job.spec.ttl_seconds_after_finished.map(|_| "a Job that is over outlives its TTL")
            }
            _ if is_unknown && matches!(execution.pod, Pod::Running { .. }) => Some("a Job that runs stays in doubt"),
            _ if is_unknown && !cancelled => None,
            _ if execution.is_silent() => Some("nothing is said of a node that does not answer"),
            // Whoever it is for has to say so.
            _ if state.around.is_of_another() && !conditions::is_true(job.conditions(), ACCEPTED) => None,
            _ if cancelled => Some("a cancellation does not complete"),
            _ if state.refuses
                && state.around == Around::CALM
                && execution.native.is_none_or(|_| execution.may_get_a_pod() || execution.is_prepared()) =>
            {
                let told = succeeded.is_some_and(|c| c.message.contains(REFUSED));
                (!told).then_some("nobody is told what the cluster refuses")
            }
            _ if execution.may_start() || execution.is_running() || foreign => None,
            _ => state.around.wrong_for(&job),
        }
    }
}
