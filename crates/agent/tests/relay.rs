//! Connections that are relayed between two agents in this process.

#[path = "common/copies.rs"]
mod copies;

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use landspeed_agent::session::{
    Options, RelayBridge, RelayEnd, RelayEntry, RelayExit, Reply, Request, RequestHandler, ServeOptions,
    Session, SessionKey, serve_socket,
};
use landspeed_agent::{Agent, CopyPermission, Permissions};
use landspeed_record::Role;
use landspeed_record::units::Nanos;

use copies::{bytes, flows, listen, receive, send};

struct RelayAgent(Arc<RelayEnd>);

impl RequestHandler for RelayAgent {
    fn handle(&self, _: Request) -> Reply {
        Reply::Done {}
    }

    fn relay(&self) -> Arc<RelayEnd> {
        Arc::clone(&self.0)
    }

    fn gone(&self, _: &str) {}
}

/// Starts an agent. Returns its end of a relay and a session with it.
fn agent(name: &str) -> (Arc<RelayEnd>, Session) {
    let relay = Arc::<RelayEnd>::default();
    let session = session(name, Arc::new(RelayAgent(Arc::clone(&relay))));
    // An answer shows that the agent has begun the session.
    assert_eq!(session.call(&Request::Probe {}).unwrap(), Reply::Done {});
    (relay, session)
}

fn session(name: &str, agent: Arc<dyn RequestHandler>) -> Session {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::spawn(move || serve_socket(theirs, agent, &ServeOptions::default()));
    Session::over_socket(name, ours, &Options::default()).unwrap()
}

/// Two agents, with an entry at one and an exit at the other.
struct RelayedPath {
    entry: RelayEntry,
    _exit: RelayExit,
    bridge: RelayBridge,
    sessions: [Session; 2],
}

impl RelayedPath {
    fn to(exit: SocketAddr) -> RelayedPath {
        let ((relay_a, a), (relay_b, b)) = (agent("a"), agent("b"));
        let (entry, exit) = (relay_a.enter().unwrap(), relay_b.exit_at(exit));
        RelayedPath { entry, _exit: exit, bridge: RelayBridge::between(&a, &b), sessions: [a, b] }
    }

    /// Connects to the entry.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.entry.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Echoes what arrives on the next connection.
fn echo(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut same = stream.try_clone().unwrap();
    std::io::copy(&mut stream, &mut same).unwrap();
}

#[test]
fn each_byte_comes_in_order_and_each_direction_ends_by_itself() {
    let (listener, address) = listener();
    let path = RelayedPath::to(address);
    thread::spawn(move || (0..8).for_each(|_| echo(&listener)));
    thread::scope(|scope| {
        for number in 0..8_u32 {
            let path = &path;
            scope.spawn(move || {
                // The data is many times as long as a window.
                let sent: Vec<u8> = (0..3_000_000).map(|n| (n * (number + 3)) as u8).collect();
                let stream = path.connect();
                let mut heard = Vec::new();
                thread::scope(|scope| {
                    scope.spawn(|| {
                        (&stream).write_all(&sent).unwrap();
                        stream.shutdown(Shutdown::Write).unwrap();
                    });
                    (&stream).read_to_end(&mut heard).unwrap();
                });
                assert!(heard == sent, "connection {number}: {} bytes", heard.len());
            });
        }
    });
    // Both sessions have passed on frames.
    let (_, spent) = path.bridge.spent();
    assert!(spent.iter().all(|one| one.processor > Nanos(0) && one.handing > Nanos(0)), "{spent:?}");
}

#[test]
fn a_connection_that_is_not_read_holds_up_its_sender_and_no_other_connection() {
    let (listener, address) = listener();
    let path = RelayedPath::to(address);
    let slow = path.connect();
    slow.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let (_not_read, _) = listener.accept().unwrap();
    let mut sent = 0;
    let error = loop {
        match (&slow).write(&[0; 65_536]) {
            Ok(length) => sent += length,
            Err(error) => break error,
        }
        assert!(sent < 256 << 20, "its sender is not held up");
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let echoed = thread::spawn(move || echo(&listener));
    let mut other = path.connect();
    other.write_all(b"hello").unwrap();
    other.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    other.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"hello");
    echoed.join().unwrap();
    // The sessions still work beside it.
    for session in &path.sessions {
        assert_eq!(session.call(&Request::Probe {}).unwrap(), Reply::Done {});
    }
}

#[test]
fn a_connection_to_nothing_ends() {
    // An unused port of a higher number could become the source port of a connection to itself.
    let path = RelayedPath::to((Ipv4Addr::LOCALHOST, 1).into());
    for _ in 0..300 {
        assert_eq!(path.connect().read(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn a_connection_ends_at_both_ends_with_the_sessions() {
    let (listener, address) = listener();
    let path = RelayedPath::to(address);
    let mut near = path.connect();
    near.write_all(b"x").unwrap();
    let (mut far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(far.read(&mut [0; 8]).unwrap(), 1);
    drop(path.sessions);
    for mut end in [near, far] {
        match end.read(&mut [0; 8]) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Otherwise the holder of an agent's token could make it connect to other hosts.
#[test]
fn the_exit_of_a_copy_is_its_own_port_whatever_address_is_named() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    std::fs::write(folders[0].path().join("file"), "text").unwrap();
    let paths = folders.each_ref().map(|folder| folder.path().to_owned());
    let permitted = |name: &str| {
        let copy = CopyPermission::beneath(&paths[..1], &paths[1..]).unwrap();
        session(name, Agent::permitting(Permissions { copy, ..Permissions::default() }))
    };
    let (a, b) = (permitted("a"), permitted("b"));
    let key = SessionKey::random();
    let Reply::Listening { port } = b.call(&listen(&key)).unwrap() else { panic!("no port") };
    let relayed = |role| {
        // Nothing listens there.
        let mut flows = flows(role, (Ipv4Addr::new(127, 0, 0, 2), port).into(), &key);
        (flows.is_relayed, flows.count) = (true, 1);
        flows
    };
    let [from, to] = paths.each_ref().map(|path| bytes(path));
    let _bridge = RelayBridge::between(&a, &b);
    let receiving = b.start(&receive(relayed(Role::Server), to));
    let sending = a.start(&send(relayed(Role::Client), from));
    let [sent, received] =
        [sending, receiving].map(|reply| reply.unwrap().wait(Duration::from_secs(60)).unwrap());
    assert!(matches!(&sent, Reply::Copied { outcome } if outcome.is_complete()), "{sent:?}");
    assert_eq!(received, Reply::Done {});
    assert_eq!(std::fs::read_to_string(paths[1].join("file")).unwrap(), "text");
}
