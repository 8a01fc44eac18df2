//! The API server: it carries a request out under its preconditions, and answers.

use ayatori_crds::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    World, cluster,
    controller::{Body, REFERENCE_TYPE},
    evidence, invariants,
    kept::Kept,
    objects::{Patch, REFUSED, instant},
    pod::Pod,
    state::{Controller, JobVersion, Request, State, index, native_uid},
    told::is_over,
    weakened::Without,
};
use ayatori_controller::{
    backend::{
        Observation,
        kubernetes::{objects::NativeJob, observe::after_refused_release},
    },
    job::view::recorded_id,
};

/// What comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The Job as it is now; None where there is none.
    Job(Option<Kept<Job>>),
    /// The execution.
    Execution(Kept<Observation>),
    /// An error: the visit ends.
    Failed,
}

/// The lowest number for a native Job that nobody can take for another one: none has it of which anybody still knows.
/// So a controller whose stores have stopped may make one after the other without new states for each.
fn free_number(state: &State, uid: usize) -> u8 {
    (1..u8::MAX).find(|number| !is_known(state, uid, *number)).unwrap_or(u8::MAX)
}

fn is_known(state: &State, uid: usize, number: u8) -> bool {
    let id = native_uid(uid, number);
    let in_job = |version: JobVersion| recorded_id(&version.job, REFERENCE_TYPE) == Some(&id);
    let in_controller = |Controller { stores, visit, expired }: &Controller| {
        let jobs = [stores.job.flatten(), visit.map(|visit| visit.job), *expired];
        let native = stores.natives.and_then(|natives| natives[uid]);
        let seen = visit.and_then(|visit| visit.observed);
        jobs.into_iter().flatten().any(in_job)
            || native.is_some_and(|native| native.metadata.uid.as_ref() == Some(&id))
            || stores.pods.is_some_and(|pods| pods[uid].of() == Some(number))
            || seen.is_some_and(|(seen, _)| matches!(&*seen, Observation::Present(execution) if execution.id == id))
    };
    let in_request = |request: &Request| match request.body {
        Body::Job(patch) | Body::Release(patch) | Body::Stop(patch) => format!("{:?}", *patch).contains(&id),
        Body::Delete(of) | Body::Unprotect(of) => *of == id,
        Body::Limit(limit) => limit.0 == id,
        Body::Create(_) => false,
    };
    state.job.is_some_and(|job| in_job(JobVersion { job, newest: true }))
        || state.controllers.iter().any(in_controller)
        || state.late.iter().any(in_request)
}

impl World {
    /// Carries a request out. `job` and `pod` are what the sender judges the answer by.
    pub(super) fn carry_out(&self, state: &mut State, request: Request, job: Kept<Job>, pod: Pod) -> Answer {
        let execution = state.executions[request.uid];
        let shown = |native: Option<Kept<NativeJob>>| Answer::Execution(self.observation(job, native, pod));
        match request.body {
            Body::Job(patch) => self.patch_job(state, request, patch),
            // A quota is asked before it is looked whether there is one.
            Body::Create(_) if state.refuses => {
                Answer::Execution(self.objects.observation(Observation::Refused { why: REFUSED.to_owned() }))
            }
            // Refused, as there is one: what stands there is read.
            Body::Create(_) if execution.native.is_some() => self.read(state, request.uid, job),
            Body::Create(rendered) => {
                let made = free_number(state, request.uid);
                let native = Some(self.created(rendered, request.uid, made, state.clock));
                state.executions[request.uid] = cluster::Execution { native, made, ..execution };
                shown(native)
            }
            Body::Release(patch) | Body::Stop(patch) => {
                let Some(native) = execution.native else { return Answer::Failed };
                let releases = matches!(request.body, Body::Release(_));
                match self.objects.patched_native(native, patch).filter(|_| !(releases && state.refuses)) {
                    Some(patched) => {
                        self.change(state, request.uid, execution.with(Some(patched)));
                        shown(Some(patched))
                    }
                    // By a policy, or because a test failed: what is true is read.
                    None if releases => match self.read(state, request.uid, job) {
                        Answer::Execution(now) => {
                            let refused = after_refused_release(Observation::clone(&now), REFUSED);
                            Answer::Execution(self.objects.observation(refused))
                        }
                        other => other,
                    },
                    None => Answer::Failed,
                }
            }
            Body::Delete(id) => match execution.native {
                None => shown(None),
                Some(native) if native.metadata.uid.as_deref() != Some(&**id) => Answer::Failed,
                Some(_) => {
                    let after = self.objects.delete_native(execution).unwrap_or(execution);
                    self.change(state, request.uid, after);
                    shown(after.native)
                }
            },
            Body::Limit(wanted) => {
                let free = execution.native.filter(|native| {
                    native.spec.active_deadline_seconds.is_none() && native.metadata.uid.as_ref() == Some(&wanted.0)
                });
                let Some(native) = free else { return shown(execution.native) };
                let patched = self.objects.patched_native(native, self.limiting(native, wanted));
                self.change(state, request.uid, execution.with(patched));
                shown(patched)
            }
            Body::Unprotect(id) => {
                let ours = execution.native.filter(|native| native.metadata.uid.as_deref() == Some(&**id));
                let patch = ours.and_then(|native| Some((native, self.unprotecting(native)?)));
                let Some((native, patch)) = patch else { return shown(execution.native) };
                let patched = self.objects.patched_native(native, patch);
                self.change(state, request.uid, execution.with(patched));
                self.read(state, request.uid, job)
            }
        }
    }

    /// The native Job as the API server makes it.
    fn created(&self, rendered: Kept<NativeJob>, uid: usize, number: u8, clock: u8) -> Kept<NativeJob> {
        self.created.of((rendered, uid, number, clock), |_| {
            let mut native = NativeJob::clone(&rendered);
            native.metadata.uid = Some(native_uid(uid, number));
            native.metadata.creation_timestamp = Some(Time(instant(clock)));
            self.objects.native(native)
        })
    }

    /// A live look at the native Job and its pods.
    pub(super) fn read(&self, state: &State, uid: usize, job: Kept<Job>) -> Answer {
        let cluster::Execution { native, pod, .. } = state.executions[uid];
        Answer::Execution(self.observation(job, native, if native.is_some() { pod } else { Pod::None }))
    }

    /// A change that a request of ours made to an execution.
    fn change(&self, state: &mut State, uid: usize, after: cluster::Execution) {
        let before = state.executions[uid];
        if before != after && before.native.is_some_and(|native| !cluster::is_ours(&native)) {
            state.broken = Some("D5: what is not ours was changed");
        }
        // Its pod goes with what is let go.
        let goes = after.native.is_none() && before.pod != Pod::None;
        let gone = if goes { after.gone.max(evidence::gone(state, uid)) } else { after.gone };
        state.executions[uid] = cluster::Execution { gone, ..after };
    }

    fn patch_job(&self, state: &mut State, request: Request, patch: Kept<Patch>) -> Answer {
        let Some(job) = state.job else { return Answer::Job(None) };
        if patch.guarded && !request.newest {
            return Answer::Failed;
        }
        let Some(patched) = self.objects.patched_job(job, patch) else { return Answer::Failed };
        if index(&job) != request.uid && patched != job {
            state.broken = Some("I10: a request for one UID changed another of the same name");
        }
        self.write_job(state, Some(patched));
        Answer::Job(Some(patched))
    }

    /// A DELETE of the Job, where its preconditions hold. Answers whether it was carried out.
    pub(super) fn delete_job(&self, state: &mut State, preconditions: Option<JobVersion>) -> bool {
        let Some(job) = state.job else { return false };
        if preconditions.is_some_and(|seen| !seen.newest) || job.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let deleting = self.objects.deleting(job);
        self.write_job(state, Some(deleting));
        true
    }

    /// The Job after a write that was accepted. Whoever saw it before has seen an old one.
    pub(super) fn write_job(&self, state: &mut State, after: Option<Kept<Job>>) {
        if state.job == after {
            return;
        }
        let gone = |job: &Job| {
            job.metadata.deletion_timestamp.is_some() && job.metadata.finalizers.iter().flatten().next().is_none()
        };
        if let (Some(before), Some(after)) = (state.job, after) {
            let broken = self.transitions.of((before, after), |_| invariants::broken_by(&before, &after));
            state.broken = state.broken.or(broken);
            if evidence::makes_a_loss_its_end(&before, &after) {
                state.executions[index(&after)].gone = cluster::Gone::Not;
            }
            if is_over(&after) && !is_over(&before) {
                let execution = &state.executions[index(&after)];
                state.broken = state.broken.or_else(|| evidence::broken_by_verdict(&before, &after, execution));
            }
        }
        if let Some(job) = after.filter(|job| invariants::is_ruled_over(job)) {
            state.executions[index(&job)].given_up = true;
        }
        if let Some(last) = after.filter(|job| gone(job)) {
            state.broken = state.broken.or_else(|| invariants::broken_by_its_end(&last));
        }
        state.job = after.filter(|job| !gone(job));
        let keeps_expired = self.without == Some(Without::TtlPreconditions);
        for controller in &mut state.controllers {
            let older = |version: &mut JobVersion| version.newest = false;
            controller.stores.job.iter_mut().flatten().for_each(older);
            if let Some(visit) = &mut controller.visit {
                older(&mut visit.job);
            }
            // What carries a resourceVersion that is not the newest can do nothing any more.
            controller.expired = controller.expired.filter(|_| keeps_expired);
            controller.expired.iter_mut().for_each(older);
        }
        state.late.retain_mut(|request| {
            request.newest = false;
            !matches!(request.body, Body::Job(patch) if patch.guarded)
        });
    }
}
