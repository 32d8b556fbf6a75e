//! The controller's connection to an agent that a person started by hand.

use std::io;
use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::session::connection::{OpeningResult, PeerConnection};
use crate::session::tls;
use crate::session::token::Prover;
use crate::session::wire::OpeningMessage;
use crate::session::zone::ways;
use crate::session::{Error, Hello, Invite, Token};

/// Connects to the agent of `invite`, checks its certificate's pin, and exchanges hellos. Then each end proves to the
/// other that it knows the token.
pub(crate) async fn connect(invite: Invite, token: Token, ours: Hello) -> OpeningResult {
    let address = invite.address;
    let name = address.to_string();
    let unreachable = |source| Error::Unreachable { address, source };
    let tcp = dial(address).await.map_err(unreachable)?;
    // Requests and beats are small and must not wait for more data (Nagle's algorithm).
    tcp.set_nodelay(true).map_err(unreachable)?;
    let connector = TlsConnector::from(tls::client(invite.pin)?);
    let server = ServerName::IpAddress(address.ip().into());
    let stream = connector.connect(server, tcp).await.map_err(|e| tls::explain(&name, &e))?;
    let binding = tls::binding(&name, stream.get_ref().1)?;
    let (reader, writer) = tokio::io::split(stream);
    let mut connection = PeerConnection::new(&name, reader, writer);
    let peer = connection.greet(&ours).await?;
    connection.send(&OpeningMessage::Proof(token.prove(Prover::Controller, &binding))).await;
    let OpeningMessage::Proof(proof) = connection.hear().await? else {
        return Err(connection.reject("a second hello where a proof belongs".to_owned()).await);
    };
    if token.proves(Prover::Agent, &binding, &proof) {
        return Ok((connection, peer));
    }
    connection.refuse("the agent does not know its own token").await;
    Err(Error::Token { name })
}

/// Connects to `address`. If it is a link-local address without a zone, tries all interfaces of this host in parallel.
/// Returns the first connection, or the last error if none succeeds.
async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let mut dialled: JoinSet<_> = ways(address).into_iter().map(TcpStream::connect).collect();
    let none = "no interface of this host has a link-local address";
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, none);
    while let Some(joined) = dialled.join_next().await {
        match joined.unwrap_or_else(|broken| Err(io::Error::other(broken))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests;
