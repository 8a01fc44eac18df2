//! One control plane with one ayatori. One test at a time has it; within a test, requests run side by side.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use ayatori_tests::{
    Cluster, Options,
    api::{
        kinds::Kind,
        requests::{Answer, Server, Verb},
    },
    eventually,
    product::{
        binary,
        installation::install,
        kubectl::Kubectl,
        process::{Ayatori, Ports},
        webhooks::Webhooks,
    },
    suite::print_logs,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{manifests, settled};

/// What is waited for takes a fraction of a second; the bound is for a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Requests under way at a time: enough to keep two cores busy.
pub(crate) const AT_ONCE: usize = 8;

/// The namespace of all that names no other.
pub(crate) const NAMESPACE: &str = "admission";

pub(crate) struct World {
    cluster: Cluster,
    kubeconfig: PathBuf,
    pub(crate) server: Server,
    process: Option<(Value, Ayatori)>,
}

static WORLD: Mutex<Option<World>> = Mutex::const_new(None);

/// Runs a test that has the world for itself, with an ayatori that has no policy of the platform.
pub(crate) async fn alone<T>(test: T) -> anyhow::Result<()>
where
    T: AsyncFnOnce(&mut World) -> anyhow::Result<()>,
{
    let mut held = WORLD.lock().await;
    let world = match &mut *held {
        Some(world) => world,
        absent => absent.insert(World::start().await?),
    };
    // A client belongs to the runtime of its test.
    world.server = Server::new(world.cluster.client().await?);
    world.under(&Value::Null).await?;
    let outcome = test(world).await;
    if outcome.is_err() {
        print_logs(NAMESPACE, &world.cluster);
    }
    outcome
}

impl World {
    async fn start() -> anyhow::Result<Self> {
        // First: where it cannot be built, no cluster is needed.
        binary::path()?;
        let cluster = Cluster::start(Options::default()).await?;
        let kubeconfig = install(&cluster).await?;
        let server = Server::new(cluster.client().await?);
        let mut world = Self { cluster, kubeconfig, server, process: None };
        // Our own kinds come second: without a webhook that answers, none can be made.
        let (ours, others): (Vec<Value>, Vec<Value>) =
            manifests::of_the_world()?.into_iter().partition(|manifest| manifests::kind(manifest).is_some());
        for manifest in &others {
            world.make(manifest).await?;
        }
        world.run(&Value::Null).await?;
        for manifest in &ours {
            world.make(manifest).await?;
        }
        settled::classes(&world, &ours).await?;
        Ok(world)
    }

    /// Lets ayatori run with this policy of the platform (null: none), and waits until its webhook decides.
    pub(crate) async fn under(&mut self, policy: &Value) -> anyhow::Result<()> {
        if self.process.as_ref().is_some_and(|(present, _)| present == policy) {
            return Ok(());
        }
        self.run(policy).await?;
        settled::classes(self, &manifests::of_the_world()?).await
    }

    async fn run(&mut self, policy: &Value) -> anyhow::Result<()> {
        if let Some((_, process)) = self.process.take() {
            process.kill();
        }
        let mut arguments = vec![];
        if !policy.is_null() {
            let file = self.cluster.dir().join("ayatori.yaml");
            std::fs::write(&file, serde_json::to_vec(policy)?)?;
            arguments.push(format!("--config={}", file.display()));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let process = Ayatori::start_with(&self.cluster, &self.kubeconfig, Ports::MAIN, &arguments)?;
        process.is_ready().await?;
        self.process = Some((policy.clone(), process));
        self.until_webhook(true).await
    }

    /// Runs something while no webhook is asked: their configurations are deleted, and made again afterwards.
    pub(crate) async fn without_webhook<T>(
        &self,
        what: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let kubectl = Kubectl::of(&self.cluster);
        let webhooks = Webhooks::remove(&kubectl)?;
        let outcome = async {
            self.until_webhook(false).await?;
            what(self).await
        }
        .await;
        webhooks.restore(&kubectl)?;
        self.until_webhook(true).await?;
        outcome
    }

    /// Waits until the API server asks the webhook, or no longer: by a Job that only the webhook refuses.
    async fn until_webhook(&self, asked: bool) -> anyhow::Result<()> {
        let job = manifests::changed(Kind::Job, "probe", &json!({"spec": {"task": {"image": "No Image"}}}))?;
        eventually("the webhook decides, or is gone", BOUND, async || {
            let answer = self.dry_create(&job).await?;
            let denied = answer.summary().contains("denied the request");
            ensure!(if asked { denied } else { answer.is_accepted() }, "{}", answer.summary());
            Ok(())
        })
        .await
    }

    /// kubectl in the namespace of `manifest`.
    pub(crate) fn kubectl(&self, manifest: &Value) -> Kubectl {
        Kubectl::of(&self.cluster).within(manifests::namespace(manifest))
    }

    /// Creates an object for real.
    pub(crate) async fn make(&self, manifest: &Value) -> anyhow::Result<Answer> {
        let answer = self.server.send(Verb::Create, &manifests::collection(manifest)?, manifest).await?;
        ensure!(answer.is_accepted(), "cannot make {manifest}: {}", answer.summary());
        Ok(answer)
    }

    /// What the API server would say to a creation.
    pub(crate) async fn dry_create(&self, manifest: &Value) -> anyhow::Result<Answer> {
        let path = format!("{}?dryRun=All", manifests::collection(manifest)?);
        self.server.send(Verb::Create, &path, manifest).await
    }

    /// The object as it is stored.
    pub(crate) async fn get(&self, manifest: &Value) -> anyhow::Result<Value> {
        let answer = self.server.send(Verb::Get, &manifests::path(manifest)?, &Value::Null).await?;
        ensure!(answer.is_accepted(), "cannot read {}: {}", manifests::path(manifest)?, answer.summary());
        Ok(answer.body)
    }

    /// Changes an object for real, by a merge patch: what `changes` says beside kind and name.
    pub(crate) async fn change(&self, changes: &Value) -> anyhow::Result<Value> {
        let answer = self.server.send(Verb::MergePatch, &manifests::path(changes)?, changes).await?;
        ensure!(answer.is_accepted(), "cannot change {changes}: {}", answer.summary());
        Ok(answer.body)
    }

    /// Asks for an object's deletion.
    pub(crate) async fn delete(&self, manifest: &Value) -> anyhow::Result<()> {
        let answer = self.server.send(Verb::Delete, &manifests::path(manifest)?, &json!({})).await?;
        ensure!(answer.is_accepted(), "cannot delete {}: {}", manifests::path(manifest)?, answer.summary());
        Ok(())
    }

    /// What ayatori has said; for a failure.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        Ok(self.process.as_ref().context("no ayatori runs")?.1.log())
    }
}
