//! Sessions over TLS on loopback, with an agent that listens in another thread of this process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use landspeed_agent::session::{
    CertificatePin, Error, Invite, LineSink, Options, Reply, Request, RequestHandler, ServeOptions, Session,
    Ticket, Token, listen,
};
use landspeed_record::units::Nanos;
use parking_lot::Mutex;

/// A handler that answers with the request that it received, and records the reason why its session ended.
#[derive(Default)]
struct RecordingHandler {
    gone: Mutex<Vec<String>>,
}

impl RequestHandler for RecordingHandler {
    fn handle(&self, request: Request) -> Reply {
        match request {
            Request::Close { port } => Reply::Listening { port },
            _ => Reply::Failed { why: "not in tests".to_owned() },
        }
    }

    fn gone(&self, why: &str) {
        self.gone.lock().push(why.to_owned());
    }
}

struct AgentThread {
    ticket: Ticket,
    handler: Arc<RecordingHandler>,
    lines: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<Result<(), Error>>,
}

impl AgentThread {
    fn start(change: impl FnOnce(&mut ServeOptions)) -> AgentThread {
        AgentThread::at("127.0.0.1:0", change)
    }

    fn at(address: &str, change: impl FnOnce(&mut ServeOptions)) -> AgentThread {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&lines);
        // Long limits, so that a busy machine does not end sessions.
        let mut options = ServeOptions {
            lease: Nanos::secs(20),
            handshake: Nanos::secs(20),
            lines: LineSink::new(move |line| sink.lock().push(line.to_owned())),
            ..ServeOptions::default()
        };
        change(&mut options);
        let handler = Arc::new(RecordingHandler::default());
        let listening =
            listen(address.parse().unwrap(), Arc::<RecordingHandler>::clone(&handler), &options).unwrap();
        let ticket = listening.ticket();
        let thread = std::thread::spawn(move || listening.run());
        AgentThread { ticket, handler, lines, thread }
    }

    fn address(&self) -> SocketAddr {
        self.ticket.invite.address
    }

    fn connect(&self) -> Result<Session, Error> {
        self.connect_with(&self.ticket.token)
    }

    fn connect_with(&self, token: &Token) -> Result<Session, Error> {
        Session::over_tls(&self.ticket.invite, token, &options())
    }

    fn said(&self, what: &str) -> bool {
        self.lines.lock().iter().any(|line| line.contains(what))
    }

    /// Waits until the agent has printed a line with `what`. It may come shortly after the line of the peer.
    fn says(&self, what: &str) {
        for _ in 0..1000 {
            if self.said(what) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{what:?} is not in {:?}", self.lines.lock());
    }

    /// Returns the result of the agent, and the reasons why its sessions ended.
    fn end(self) -> (Result<(), Error>, Vec<String>) {
        let ended = self.thread.join().unwrap();
        let gone = self.handler.gone.lock().clone();
        (ended, gone)
    }
}

fn options() -> Options {
    Options { lease: Nanos::secs(20), ..Options::default() }
}

fn works(session: &Session) -> bool {
    matches!(session.call(&Request::Close { port: 5 }), Ok(Reply::Listening { port: 5 }))
}

#[test]
fn the_pasted_line_leads_to_one_session_and_the_agent_ends_with_it() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let agent = AgentThread::at(address, |_| {});
        let pasted: Ticket = agent.ticket.reveal().parse().unwrap();
        let session = Session::over_tls(&pasted.invite, &pasted.token, &options()).unwrap();
        assert!(works(&session));
        session.close();
        let address = agent.address();
        let (ended, gone) = agent.end();
        assert!(ended.is_ok(), "{ended:?}");
        assert_eq!(gone, ["done"]);
        let error = Session::over_tls(&pasted.invite, &pasted.token, &options()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{address}: Connection refused")), "{error}");
        assert!(error.ends_with("let this port through?"), "{error}");
    }
}

#[test]
fn a_wrong_token_is_reported_on_both_ends_and_the_right_one_still_works() {
    let agent = AgentThread::start(|_| {});
    let error = agent.connect_with(&Token::random()).unwrap_err();
    assert!(matches!(error, Error::Declined { .. }));
    assert!(error.to_string().contains("wrong token: paste the line"), "{error}");
    agent.says("wrong token");
    let session = agent.connect().unwrap();
    assert!(works(&session));
    drop(session);
    assert!(agent.end().0.is_ok());
}

#[test]
fn no_number_of_wrong_tokens_ends_the_agent() {
    let agent = AgentThread::start(|_| {});
    std::thread::scope(|scope| {
        let guessing: Vec<_> =
            (0..6).map(|_| scope.spawn(|| agent.connect_with(&Token::random()).unwrap_err())).collect();
        for guess in guessing {
            assert!(guess.join().unwrap().to_string().contains("wrong token"));
        }
    });
    assert!(works(&agent.connect().unwrap()));
    assert!(agent.end().0.is_ok());
}

/// Opens connections to `at` that send nothing, from each of `sources` in turn.
fn idle(at: SocketAddr, sources: &[[u8; 4]], count: usize) -> Vec<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connect = |source: [u8; 4]| async move {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        socket.connect(at).await.unwrap().into_std().unwrap()
    };
    sources.iter().cycle().take(count).map(|source| runtime.block_on(connect(*source))).collect()
}

#[test]
fn idle_connections_do_not_lock_the_controller_out() {
    let many: Vec<[u8; 4]> = (1..=200).map(|n| [127, 0, 1, n]).collect();
    for (sources, count) in [(&[[127, 0, 0, 1]][..], 64), (&many[..64], 64), (&many[..], 200)] {
        let agent = AgentThread::start(|_| {});
        let held = idle(agent.address(), sources, count);
        let session = agent.connect().unwrap_or_else(|error| panic!("{count} idle: {error}"));
        assert!(works(&session));
        let said = agent.lines.lock().len();
        assert!(said <= 12, "{said} lines");
        session.close();
        drop(held);
        assert!(agent.end().0.is_ok());
    }
}

#[test]
fn a_wrong_pin_is_reported_on_both_ends() {
    let agent = AgentThread::start(|_| {});
    let invite = Invite { pin: CertificatePin::of(b"another certificate"), ..agent.ticket.invite };
    let error = Session::over_tls(&invite, &agent.ticket.token, &options()).unwrap_err();
    assert!(matches!(error, Error::Pin { .. }), "{error}");
    agent.says("did not take this agent's certificate");
    drop(agent.connect().unwrap());
    assert!(agent.end().0.is_ok());
}

#[test]
fn an_expired_token_is_reported_on_both_ends_and_ends_the_agent() {
    let agent = AgentThread::start(|options| options.expires = Nanos::secs(0));
    let line = agent.connect().unwrap_err().to_string();
    assert!(line.contains("the token has expired: start the agent again"), "{line}");
    let (ended, gone) = agent.end();
    assert!(matches!(ended, Err(Error::Expired)), "{ended:?}");
    assert!(gone.is_empty());
}

#[test]
fn an_agent_without_a_controller_ends() {
    let agent = AgentThread::start(|options| {
        options.expires = Nanos::millis(50);
        options.linger = Nanos::millis(50);
    });
    assert!(matches!(agent.end().0, Err(Error::Expired)));
}

#[test]
fn the_port_is_closed_once_the_controller_is_in() {
    let agent = AgentThread::start(|_| {});
    let first = agent.connect().unwrap();
    agent.says("session with");
    // The task that closes the listener is not the one that prints this line, so a connection in between is reset.
    let mut errors = (0..400).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        agent.connect().unwrap_err().to_string()
    });
    let refused = errors.find(|error| error.contains("Connection refused"));
    assert!(refused.as_ref().is_some_and(|error| error.contains("it takes one controller")), "{refused:?}");
    assert!(works(&first));
    first.close();
    assert!(agent.end().0.is_ok());
}

#[test]
fn strangers_neither_hold_the_port_nor_end_the_agent() {
    let agent = AgentThread::start(|options| options.handshake = Nanos::secs(2));
    let mut silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(agent.address()).unwrap()).collect();
    let mut loud = TcpStream::connect(agent.address()).unwrap();
    loud.write_all(b"GET / HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    agent.says("TLS: received corrupt message");
    agent.says("waited 2 s for a session");
    for stranger in &mut silent {
        // The agent closes the connection; with a FIN or a reset does not matter.
        let _ = stranger.read(&mut [0; 64]);
    }
    let session = agent.connect().unwrap();
    assert!(works(&session));
    drop(session);
    assert!(agent.end().0.is_ok());
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error =
        listen(address, Arc::new(RecordingHandler::default()), &ServeOptions::default()).err().unwrap();
    assert!(error.to_string().starts_with(&format!("cannot listen on {address}: Address already in use")));
}
