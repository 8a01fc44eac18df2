//! The way from outside of the namespaces to the API server: loopback port → socket in the data folder → loopback port
//! inside. A socket's name crosses network namespaces, a port does not.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};

/// Outside: sends each connection to the socket.
pub(crate) async fn outside(listener: TcpListener, socket: PathBuf) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let _ = client.set_nodelay(true);
                let socket = socket.clone();
                tokio::spawn(async move { join(client, UnixStream::connect(socket).await).await });
            }
            Err(_) => pause().await,
        }
    }
}

/// Inside: sends each connection to the server.
pub(crate) async fn inside(listener: UnixListener, server: SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await;
                    let server = server.inspect(|server| drop(server.set_nodelay(true)));
                    join(client, server).await;
                });
            }
            Err(_) => pause().await,
        }
    }
}

/// An accept fails for want of file descriptors; trying again at once would only burn the processor.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A server that cannot be reached closes the client's connection, which is how it would look without a relay.
async fn join(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    server: io::Result<impl AsyncRead + AsyncWrite + Unpin>,
) {
    if let Ok(mut server) = server {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
