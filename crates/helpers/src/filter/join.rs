//! Connects the hosts of a group. Every socket is open, and its other end has proven the token, before the query
//! starts.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_proof::{DeadlineStream, receive_request, verify_server};

use crate::filter::Error;
use crate::filter::plan::{ConnectionPurpose, FilterJob, HELLO};

/// Pause between two checks of the listener, and between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(10);

/// Time limit of one attempt to connect.
const TRY: Duration = Duration::from_secs(2);

/// The time limit for the other end's proof of the token.
const PROOF_TIME: Duration = Duration::from_secs(5);

/// The largest number of accepted connections whose proofs are pending. Others wait in the kernel's queue.
const UNPROVEN: usize = 64;

/// The connections by their purpose, each with the number of the host at the other end.
pub(crate) type JoinedConnections = HashMap<ConnectionPurpose, (TcpStream, usize)>;

/// Opens this host's connections to others, and waits for the connections that others open to it.
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
    // The connector is a thread of its own, because otherwise two hosts could wait for each other forever.
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
            // A host that should have connected to this one is reported before a host to which this one should have
            // connected.
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

/// The accepting side. Each connection's proof is checked on its own thread, so that a client without the token delays
/// no other host.
struct ConnectionAcceptor<'a> {
    job: &'a FilterJob,
    found: Sender<JoinResult>,
    waiting: Vec<thread::JoinHandle<()>>,
}

impl ConnectionAcceptor<'_> {
    /// Accepts the connections that wait at the listener, up to the limit of unproven ones.
    fn open(&mut self, listener: &TcpListener) -> Result<(), Error> {
        self.waiting.retain(|one| !one.is_finished());
        while self.waiting.len() < UNPROVEN {
            match listener.accept() {
                Ok((stream, _)) => {
                    let (job, found) = (self.job.clone(), self.found.clone());
                    self.waiting.push(thread::spawn(move || greet(&job, stream, &found)));
                }
                // No connection waits, or it was closed again.
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(Error::io("accept a connection", error)),
            }
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}

/// Receives the proof of an accepted connection, and answers it. A connection that fails is dropped without an effect
/// on the query, because a stranger may have opened it.
fn greet(job: &FilterJob, stream: TcpStream, found: &Sender<JoinResult>) {
    let expected = job.incoming();
    let Ok(()) = stream.set_nonblocking(false) else { return };
    let mut timed = DeadlineStream::new(&stream, PROOF_TIME);
    let Ok(hello) = receive_request(&mut timed, job.token, HELLO as u32) else { return };
    let known = expected.iter().find(|(purpose, _)| job.hello(*purpose)[..] == hello);
    let answered = timed.write_all(&[u8::from(known.is_some())]);
    if let (Some((purpose, host)), Ok(())) = (known, answered) {
        // The send fails if joining has already ended.
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

/// Connects to another host. Retries until that host listens or the time `until` has passed.
fn connect(
    job: &FilterJob,
    purpose: ConnectionPurpose,
    host: usize,
    until: Instant,
) -> Result<TcpStream, Error> {
    loop {
        let error = match TcpStream::connect_timeout(&job.address(host), TRY) {
            Ok(stream) => match is_expected(&stream, job, purpose) {
                Ok(true) => return Ok(stream),
                Ok(false) => return Err(Error::Differs(job.peer(host))),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(Error::Refused(job.peer(host)));
                }
                Err(error) => error,
            },
            Err(error) => error,
        };
        if Instant::now() > until {
            return Err(absent(job, host, error));
        }
        thread::sleep(PAUSE);
    }
}

/// Proves the token over an opened connection. Returns false if the other host was started with other arguments.
fn is_expected(stream: &TcpStream, job: &FilterJob, purpose: ConnectionPurpose) -> io::Result<bool> {
    let mut timed = DeadlineStream::new(stream, PROOF_TIME);
    verify_server(&mut timed, job.token, &job.hello(purpose))?.confirm(&mut timed)?;
    let mut answer = [0];
    timed.read_exact(&mut answer)?;
    Ok(answer == [1])
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::mpsc::Receiver;

    use landspeed_proof::{ANSWER, Secret};

    use super::*;
    use crate::filter::{FilterApplication, ISO_PLACEMENT, IsoSurface, Placement};
    use crate::relay::{relay, replay};

    fn job(host: usize) -> FilterJob {
        let iso = IsoSurface::new(16, 4, 1).unwrap();
        FilterJob {
            host,
            hosts: (1..=3).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect(),
            port: 7000,
            token: Secret::of("salt", "filters").unwrap(),
            placement: Placement::read(ISO_PLACEMENT, iso.stages(), 3, None).unwrap(),
            units: 1,
            ahead: 1,
            parameters: String::new(),
            join: Duration::from_secs(5),
            limit: Duration::from_secs(5),
        }
    }

    /// Lets host 0 greet one connection. Returns its address, and the connection if it is proven.
    fn host() -> (SocketAddr, Receiver<JoinResult>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (found, arrivals) = channel();
        thread::spawn(move || greet(&job(0), listener.accept().unwrap().0, &found));
        (at, arrivals)
    }

    #[test]
    fn a_replayed_handshake_joins_nothing() {
        let (at, arrivals) = host();
        let (ear, relay) = relay(at);
        let stream = TcpStream::connect(ear).unwrap();
        assert!(is_expected(&stream, &job(1), ConnectionPurpose::Control(1)).unwrap());
        let (purpose, _, peer) = arrivals.recv().unwrap().unwrap();
        assert_eq!((purpose, peer), (ConnectionPurpose::Control(1), 1));
        drop(stream);
        let said = relay.join().unwrap();
        let (at, arrivals) = host();
        assert_eq!(replay(&said, at).len(), ANSWER, "the host's answer to a hello, and no more");
        assert!(arrivals.recv().is_err());
    }

    #[test]
    fn a_connection_for_another_purpose_differs() {
        let (at, _arrivals) = host();
        let stream = TcpStream::connect(at).unwrap();
        assert!(!is_expected(&stream, &job(1), ConnectionPurpose::Control(9)).unwrap());
    }
}
