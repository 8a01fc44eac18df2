//! The versions of the Jobs in their order, and what they broke.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
};

use ayatori_crds::{Job, JobState};

use super::invariants::{self, Broken, Invariant};

/// Status versions that a Job may have. A life has 5 to 8; one that waits says what for, and that changes rarely. What
/// writes in a loop passes this within seconds.
const STATUS_VERSIONS: usize = 40;
/// Versions of one object that are kept for people. A test that edits a Job hundreds of times still is checked whole.
const KEPT: usize = 64;

/// Something that was seen, in the order of the API server.
#[derive(Debug, Clone)]
pub(super) enum Seen {
    /// A version of a Job.
    Version(Box<Job>),
    /// The Job went; as it was last.
    Gone(Box<Job>),
    /// Versions were missed.
    Gap(String),
}

/// How far a Job was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Followed {
    /// The newest resourceVersion that was seen.
    pub(super) newest: u64,
    /// Its end was seen.
    pub(super) gone: bool,
}

/// One object.
#[derive(Debug, Default)]
struct Life {
    namespace: String,
    name: String,
    /// The last [`KEPT`] versions.
    versions: Vec<Job>,
    status_versions: usize,
    gone: bool,
    broken: Vec<Broken>,
}

/// All that was seen, but for Jobs that are gone and whose test has ended.
#[derive(Debug, Default)]
pub(super) struct History {
    lives: HashMap<String, Life>,
    /// The UID of the Job that recorded a backend's identifier.
    references: HashMap<String, String>,
    gaps: Vec<String>,
    /// Namespaces whose test has ended.
    ended: BTreeSet<String>,
    /// What a test breaks by hand in its namespace.
    tolerated: BTreeMap<String, BTreeSet<Invariant>>,
}

impl History {
    pub(super) fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Gap(why) => self.gaps.push(why),
            Seen::Version(job) => self.version(*job),
            Seen::Gone(job) => {
                let uid = uid(&job);
                let mut broken = invariants::at_the_end(&job);
                let life = self.lives.entry(uid).or_default();
                life.gone = true;
                life.broken.append(&mut broken);
                life.keep(*job);
            }
        }
    }

    fn version(&mut self, job: Job) {
        let uid = uid(&job);
        let mut broken = invariants::in_version(&job);
        for id in references(&job) {
            let owner = self.references.entry(id.clone()).or_insert_with(|| uid.clone());
            if *owner != uid {
                let what = format!("its reference {id} is that of the Job with UID {owner}");
                broken.push(Broken { invariant: Invariant::I10, what });
            }
        }
        let life = self.lives.entry(uid).or_default();
        if let Some(before) = life.versions.last() {
            broken.append(&mut invariants::between(before, &job));
        }
        let before = life.versions.last().and_then(|before| before.status.as_ref());
        life.status_versions += usize::from(before != job.status.as_ref());
        if life.status_versions == STATUS_VERSIONS {
            broken
                .push(Broken { invariant: Invariant::I12, what: format!("{STATUS_VERSIONS} versions of its status") });
        }
        life.broken.append(&mut broken);
        life.keep(job);
    }

    /// Names what a test breaks by hand, as an administrator may.
    pub(super) fn tolerate(&mut self, namespace: &str, invariant: Invariant) {
        self.tolerated.entry(namespace.to_owned()).or_default().insert(invariant);
    }

    /// How far each Job of a namespace was followed, by its UID.
    pub(super) fn seen(&self, namespace: &str) -> BTreeMap<String, Followed> {
        let lives = self.lives.iter().filter(|(_, life)| life.namespace == namespace);
        let followed = lives.filter_map(|(uid, life)| {
            let newest = resource_version(life.versions.last()?);
            Some((uid.clone(), Followed { newest, gone: life.gone }))
        });
        followed.collect()
    }

    /// What was broken since the last call, in any namespace, with the way there. Forgets the Jobs of `ended`, whose test
    /// has ended; what becomes of them later is told by whoever asks next.
    pub(super) fn take_broken(&mut self, ended: &str) -> Vec<String> {
        let mut told = std::mem::take(&mut self.gaps);
        for life in self.lives.values_mut() {
            let tolerated = self.tolerated.get(&life.namespace);
            let is_tolerated = |broken: &Broken| tolerated.is_some_and(|all| all.contains(&broken.invariant));
            let broken: Vec<Broken> =
                std::mem::take(&mut life.broken).into_iter().filter(|broken| !is_tolerated(broken)).collect();
            if !broken.is_empty() {
                told.push(life.tell(&broken));
            }
        }
        self.ended.insert(ended.to_owned());
        self.lives.retain(|_, life| !(life.gone && self.ended.contains(&life.namespace)));
        told
    }
}

impl Life {
    fn keep(&mut self, job: Job) {
        if self.versions.len() == KEPT {
            self.versions.remove(0);
        }
        self.namespace = job.metadata.namespace.clone().unwrap_or_default();
        self.name = job.metadata.name.clone().unwrap_or_default();
        self.versions.push(job);
    }

    fn tell(&self, broken: &[Broken]) -> String {
        let mut told = format!("Job {}/{}:", self.namespace, self.name);
        for broken in broken {
            let _ = write!(told, "\n  {broken}");
        }
        for version in &self.versions {
            let metadata = &version.metadata;
            let resource_version = metadata.resource_version.as_deref().unwrap_or_default();
            let status = serde_json::to_string(&version.status).unwrap_or_default();
            let (state, finalizers) = (JobState::of(version), metadata.finalizers.as_deref().unwrap_or_default());
            let _ = write!(told, "\n  version {resource_version}: {state:?}, finalizers {finalizers:?}, {status}");
        }
        told
    }
}

fn uid(job: &Job) -> String {
    job.metadata.uid.clone().unwrap_or_default()
}

fn references(job: &Job) -> Vec<String> {
    let execution = job.status.as_ref().and_then(|status| status.execution.as_ref());
    execution.iter().flat_map(|execution| &execution.references).map(|reference| reference.id.clone()).collect()
}

/// etcd's revision: it grows with every write of the cluster.
pub(super) fn resource_version(job: &Job) -> u64 {
    job.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
