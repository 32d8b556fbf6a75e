//! Connects the hosts of a group: every socket is open and proven before the query starts.

use std::collections::HashMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::error::PeerHost;
use crate::plan::{ConnectionPurpose, FilterJob, JoinHello};
use crate::token::{self, JoinAnswer};

/// Pause between two checks of the listener, and between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(10);

/// Time limit of one attempt to connect.
const TRY: Duration = Duration::from_secs(2);

/// Most connections that prove themselves at a time. More wait in the kernel's queue.
const UNPROVEN: usize = 64;

/// Connections by their purpose, with the host at the other end.
pub(crate) type JoinedConnections = HashMap<ConnectionPurpose, (TcpStream, usize)>;

/// Opens this host's connections, and waits for those that the others open.
///
/// # Errors
/// Returns an error if a host is missing, has another token, or was started with other arguments.
pub(crate) fn join(job: &FilterJob) -> Result<JoinedConnections, Error> {
    let address = job.address(job.host);
    let what = || format!("listen at {address}");
    let listener = TcpListener::bind(address).map_err(|error| Error::io(what(), error))?;
    listener.set_nonblocking(true).map_err(|error| Error::io(what(), error))?;
    let until = Instant::now() + job.join;
    let (found, arrivals) = channel();
    let mut connections = JoinedConnections::new();
    // Connects on its own thread, because two hosts that wait for each other would wait forever.
    let connector = {
        let (job, found) = (job.clone(), found.clone());
        thread::spawn(move || connect_all(&job, until, &found))
    };
    let expected = job.incoming();
    let mut acceptor = ConnectionAcceptor { job, found, waiting: Vec::new() };
    let wanted = expected.len() + job.outgoing().len();
    while connections.len() < wanted {
        acceptor.open(&listener)?;
        for arrival in arrivals.try_iter() {
            let (purpose, stream, peer) = arrival?;
            if connections.insert(purpose, (stream, peer)).is_some() {
                return Err(Error::protocol(job.peer(peer), "it connected twice"));
            }
        }
        if Instant::now() > until {
            let missing = expected.iter().find(|(purpose, _)| !connections.contains_key(purpose));
            let absent = |host| absent(job, host, "it did not connect, or without the token");
            // If none is missing, the connector reports the host that it cannot reach.
            match missing.or(job.outgoing().iter().find(|(purpose, _)| !connections.contains_key(purpose))) {
                Some((_, host)) => return Err(absent(*host)),
                None => break,
            }
        }
        thread::sleep(PAUSE);
    }
    // The connector has sent its last connection, or its error.
    drop(connector.join());
    Ok(connections)
}

fn absent(job: &FilterJob, host: usize, why: impl ToString) -> Error {
    Error::Absent { peer: job.peer(host), within: job.join, why: why.to_string() }
}

type JoinResult = Result<(ConnectionPurpose, TcpStream, usize), Error>;

/// The accepting side. Each connection proves itself on its own thread, so that a stranger delays no peer.
struct ConnectionAcceptor<'a> {
    job: &'a FilterJob,
    found: Sender<JoinResult>,
    waiting: Vec<thread::JoinHandle<()>>,
}

impl ConnectionAcceptor<'_> {
    /// Accepts the connections that wait at the listener.
    fn open(&mut self, listener: &TcpListener) -> Result<(), Error> {
        self.waiting.retain(|one| !one.is_finished());
        while self.waiting.len() < UNPROVEN {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (job, found) = (self.job.clone(), self.found.clone());
                    self.waiting.push(thread::spawn(move || greet(&job, stream, &found)));
                }
                // There is none, or it was closed again.
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(Error::io("accept a connection", error)),
            }
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}

/// Proves one connection. One that fails is dropped without an effect on the query, because a stranger may have opened
/// it.
fn greet(job: &FilterJob, stream: TcpStream, found: &Sender<JoinResult>) {
    let expected = job.incoming();
    let of = |hello: &JoinHello| expected.iter().find(|(purpose, _)| job.hello(*purpose) == *hello);
    let judge =
        |hello: &JoinHello| if of(hello).is_some() { JoinAnswer::Welcome } else { JoinAnswer::Differs };
    let Ok(()) = stream.set_nonblocking(false) else { return };
    let Ok((hello, JoinAnswer::Welcome)) = token::accept(&stream, &job.token, judge) else { return };
    if let Some((purpose, host)) = of(&hello) {
        // Joining may have ended before.
        drop(found.send(Ok((*purpose, stream, *host))));
    }
}

fn connect_all(job: &FilterJob, until: Instant, found: &Sender<JoinResult>) {
    for (purpose, host) in job.outgoing() {
        let made = connect(job, purpose, host, until).map(|stream| (purpose, stream, host));
        let is_bad = made.is_err();
        if found.send(made).is_err() || is_bad {
            return;
        }
    }
}

/// Connects to another host, and retries until it listens.
fn connect(
    job: &FilterJob,
    purpose: ConnectionPurpose,
    host: usize,
    until: Instant,
) -> Result<TcpStream, Error> {
    let peer: PeerHost = job.peer(host);
    loop {
        let tried = TcpStream::connect_timeout(&job.address(host), TRY).and_then(|stream| {
            let answer = token::connect(&stream, &job.token, &job.hello(purpose))?;
            Ok((stream, answer))
        });
        match tried {
            Ok((stream, JoinAnswer::Welcome)) => return Ok(stream),
            Ok((_, JoinAnswer::Refused)) => return Err(Error::Refused(peer)),
            Ok((_, JoinAnswer::Differs)) => return Err(Error::Differs(peer)),
            Err(error) if Instant::now() > until => return Err(absent(job, host, error)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
