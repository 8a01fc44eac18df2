//! Start and stop, in order.
//!
//! Start: probes → API server reached → certificate → stores synced → metrics → webhook listens → controllers → ready.
//! Stop on SIGTERM or SIGINT: not ready → controllers stop → webhook answers what it has → probes and metrics. A second
//! signal aborts. An essential task that ends early ends the process; watches end with it.

use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use ayatori_controller::{
    backend::{
        Backend,
        kubernetes::{KubernetesBackend, leftovers},
    },
    clock::Clock,
    events::Events,
    job::{self, act::JobController, options::Options},
    job_class,
    metrics::FromStores,
    parameters,
    stores::{self, CONNECTION_SILENCE, Change, Stores},
    telemetry::Telemetry,
    ttl,
};
use ayatori_crds::names::KUBERNETES_CONTROLLER;
use ayatori_webhook::{
    JobClassValidation, JobDefaulting, JobValidation, KubernetesParametersValidation, Limits, Lookups,
    OpenSandboxParametersValidation, ReferenceChecks, Reviews, Server,
    configuration::{
        MUTATE_JOBS, VALIDATE_JOB_CLASSES, VALIDATE_JOBS, VALIDATE_KUBERNETES_PARAMETERS,
        VALIDATE_OPENSANDBOX_PARAMETERS,
    },
};
use futures::{FutureExt, future::BoxFuture};
use http::{Response, header};
use jiff::Timestamp;
use kube::{Client, client::ClientBuilder};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{broadcast, watch},
    task::{self, JoinSet},
};
use tower::{BoxError, util::MapFutureLayer};

use crate::{
    admin,
    config::Config,
    lookups::StoreLookups,
    metrics::{self, Metrics, MetricsServer},
    platform::Platform,
    preflight,
    serving_certificate::ServingCertificate,
};

/// Runs the process until a signal stops it.
///
/// # Errors
/// What kept it from starting, or the essential task that ended early.
pub(crate) async fn run(config: Config) -> Result<()> {
    let mut signals = Signals::new()?;
    let platform = config.platform.platform()?;
    let transport = config.serving.transport()?;
    let serving_metrics = config.metrics.serving()?;
    let clock = Clock::default();
    let (client, server) = client(&clock).await?;
    let mut certificate = ServingCertificate::new(&config, &client)?;
    let source = certificate.source();
    let (readiness, waiting_for) = watch::channel(Some("starting"));
    // Of what tells of the process: it ends last.
    let (stop_telling, telling_stop) = watch::channel(false);
    let mut tasks = Tasks::default();
    let probes = admin::bind(config.health_probe_bind_address, waiting_for, Arc::clone(&source)).await?;
    tasks.forever("probes", probes.serve(switched(telling_stop.clone())));

    let (stores, watches, changes) = stores::stores(&client);
    let starting = async {
        preflight::check(&client, &server).await?;
        certificate.first().await.context("cannot get a serving certificate")
    };
    tokio::select! {
        started = starting => started?,
        () = signals.next() => return Ok(()),
        ended = tasks.next() => bail!("{ended}"),
    }
    tasks.forever("certificate", certificate.keep());
    for watch in watches {
        tasks.forever("watch", watch);
    }
    tokio::select! {
        synced = stores.synced() => synced.context("a watch ended before it was in sync")?,
        () = signals.next() => return Ok(()),
        ended = tasks.next() => bail!("{ended}"),
    }

    let metrics = Metrics::default();
    if let Some(serving) = serving_metrics {
        let from_stores = FromStores::new(stores.clone(), clock.clone());
        let bound =
            metrics::bind(serving, &config.namespace, &metrics, &client, from_stores, Arc::clone(&source)).await?;
        let MetricsServer { server, certificate } = bound;
        if let Some(certificate) = certificate {
            tasks.forever("certificate of the metrics", certificate.keep());
        }
        tasks.forever("metrics", server.serve(switched(telling_stop)));
    }
    let lookups: Arc<dyn Lookups> = Arc::new(StoreLookups::new(client.clone(), stores.clone()));
    let reviews = Arc::new(reviews(&lookups, &platform, metrics.webhook));
    let webhook = Server::bind(config.webhook_address(), source.as_ref(), transport, Limits::default(), reviews);
    let webhook = webhook.await.context("cannot start the webhook")?;
    let (stop_webhook, webhook_stop) = stop_switch();
    tasks.spawn("webhook", async {
        webhook.serve(webhook_stop).await;
        Ok(())
    });
    let (stop_controllers, controllers_stop) = watch::channel(false);
    let options = config.job_options(&platform);
    let controllers = Controllers { client: &client, stores: &stores, clock: &clock, metrics: &metrics.controller };
    let controllers = controllers.spawn(&mut tasks, options, &changes, &controllers_stop);
    readiness.send_replace(None);
    tracing::info!(webhook = %config.webhook_address(), "ready");

    tokio::select! {
        () = signals.next() => tracing::info!("stopping"),
        ended = tasks.next() => bail!("{ended}"),
    }
    readiness.send_replace(Some("stopping"));
    stop_controllers.send_replace(true);
    let stopped = async {
        // What is half done then is taken up by the next process: every gap between two requests is a crash point.
        if tokio::time::timeout(CONTROLLERS_STOP, tasks.ended(&controllers)).await.is_err() {
            tracing::warn!("a controller did not end in time");
        }
        stop_webhook.send_replace(true);
        tasks.ended(&["webhook"]).await;
        stop_telling.send_replace(true);
        tasks.ended(&["probes", "metrics"]).await;
    };
    tokio::select! {
        () = stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        () = signals.next() => bail!("aborted by a second signal"),
    }
}

/// A client that never retries by itself (every visit decides afresh) and tells the clock what answers say of the time,
/// and the server's address.
async fn client(clock: &Clock) -> Result<(Client, String)> {
    let mut config = kube::Config::infer()
        .await
        .context("no Kubernetes configuration: neither a kubeconfig nor a pod's ServiceAccount")?;
    config.default_retry = false;
    config.read_timeout = Some(CONNECTION_SILENCE);
    let server = config.cluster_url.to_string();
    let clock = clock.clone();
    let dates = MapFutureLayer::new(move |answer: BoxFuture<'static, Result<Response<_>, BoxError>>| {
        let (clock, sent) = (clock.clone(), Timestamp::now());
        async move {
            let response = answer.await?;
            if let Some(date) = response.headers().get(header::DATE).and_then(|date| date.to_str().ok()) {
                clock.saw(date, sent);
            }
            Ok::<_, BoxError>(response)
        }
    });
    let builder = ClientBuilder::try_from(config).context("the Kubernetes configuration cannot be used")?;
    Ok((builder.with_layer(&dates).build(), server))
}

fn reviews(lookups: &Arc<dyn Lookups>, platform: &Platform, metrics: ayatori_webhook::Metrics) -> Reviews {
    let served = vec![KUBERNETES_CONTROLLER.to_owned()];
    let (lookups, policy) = (|| Arc::clone(lookups), platform.policy);
    let references = if platform.reference_checks { ReferenceChecks::On } else { ReferenceChecks::Off };
    Reviews::counted_in(metrics)
        .with(MUTATE_JOBS, Arc::new(JobDefaulting::new(lookups(), policy)))
        .with(VALIDATE_JOBS, Arc::new(JobValidation::new(lookups(), policy, references)))
        .with(VALIDATE_JOB_CLASSES, Arc::new(JobClassValidation::new(lookups(), served)))
        .with(VALIDATE_KUBERNETES_PARAMETERS, Arc::new(KubernetesParametersValidation::new(lookups())))
        .with(VALIDATE_OPENSANDBOX_PARAMETERS, Arc::new(OpenSandboxParametersValidation::new(lookups())))
}

/// How long the controllers have to end. With the webhook's farewell and drain after it (18 s) this fits into the 30 s
/// that a pod has.
const CONTROLLERS_STOP: Duration = Duration::from_secs(8);

/// What all controllers need.
struct Controllers<'a> {
    client: &'a Client,
    stores: &'a Stores,
    clock: &'a Clock,
    metrics: &'a ayatori_controller::metrics::Metrics,
}

impl Controllers<'_> {
    /// Starts them; answers the names of their tasks.
    fn spawn(
        &self,
        tasks: &mut Tasks,
        options: Options,
        changes: &broadcast::Sender<Change>,
        stop: &watch::Receiver<bool>,
    ) -> Vec<&'static str> {
        let (client, stores) = (|| self.client.clone(), || self.stores.clone());
        let (clock, metrics) = (|| self.clock.clone(), || self.metrics.clone());
        let (changes, stop) = (|| changes.subscribe(), || switched(stop.clone()));
        // It ends after the last controller, and nothing waits for it.
        let (events, sending) = Events::new(client());
        tasks.forever("events", sending);
        let telemetry = || Telemetry { events: events.clone(), metrics: metrics() };
        let backend: Arc<dyn Backend> = Arc::new(KubernetesBackend::new(client(), stores()));
        let jobs = JobController::new(client(), stores(), Arc::clone(&backend), options, clock(), telemetry());
        let classes = job_class::act::run(client(), stores(), backend, clock(), telemetry(), changes(), stop());
        let ttl = ttl::act::run(client(), stores().jobs, clock(), changes(), metrics(), stop());
        let controllers: [(&'static str, BoxFuture<'static, ()>); 5] = [
            ("job controller", job::run(jobs, stores(), changes(), stop()).boxed()),
            ("jobclass controller", classes.boxed()),
            ("parameters controller", parameters::act::run(client(), stores(), changes(), metrics(), stop()).boxed()),
            ("ttl controller", ttl.boxed()),
            ("leftovers controller", leftovers::run(client(), stores(), changes(), metrics(), stop()).boxed()),
        ];
        let names = controllers.iter().map(|(name, _)| *name).collect();
        for (name, controller) in controllers {
            tasks.spawn(name, controller.map(Ok));
        }
        names
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
    set: JoinSet<Result<(), String>>,
    names: HashMap<task::Id, &'static str>,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.names.insert(self.set.spawn(task).id(), name);
    }

    /// A task that has no end of its own.
    fn forever(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, task.map(Ok));
    }

    /// Waits until one task ends, and says which and how.
    async fn next(&mut self) -> String {
        let (id, how) = match self.set.join_next_with_id().await {
            Some(Ok((id, Ok(())))) => (id, "ended".to_owned()),
            Some(Ok((id, Err(error)))) => (id, format!("failed: {error}")),
            Some(Err(panic)) => (panic.id(), "panicked".to_owned()),
            None => return "there is no task left".to_owned(),
        };
        format!("{} {how}", self.names.remove(&id).unwrap_or("a task"))
    }

    /// Waits until all of these have ended, however they do.
    async fn ended(&mut self, names: &[&'static str]) {
        while self.names.values().any(|running| names.contains(running)) {
            let ended = self.next().await;
            tracing::debug!("{ended}");
        }
    }
}
