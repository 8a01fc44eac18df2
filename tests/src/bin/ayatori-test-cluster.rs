//! Starts a cluster and keeps it until its input ends: for people who want to look around, and the program in which
//! test binaries run the stages of their clusters.

use std::io::Read;

use ayatori_tests::{Cluster, Options, stage, tools};

/// `ayatori-test-cluster [--node]`
#[allow(clippy::print_stdout)]
fn main() -> anyhow::Result<()> {
    stage::run_if_asked();
    let options = match std::env::args().nth(1).as_deref() {
        None => Options::default(),
        Some("--node") => Options::with_node(),
        Some(other) => anyhow::bail!("unknown argument {other}; known: --node"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cluster = runtime.block_on(Cluster::start(options))?;
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    tools::say(&format!("kubectl is {}; the cluster ends with its input (Ctrl-D)", cluster.kubectl_path().display()));
    while std::io::stdin().read(&mut [0; 64])? > 0 {}
    Ok(())
}
