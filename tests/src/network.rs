//! Sockets inside of a cluster's network, held by this process: servers that pods and the node reach, and clients of
//! what listens there.
//!
//! A socket belongs to the network in which its thread was when it was made, whoever uses it later. So a thread enters
//! the network, makes the socket, and ends.

use std::{
    fs::File,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::Arc,
};

use anyhow::{Context, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::folder::Folder;

/// The network of a cluster.
#[derive(Debug, Clone)]
pub struct Network(Arc<File>);

impl Network {
    /// The network of the cluster with this data folder.
    pub(crate) fn of(folder: &Folder) -> anyhow::Result<Self> {
        let pid = std::fs::read_to_string(folder.init_pid()).context("the cluster has not started")?;
        let path = format!("/proc/{}/ns/net", pid.trim());
        Ok(Self(Arc::new(File::open(&path).with_context(|| format!("open {path}: has the cluster ended?"))?)))
    }

    /// A listener for Tokio.
    ///
    /// # Errors
    /// The address is taken, or the network cannot be entered: that needs root.
    pub fn listen(&self, address: SocketAddr) -> anyhow::Result<tokio::net::TcpListener> {
        let listener = self.within(|| TcpListener::bind(address))?.with_context(|| format!("listen on {address}"))?;
        listener.set_nonblocking(true)?;
        Ok(tokio::net::TcpListener::from_std(listener)?)
    }

    /// A connection for Tokio. Everything in there is on one machine: an answer to the connect takes no time.
    ///
    /// # Errors
    /// Nobody listens, or the network cannot be entered.
    pub fn connect(&self, address: SocketAddr) -> anyhow::Result<tokio::net::TcpStream> {
        let stream = self.within(|| TcpStream::connect(address))?.with_context(|| format!("connect to {address}"))?;
        stream.set_nonblocking(true)?;
        Ok(tokio::net::TcpStream::from_std(stream)?)
    }

    fn within<T: Send>(&self, make: impl FnOnce() -> io::Result<T> + Send) -> anyhow::Result<io::Result<T>> {
        let enter_and_make = || {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
                .context("enter the cluster's network")?;
            Ok(make())
        };
        std::thread::scope(|scope| scope.spawn(enter_and_make).join())
            .map_err(|_| anyhow!("the thread inside of the cluster's network panicked"))?
    }
}
