//! An agent's end of a relay: an entry for connections, or an exit.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::QUEUE;
use super::connection::ConnectionTable;
use super::wire::{RelayFrame, RelayMessage};

/// How long a connection waits for an exit. Both ends of a copy begin at almost the same time.
const EXIT_WAIT: Duration = Duration::from_secs(30);
/// The pause after a failure to accept a connection.
const AGAIN: Duration = Duration::from_millis(200);

/// An agent's end of a relay. It relays nothing before its copy has opened an entry or an exit.
#[derive(Default)]
pub struct RelayEnd {
    /// `None` outside of a session.
    session: Mutex<Option<RelaySession>>,
    connections: ConnectionTable,
    /// The number of the next connection to the entry.
    next: AtomicU32,
    exit: watch::Sender<Option<SocketAddr>>,
}

/// The state of a relay's end within a session.
#[derive(Clone)]
struct RelaySession {
    out: Sender<RelayFrame>,
    runtime: Handle,
}

/// A port on loopback that accepts connections to relay. Dropping it closes the port; existing connections continue.
pub struct RelayEntry {
    pub address: SocketAddr,
    task: AbortHandle,
}

impl Drop for RelayEntry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The address to which connections are relayed, until this is dropped. Existing connections continue.
pub struct RelayExit(Arc<RelayEnd>);

impl Drop for RelayExit {
    fn drop(&mut self) {
        self.0.exit.send_replace(None);
    }
}

impl RelayEnd {
    /// Begins a session. Must be called within the session's event loop. Returns the frames to send.
    pub(crate) fn attach(&self) -> Receiver<RelayFrame> {
        let (out, frames) = channel(QUEUE);
        *self.session.lock() = Some(RelaySession { out, runtime: Handle::current() });
        frames
    }

    /// Ends the session. The tasks of connections end with its event loop.
    pub(crate) fn detach(&self) {
        *self.session.lock() = None;
        self.connections.clear();
    }

    /// Opens an entry.
    ///
    /// # Errors
    /// Returns an error if no loopback port can be opened, or if there is no session.
    pub fn enter(self: &Arc<Self>) -> Result<RelayEntry, String> {
        let failed = |error: std::io::Error| format!("cannot open a port on loopback for the relay: {error}");
        let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let session = self.session.lock().clone();
        let session = session.ok_or_else(|| "a relay needs a session".to_owned())?;
        let (relay, runtime) = (Arc::clone(self), session.runtime.clone());
        let task = runtime.spawn(async move { relay.accept_all(listener, &session).await });
        Ok(RelayEntry { address, task: task.abort_handle() })
    }

    /// Makes `at` the destination of relayed connections.
    pub fn exit_at(self: &Arc<Self>, at: SocketAddr) -> RelayExit {
        self.exit.send_replace(Some(at));
        RelayExit(Arc::clone(self))
    }

    /// Handles a frame from the controller. Never waits.
    pub(crate) fn take(self: &Arc<Self>, frame: RelayFrame) -> Result<(), &'static str> {
        let number = frame.connection;
        match (frame.message, self.connections.get(number)) {
            (RelayMessage::Open, None) => self.opened_there(number),
            (RelayMessage::Open, Some(_)) => Err("a relayed connection is opened twice"),
            // The connection has ended here, and frames for it were still on their way.
            (_, None) => Ok(()),
            (RelayMessage::Data(bytes), Some(connection)) => connection.take(bytes),
            (RelayMessage::Taken(cost), Some(connection)) => connection.give_back(cost),
            (RelayMessage::End, Some(connection)) => {
                connection.end();
                Ok(())
            }
        }
    }

    /// Handles a new connection at the other end's entry.
    fn opened_there(self: &Arc<Self>, number: u32) -> Result<(), &'static str> {
        let Some(RelaySession { out, runtime }) = self.session.lock().clone() else { return Ok(()) };
        let Some((connection, incoming)) = self.connections.add(number) else {
            // Some connections that have ended at the other end may still be active here.
            let end = RelayFrame { connection: number, message: RelayMessage::End };
            return out.try_send(end).map_err(|_| "too many connections are relayed");
        };
        let relay = Arc::clone(self);
        runtime.spawn(async move {
            match relay.connect().await {
                Some(stream) => connection.carry(stream, incoming, &out).await,
                None => connection.refuse(&out).await,
            }
            relay.connections.remove(number);
        });
        Ok(())
    }

    /// Connects to the exit, and waits for the exit if necessary. Returns `None` if there is no exit, or if nothing
    /// listens there.
    async fn connect(&self) -> Option<TcpStream> {
        let mut exit = self.exit.subscribe();
        let connecting = async {
            let at = exit.wait_for(Option::is_some).await.ok().and_then(|at| *at)?;
            TcpStream::connect(at).await.ok()
        };
        timeout(EXIT_WAIT, connecting).await.ok().flatten()
    }

    /// Accepts connections to the entry until the task is aborted.
    async fn accept_all(self: &Arc<Self>, listener: StdTcpListener, session: &RelaySession) {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.opened_here(stream, session),
                // For example, the process has run out of descriptors.
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// Relays a connection to the entry. Closes it if there are too many.
    fn opened_here(self: &Arc<Self>, stream: TcpStream, session: &RelaySession) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some((connection, incoming)) = self.connections.add(number) else { return };
        let (relay, out) = (Arc::clone(self), session.out.clone());
        session.runtime.spawn(async move {
            let open = RelayFrame { connection: number, message: RelayMessage::Open };
            if out.send(open).await.is_ok() {
                connection.carry(stream, incoming, &out).await;
            }
            relay.connections.remove(number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOST;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_too_many_ends_and_the_session_goes_on() {
        let relay = Arc::<RelayEnd>::default();
        let mut frames = relay.attach();
        let most = u32::try_from(MOST).unwrap();
        for connection in 0..=most {
            relay.take(RelayFrame { connection, message: RelayMessage::Open }).unwrap();
        }
        let end = RelayFrame { connection: most, message: RelayMessage::End };
        assert_eq!(frames.recv().await, Some(end));
        let late = RelayFrame { connection: most, message: RelayMessage::Data(vec![0]) };
        assert_eq!(relay.take(late), Ok(()), "what was on its way");
    }
}
