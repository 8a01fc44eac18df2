//! What becomes of a state: every action, one change each.

use ayatori_controller::{
    backend::kubernetes::leftovers,
    job::decide::is_released,
    ttl::decide::{Step as TtlStep, decide as decide_ttl},
};
use ayatori_crds::Job;

use super::{
    World,
    around::Around,
    cluster::Execution,
    controller::{Body, Next, Seen},
    event::Event,
    evidence, invariants,
    kept::Kept,
    objects::{REFUSED, instant},
    pod::Pod,
    server::Answer,
    state::{Action, Controller, JobVersion, Left, Request, Ruling, State, Stopping, Stores, Visit, index},
    weakened::Without,
};

/// What a controller is about to do, and what it has seen.
struct Intent {
    visit: Visit,
    around: Around,
    pod: Pod,
    next: Next,
}

impl World {
    /// The state after an action; None where it cannot happen or changes nothing.
    pub(super) fn after(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        self.apply(&mut state, action)?;
        if state == *before {
            return None;
        }
        state.broken = state.broken.or_else(|| invariants::broken_in(&state));
        evidence::forget(&mut state);
        if self.setting.controllers > 1 {
            state.controllers.sort_unstable();
        }
        state.late.sort_unstable();
        Some(state)
    }

    fn apply(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Step(which) => {
                let intent = self.intent(state, which)?;
                state.controllers[which].visit = self.take(state, &intent);
            }
            Action::Die(which) => {
                let controller = &mut state.controllers[which];
                (controller.visit, controller.expired) = (None, None);
            }
            Action::SendLate(which) => {
                spend(&mut state.left.late)?;
                let Intent { visit, next: Next::Send(body), .. } = self.intent(state, which)? else { return None };
                let JobVersion { job, newest } = visit.job;
                let never = matches!(body, Body::Job(patch) if patch.guarded && !newest);
                state.controllers[which].visit = None;
                state.late.push(Request { uid: index(&job), newest, body });
                return (!never).then_some(());
            }
            Action::BackendFails(which, carried_out) => {
                let Intent { visit, pod, next, .. } = self.intent(state, which)?;
                let JobVersion { job, newest } = visit.job;
                match next {
                    // Only who was released does not wait for a backend that is away.
                    _ if !is_released(&job) => return None,
                    Next::Send(Body::Job(_)) => return None,
                    Next::Send(body) if carried_out => {
                        self.carry_out(state, Request { uid: index(&job), newest, body }, job, pod);
                    }
                    Next::Send(_) => {}
                    Next::ReadExecution if !carried_out => {}
                    _ => return None,
                }
                state.controllers[which].visit = Some(Visit { backend_fails: true, ..visit });
            }
            Action::Land(which) => {
                let request = state.late.remove(which);
                // Nobody waits for the answer.
                let nobody = state.job.unwrap_or(self.made[0]);
                self.carry_out(state, request, nobody, Pod::None);
            }
            Action::Stop(which, stopping) => {
                spend(&mut state.left.stale)?;
                let job = Some(state.job.map(|job| JobVersion { job, newest: true }));
                let natives = Some(state.executions.map(|execution| execution.native));
                let pods = Some(state.executions.map(|execution| execution.pod));
                let around = Some(state.around);
                state.controllers[which].stores = match stopping {
                    Stopping::Jobs => Stores { job, ..Stores::default() },
                    Stopping::Natives => Stores { natives, ..Stores::default() },
                    Stopping::Pods => Stores { pods, ..Stores::default() },
                    Stopping::Around => Stores { around, ..Stores::default() },
                    Stopping::All => Stores { job, natives, pods, around },
                };
            }
            Action::Follow(which) => state.controllers[which].stores = Stores::default(),
            Action::Expire(which) => {
                let job = state.job?;
                let expired = self.is_expired(job, state.clock);
                state.controllers[which].expired = expired.then_some(JobVersion { job, newest: true });
            }
            Action::DeleteExpired(which) => self.delete_expired(state, which)?,
            Action::Sweep(uid) => self.sweep(state, uid)?,
            Action::Cluster(uid, event) => {
                if Event::MEDDLING.contains(&event) {
                    spend(&mut state.left.meddling)?;
                }
                if event == Event::FallSilent {
                    spend(&mut state.left.silences)?;
                }
                let needs_a_pod = event.makes_a_pod() && state.executions[uid].pod == Pod::None;
                if needs_a_pod && state.refuses {
                    return None;
                }
                let asked = (state.executions[uid], event, state.clock, state.job_of(uid).is_none());
                let mut after = self.events.of(asked, |(execution, event, clock, orphan)| {
                    self.objects.after(*execution, *event, *clock, *orphan)
                })?;
                if event.takes_the_pod() {
                    after.gone = after.gone.max(evidence::gone(state, uid));
                }
                if event == Event::Start {
                    state.broken = invariants::broken_by_start(state, uid, &after);
                }
                state.executions[uid] = after;
            }
            Action::Tick => {
                spend(&mut state.left.ticks)?;
                state.clock += 1;
            }
            Action::Rule(ruling) => {
                spend(&mut state.left.rulings)?;
                // Before it has a status, the Job says nothing that one could rule on.
                let job = state.job.filter(|job| job.status.is_some())?;
                self.write_job(state, Some(self.objects.ruled(job, ruling)));
            }
            Action::Change(around) => {
                spend(&mut state.left.changes)?;
                state.around = around;
            }
            Action::Refuse => {
                spend(&mut state.left.refusals)?;
                state.refuses = true;
            }
            Action::Relent => state.refuses = false,
            Action::Cancel => {
                spend(&mut state.left.cancels)?;
                let job = state.job.filter(|job| job.metadata.deletion_timestamp.is_none())?;
                self.write_job(state, Some(self.objects.cancelled(job)));
            }
            Action::Delete => {
                spend(&mut state.left.deletes)?;
                self.delete_job(state, None);
            }
            Action::Create => {
                spend(&mut state.left.creates)?;
                if state.job.is_some() {
                    return None;
                }
                self.write_job(state, Some(self.made[1]));
            }
        }
        Some(())
    }

    /// What a controller would do now. A visit begins with what its store shows.
    fn intent(&self, state: &State, which: usize) -> Option<Intent> {
        let begun = || {
            let job = state.stored_job(which)?;
            Some(Visit { job, job_is_live: false, observed: None, explanation: None, backend_fails: false })
        };
        let visit = state.controllers[which].visit.or_else(begun)?;
        let job = visit.job.job;
        let (native, pod) = state.stored_execution(which, index(&job));
        let (observation, observation_is_live) =
            visit.observed.unwrap_or_else(|| (self.observation(job, native, pod), false));
        let limit = native.and_then(|native| native.spec.active_deadline_seconds);
        let limit = limit.filter(|_| self.without == Some(Without::StopAtZero));
        let Visit { job_is_live, explanation, backend_fails, .. } = visit;
        let clock = state.clock;
        let around = state.stored_around(which);
        let seen = Seen {
            job,
            job_is_live,
            observation,
            observation_is_live,
            explanation,
            backend_fails,
            around,
            limit,
            clock,
        };
        Some(Intent { visit, around, pod, next: self.next(seen) })
    }

    /// Whether the first controller would wait for a time now.
    pub(super) fn waits(&self, state: &State) -> bool {
        self.intent(state, 0).is_some_and(|intent| intent.next == Next::Wait)
    }

    /// Takes the step. What the visit is afterwards; None where it has ended.
    fn take(&self, state: &mut State, intent: &Intent) -> Option<Visit> {
        let Intent { visit, around, pod, next } = *intent;
        let JobVersion { job, newest } = visit.job;
        let answer = match next {
            Next::Rest | Next::Wait => return None,
            Next::AskWhy => {
                let said = if state.refuses { REFUSED } else { "" };
                return Some(Visit { explanation: Some(said), ..visit });
            }
            Next::ReadJob => Answer::Job(state.job),
            Next::ReadExecution => self.read(state, index(&job), job),
            Next::Send(body) => self.carry_out(state, Request { uid: index(&job), newest, body }, job, pod),
        };
        // What a read shows is nobody's write.
        let after = if let Answer::Job(after) = answer { after.filter(|_| next != Next::ReadJob) } else { None };
        let creates = matches!(next, Next::Send(Body::Create(_)));
        state.broken = state.broken.or_else(|| around.broken_by(&job, creates, after.as_deref()));
        if let Some(after) = after {
            let looked = visit.observed.filter(|(_, live)| *live).map(|(seen, _)| seen);
            let looked = looked.as_deref();
            state.broken = state.broken.or_else(|| invariants::broken_by_ruling(&job, &after, looked));
            state.broken = state.broken.or_else(|| evidence::broken_by_stop(&job, &after, looked));
        }
        match answer {
            Answer::Job(Some(answered)) if index(&answered) == index(&job) && state.job == Some(answered) => {
                Some(Visit { job: JobVersion { job: answered, newest: true }, job_is_live: true, ..visit })
            }
            // Gone, or another Job of the same name, or an error.
            Answer::Job(_) | Answer::Failed => None,
            Answer::Execution(shown) => {
                let looked = next == Next::ReadExecution;
                Some(Visit { observed: Some((shown, looked)), job_is_live: visit.job_is_live && looked, ..visit })
            }
        }
    }

    fn is_expired(&self, job: Kept<Job>, clock: u8) -> bool {
        self.expired.of((job, clock), |_| matches!(decide_ttl(&job, instant(clock)), TtlStep::Delete(_)))
    }

    fn delete_expired(&self, state: &mut State, which: usize) -> Option<()> {
        let expired = state.controllers[which].expired.take()?;
        let now = state.job;
        let preconditions = Some(expired).filter(|_| self.without != Some(Without::TtlPreconditions));
        if self.delete_job(state, preconditions)
            && now.is_none_or(|job| index(&job) != index(&expired.job) || !self.is_expired(job, state.clock))
        {
            state.broken = Some("I9: a TTL deleted something else than the Job that was over");
        }
        Some(())
    }

    /// One step of the sweeper, for a native Job whose Job is gone by a live read.
    fn sweep(&self, state: &mut State, uid: usize) -> Option<()> {
        let execution = state.executions[uid];
        if execution.native.is_none() || state.job_of(uid).is_some() {
            return None;
        }
        state.executions[uid] = self.swept.of(execution, |execution| self.swept(*execution))?;
        Some(())
    }

    fn swept(&self, execution: Execution) -> Option<Execution> {
        let native = execution.native.filter(|native| leftovers::marks(native).is_some())?;
        match leftovers::decide(&native) {
            leftovers::Step::Wait => None,
            leftovers::Step::Delete => self.objects.delete_native(execution),
            leftovers::Step::Stop => {
                let id = native.metadata.uid.as_deref().unwrap_or_default();
                let stop = ayatori_controller::patch::set_by_uid(id, "/spec/activeDeadlineSeconds", &0.into());
                Some(execution.with(self.objects.patched_native(native, self.objects.patch(stop, false))))
            }
            leftovers::Step::Unprotect => {
                Some(execution.with(self.objects.patched_native(native, self.unprotecting(native)?)))
            }
        }
    }

    /// Every action that may be possible.
    pub(super) fn all_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for which in 0..self.setting.controllers {
            let Controller { stores, visit, expired } = state.controllers[which];
            actions.extend([Action::Step(which), Action::Expire(which)]);
            if visit.is_some() || expired.is_some() {
                actions.push(Action::Die(which));
            }
            if expired.is_some() {
                actions.push(Action::DeleteExpired(which));
            }
            if state.job.is_some_and(|job| is_released(&job)) {
                actions.extend([false, true].map(|carried_out| Action::BackendFails(which, carried_out)));
            }
            if state.left.late > 0 {
                actions.push(Action::SendLate(which));
            }
            if stores != Stores::default() {
                actions.push(Action::Follow(which));
            } else if state.left.stale > 0 {
                let kinds = [Stopping::Jobs, Stopping::Natives, Stopping::Pods, Stopping::All, Stopping::Around];
                let kinds = kinds.into_iter().filter(|kind| *kind != Stopping::Around || self.setting.changes > 0);
                actions.extend(kinds.map(|kind| Action::Stop(which, kind)));
            }
        }
        actions.extend((0..state.late.len()).map(Action::Land));
        let Left { meddling, silences, ticks, cancels, deletes, creates, rulings, refusals, changes, .. } = state.left;
        for uid in 0..state.executions.len() {
            if state.executions[uid].native.is_some() {
                let mut may =
                    |events: &[Event]| actions.extend(events.iter().map(|event| Action::Cluster(uid, *event)));
                may(&super::rest::CLUSTER);
                may(self.by_itself());
                may(if meddling > 0 { &Event::MEDDLING } else { &[] });
                may(if silences > 0 { &[Event::FallSilent] } else { &[] });
                actions.push(Action::Sweep(uid));
            }
        }
        actions.extend(Ruling::ALL.map(Action::Rule).into_iter().filter(|_| rulings > 0));
        if changes > 0 {
            actions.extend(state.around.changed().into_iter().map(Action::Change));
        }
        actions.extend(Some(Action::Relent).filter(|_| state.refuses));
        let people = [
            (ticks, Action::Tick),
            (cancels, Action::Cancel),
            (deletes, Action::Delete),
            (creates, Action::Create),
            (refusals, Action::Refuse),
        ];
        actions.extend(people.into_iter().filter(|(left, _)| *left > 0).map(|(_, action)| action));
    }
}

/// One less of what is left; None where nothing is.
fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}
