//! The model: its settings, what it keeps, and what must hold. What is modelled and what is not is said at the crate.
//!
//! A model that finds nothing may be blind: so each rule that keeps executions apart or gets them to rest is left out
//! once ([`weakened::Without`]), and the model must find what goes wrong then.

use std::sync::RwLock;

use ayatori_crds::{Job, KubernetesExecutionParametersSpec, names::JOB_CLEANUP_FINALIZER};
use stateright::{Model, Property};

mod around;
mod cluster;
mod controller;
mod event;
mod evidence;
mod invariants;
mod kept;
mod objects;
mod pod;
mod rest;
mod server;
mod state;
mod step;
mod tests;
mod told;
mod weakened;

use around::{Around, Classes};
use cluster::Execution;
use kept::{Answers, Kept};
use objects::{Limit, Objects, Patch};
use pod::Pod;
use state::{Action, Controller, Left, State, UIDS};
use weakened::Without;

use ayatori_controller::backend::{Observation, kubernetes::objects::NativeJob};

/// How much may happen.
#[derive(Clone, Copy, Debug)]
struct Setting {
    controllers: usize,
    stale: u8,
    late: u8,
    meddling: u8,
    silences: u8,
    ticks: u8,
    cancels: u8,
    deletes: u8,
    creates: u8,
    rulings: u8,
    refusals: u8,
    changes: u8,
    /// The Jobs have a deadline and a TTL of one tick.
    deadline: bool,
    ttl: bool,
    /// Tasks may fail, pods may be stuck, and last words may be forgotten.
    misfortune: bool,
    /// Whether there are worlds in which somebody else's object stands under the native Job's name.
    foreign: bool,
}

impl Setting {
    /// Nothing goes wrong and nobody does anything.
    const CALM: Self = Self {
        controllers: 1,
        stale: 0,
        late: 0,
        meddling: 0,
        silences: 0,
        ticks: 0,
        cancels: 0,
        deletes: 0,
        creates: 0,
        rulings: 0,
        refusals: 0,
        changes: 0,
        deadline: false,
        ttl: false,
        misfortune: false,
        foreign: false,
    };

    fn left(&self) -> Left {
        Left {
            stale: self.stale,
            late: self.late,
            meddling: self.meddling,
            silences: self.silences,
            ticks: self.ticks,
            cancels: self.cancels,
            deletes: self.deletes,
            creates: self.creates,
            rulings: self.rulings,
            refusals: self.refusals,
            changes: self.changes,
        }
    }
}

/// What an observation is made of.
type Looked = (Kept<Job>, Option<Kept<NativeJob>>, Pod);

/// The model.
struct World {
    setting: Setting,
    without: Option<Without>,
    objects: Objects,
    classes: Classes,
    parameters: KubernetesExecutionParametersSpec,
    /// The two Jobs, as their user makes them.
    made: [Kept<Job>; 2],
    decisions: Answers<controller::Seen, controller::Next>,
    observed: Answers<Looked, Kept<Observation>>,
    transitions: Answers<(Kept<Job>, Kept<Job>), Option<&'static str>>,
    events: Answers<(Execution, event::Event, u8, bool), Option<Execution>>,
    swept: Answers<Execution, Option<Execution>>,
    created: Answers<(Kept<NativeJob>, usize, u8, u8), Kept<NativeJob>>,
    limits: Answers<(Kept<NativeJob>, Kept<Limit>), Kept<Patch>>,
    unprotections: Answers<Kept<NativeJob>, Option<Kept<Patch>>>,
    expired: Answers<(Kept<Job>, u8), bool>,
    verdicts: RwLock<rest::Verdicts>,
}

impl World {
    fn new(setting: Setting, without: Option<Without>) -> Self {
        let objects = Objects::default();
        let made = UIDS.map(|uid| objects.job(objects::new_job(uid, &[], setting.deadline, setting.ttl)));
        Self {
            setting,
            without,
            objects,
            classes: Classes::default(),
            parameters: objects::parameters(),
            made,
            decisions: Answers::default(),
            observed: Answers::default(),
            transitions: Answers::default(),
            events: Answers::default(),
            swept: Answers::default(),
            created: Answers::default(),
            limits: Answers::default(),
            unprotections: Answers::default(),
            expired: Answers::default(),
            verdicts: RwLock::default(),
        }
    }

    /// The first Job was just made. `protected`: through our webhook, which adds the finalizer.
    fn initial(&self, protected: bool, foreign: bool) -> State {
        let Setting { deadline, ttl, .. } = self.setting;
        let through_webhook = || self.objects.job(objects::new_job(UIDS[0], &[JOB_CLEANUP_FINALIZER], deadline, ttl));
        let job = if protected { through_webhook() } else { self.made[0] };
        let mut executions = [Execution::NONE; 2];
        if foreign {
            executions[0].native = Some(self.objects.native(objects::foreign_native(
                &ayatori_controller::backend::kubernetes::render::native_name(UIDS[0]),
            )));
        }
        State {
            job: Some(job),
            executions,
            controllers: [Controller::default(); 2],
            late: vec![],
            clock: 0,
            refuses: false,
            around: Around::CALM,
            left: self.setting.left(),
            broken: None,
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut all = vec![self.initial(true, false), self.initial(false, false)];
        if self.setting.foreign {
            all.push(self.initial(true, true));
        }
        all
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_none() {
            self.all_actions(state, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.after(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no invariant is broken", |_, state: &State| state.broken.is_none()),
            Property::always("everything comes to rest", |world: &Self, state: &State| {
                state.broken.is_some() || world.wrong_in_the_end(state).is_none()
            }),
        ]
    }
}
