//! Start and stop, in order.
//!
//! Start: API server reached → probes → certificate → stores synced → webhook listens → ready → controllers.
//! Stop on SIGTERM or SIGINT: not ready → controllers stop → webhook answers what it has → probes. A second signal
//! aborts. Every task is joined; an essential one that ends early ends the process.

use std::{future::Future, sync::Arc};

use anyhow::{Context, Result, bail};
use ayatori_certs::SelfManaged;
use ayatori_controller::{
    backend::{
        Backend,
        kubernetes::{KubernetesBackend, leftovers},
    },
    job::{self, act::JobController},
    job_class,
    stores::{self, Stores},
    ttl,
};
use ayatori_crds::names::KUBERNETES_CONTROLLER;
use ayatori_webhook::{
    JobClassValidation, JobDefaulting, JobValidation, Limits, Lookups, Reviews, Server,
    configuration::{MUTATE_JOBS, VALIDATE_JOB_CLASSES, VALIDATE_JOBS},
};
use kube::Client;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinSet,
};

use crate::{admin, config::Config, lookups::StoreLookups, preflight, serving_certificate::ServingCertificate};

/// Runs the process until a signal stops it.
///
/// # Errors
/// What kept it from starting, or the essential task that ended early.
pub(crate) async fn run(config: Config) -> Result<()> {
    let mut signals = Signals::new()?;
    let (client, server) = client().await?;
    preflight::check(&client, &server).await?;

    let (readiness, waiting_for) = watch::channel(Some("starting"));
    let (stop_probes, probes_stop) = stop_switch();
    let certificate = ServingCertificate::new(
        client.clone(),
        config.namespace.clone(),
        config.webhook_ca_secret.clone(),
        config.webhook_names(),
    );
    let source = certificate.source();
    let mut tasks = Tasks::default();
    let probes =
        admin::serve(config.health_probe_bind_address, waiting_for, Arc::<SelfManaged>::clone(&source), probes_stop);
    tasks.spawn("probes", async { probes.await.map_err(|error| format!("{error:#}")) });
    certificate.ensure().await.context("cannot get a serving certificate")?;
    tasks.forever("certificate", certificate.keep());

    let (stores, watches, changes) = stores::stores(&client);
    for watch in watches {
        tasks.forever("watch", watch);
    }
    tokio::select! {
        synced = stores.synced() => synced.context("a watch ended before it was in sync")?,
        () = signals.next() => return Ok(()),
        ended = tasks.next() => bail!("{ended}"),
    }

    let lookups: Arc<dyn Lookups> = Arc::new(StoreLookups::new(client.clone(), stores.clone()));
    let webhook =
        Server::bind(config.webhook_address(), source.as_ref(), Limits::default(), Arc::new(reviews(&lookups)));
    let webhook = webhook.await.context("cannot start the webhook")?;
    let (stop_webhook, webhook_stop) = stop_switch();
    tasks.spawn("webhook", async {
        webhook.serve(webhook_stop).await;
        Ok(())
    });
    let (stop_controllers, controllers_stop) = watch::channel(false);
    spawn_controllers(&mut tasks, &client, &stores, &changes, &controllers_stop);
    readiness.send_replace(None);
    tracing::info!(webhook = %config.webhook_address(), "ready");

    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        ended = tasks.next() => bail!("{ended}"),
    }
    readiness.send_replace(Some("stopping"));
    stop_controllers.send_replace(true);
    let stopped = async {
        tasks.ended(CONTROLLERS).await;
        stop_webhook.send_replace(true);
        tasks.ended(&["webhook"]).await;
        stop_probes.send_replace(true);
        tasks.ended(&["probes"]).await;
    };
    tokio::select! {
        () = stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        () = signals.next() => bail!("aborted by a second signal"),
    }
}

/// A client that never retries by itself (every visit decides afresh), and the server's address.
async fn client() -> Result<(Client, String)> {
    let mut config = kube::Config::infer()
        .await
        .context("no Kubernetes configuration: neither a kubeconfig nor a pod's ServiceAccount")?;
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(config).context("the Kubernetes configuration cannot be used")?;
    Ok((client, server))
}

fn reviews(lookups: &Arc<dyn Lookups>) -> Reviews {
    let served = vec![KUBERNETES_CONTROLLER.to_owned()];
    Reviews::default()
        .with(MUTATE_JOBS, Arc::new(JobDefaulting::new(Arc::clone(lookups))))
        .with(VALIDATE_JOBS, Arc::new(JobValidation::new(Arc::clone(lookups))))
        .with(VALIDATE_JOB_CLASSES, Arc::new(JobClassValidation::new(Arc::clone(lookups), served)))
}

/// The controllers' task names.
const CONTROLLERS: &[&str] = &["job controller", "jobclass controller", "ttl controller", "leftovers controller"];

fn spawn_controllers(
    tasks: &mut Tasks,
    client: &Client,
    stores: &Stores,
    changes: &tokio::sync::broadcast::Sender<stores::Change>,
    stop: &watch::Receiver<bool>,
) {
    let backend: Arc<dyn Backend> = Arc::new(KubernetesBackend::new(client.clone(), stores.clone()));
    let jobs = JobController::new(client.clone(), stores.clone(), Arc::clone(&backend));
    let jobs = job::run(jobs, stores.jobs.clone(), changes.subscribe(), switched(stop.clone()));
    let classes = job_class::act::run(
        client.clone(),
        stores.classes.clone(),
        backend,
        changes.subscribe(),
        switched(stop.clone()),
    );
    let ttl = ttl::act::run(client.clone(), stores.jobs.clone(), changes.subscribe(), switched(stop.clone()));
    let leftovers = leftovers::run(client.clone(), stores.clone(), changes.subscribe(), switched(stop.clone()));
    for (name, task) in CONTROLLERS.iter().zip([
        Box::pin(jobs) as futures::future::BoxFuture<'static, ()>,
        Box::pin(classes),
        Box::pin(ttl),
        Box::pin(leftovers),
    ]) {
        tasks.spawn(name, async {
            task.await;
            Ok(())
        });
    }
}

/// A switch that is thrown once.
fn stop_switch() -> (watch::Sender<bool>, impl Future<Output = ()> + Send + 'static) {
    let (sender, receiver) = watch::channel(false);
    (sender, switched(receiver))
}

async fn switched(mut receiver: watch::Receiver<bool>) {
    // A dropped sender means that the process ends anyway.
    let _ = receiver.wait_for(|thrown| *thrown).await;
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The tasks of the process, by name.
#[derive(Default)]
struct Tasks {
    set: JoinSet<(&'static str, Result<(), String>)>,
    over: Vec<&'static str>,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.set.spawn(async move { (name, task.await) });
    }

    /// A task that has no end of its own.
    fn forever(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, async move {
            task.await;
            Ok(())
        });
    }

    /// Waits until one task ends, and says which and how.
    async fn next(&mut self) -> String {
        match self.set.join_next().await {
            Some(Ok((name, result))) => {
                self.over.push(name);
                result.map_or_else(|error| format!("{name}: {error}"), |()| format!("the {name} ended"))
            }
            Some(Err(panic)) => format!("a task panicked: {panic}"),
            None => "there is no task left".to_owned(),
        }
    }

    /// Waits until all of these have ended.
    async fn ended(&mut self, names: &[&'static str]) {
        while !names.iter().all(|name| self.over.contains(name)) && !self.set.is_empty() {
            let ended = self.next().await;
            tracing::debug!("{ended}");
        }
    }
}
