//! The registries of the shared cluster: one for everybody, one with a password, with the same images; and fronts that
//! fail for a while.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU16, Ordering},
};

use ayatori_tests::{
    Image,
    product::scene::Scene,
    registry::{Access, Answer, Front, Registry},
};
use tokio::sync::OnceCell;

/// The host name of the registry with a password, as images name it.
pub(crate) const GUARDED: &str = "guarded.test";
/// The host name of the registry without.
pub(crate) const OPEN: &str = "open.test";

const OPEN_PORT: u16 = 5000;
const GUARDED_PORT: u16 = 5001;

struct Registries {
    open: Registry,
    /// Lives as long as the suite.
    _guarded: Registry,
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

async fn registries(scene: &Scene) -> anyhow::Result<&'static Registries> {
    static REGISTRIES: OnceCell<Registries> = OnceCell::const_new();
    let start = async || {
        let cluster = scene.cluster;
        let open = Registry::start(cluster, at(OPEN_PORT), Access::Open).await?;
        let guarded = Registry::start(cluster, at(GUARDED_PORT), Access::Guarded).await?;
        cluster.name_registry(OPEN, open.address())?;
        cluster.name_registry(GUARDED, guarded.address())?;
        Ok(Registries { open, _guarded: guarded })
    };
    REGISTRIES.get_or_try_init(start).await
}

/// The name of an image of this test's own at a host; nobody has pulled it yet.
pub(crate) fn name_at(host: &str, scene: &Scene) -> String {
    format!("{host}/{}:1", scene.namespace)
}

/// Gives the registries an image of this test's own (busybox); returns its name at a host.
pub(crate) async fn push(scene: &Scene, host: &str) -> anyhow::Result<String> {
    let name = name_at(host, scene);
    registries(scene).await?.open.push(&Image::busybox_as(&name)?).await?;
    Ok(name)
}

/// A front before the registry, and an image of this test's own, as it is called there.
pub(crate) async fn front(scene: &Scene, answer: Answer) -> anyhow::Result<(Front, String)> {
    static NEXT: AtomicU16 = AtomicU16::new(GUARDED_PORT + 1);
    let address = at(NEXT.fetch_add(1, Ordering::Relaxed));
    let front = Front::start(&registries(scene).await?.open, address, answer)?;
    let host = format!("{}.test", scene.namespace);
    scene.cluster.name_registry(&host, address)?;
    Ok((front, push(scene, &host).await?))
}
