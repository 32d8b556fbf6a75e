//! An agent that a person starts by hand and that listens for its controller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Sender, channel};
use tokio_rustls::TlsAcceptor;

use crate::session::connection::PeerConnection;
use crate::session::gate::{DenialReason, TokenGate};
use crate::session::serve::{attend, event_loop};
use crate::session::strangers::{NoticeLimiter, PendingHandshakes};
use crate::session::wire::OpeningMessage;
use crate::session::zone::{at_zone, wait_until_usable};
use crate::session::{Error, Hello, Invite, RequestHandler, ServeOptions, Ticket, Token, tls};

/// Pause before the answer to a wrong token.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(1);

/// An agent that listens for the controller of its one session.
pub struct ListeningAgent {
    listener: TcpListener,
    invite: Invite,
    until: Instant,
    admission: Arc<Admission>,
}

/// Listens on `address` for one controller. Port 0 lets the kernel choose. For an unspecified address, the agent
/// listens on all addresses, and the line that it prints has the source address of the default route.
pub fn listen(
    address: SocketAddr,
    handler: Arc<dyn RequestHandler>,
    options: &ServeOptions,
) -> Result<ListeningAgent, Error> {
    let failed = |source| Error::Listen { address, source };
    wait_until_usable(&address.ip());
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let (config, pin) = tls::server()?;
    let invite = Invite { address: reachable(bound).map_err(failed)?, pin };
    let expires = Instant::now() + Duration::from(options.expires);
    let gate = TokenGate::new(Token::random(), expires);
    let until = expires + Duration::from(options.linger);
    let limiter = Mutex::new(NoticeLimiter::new(options.lines.clone()));
    let admission = Arc::new(Admission {
        gate,
        entered: Notify::new(),
        config,
        handler,
        limiter,
        options: options.clone(),
    });
    Ok(ListeningAgent { listener, invite, until, admission })
}

/// Returns `bound`, with the source address of the default route in place of an unspecified address. Sends nothing,
/// because connecting a UDP socket only selects the route.
fn reachable(bound: SocketAddr) -> std::io::Result<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return Ok(at_zone(bound.ip(), bound.port(), 0));
    }
    // Documentation addresses (RFC 5737, RFC 3849): only the default route leads there.
    let far: IpAddr = match bound {
        SocketAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        SocketAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    let probe = UdpSocket::bind(SocketAddr::new(bound.ip(), 0))?;
    probe.connect((far, 9))?;
    Ok(SocketAddr::new(probe.local_addr()?.ip(), bound.port()))
}

impl ListeningAgent {
    pub fn token(&self) -> &Token {
        self.admission.gate.token()
    }

    /// Returns the invite and the token; [`Ticket::reveal`] is the line to print.
    pub fn ticket(&self) -> Ticket {
        Ticket { invite: self.invite, token: self.token().clone() }
    }

    /// Waits for the controller and serves it to the end. Closes the port once the controller is admitted.
    ///
    /// # Errors
    /// Returns an error if the session ends without the controller's goodbye, and [`Error::Expired`] if the token
    /// expires unused.
    pub fn run(self) -> Result<(), Error> {
        let runtime = event_loop()?;
        let served = runtime.block_on(self.serve());
        runtime.shutdown_background();
        served
    }

    async fn serve(self) -> Result<(), Error> {
        let listen = tokio::net::TcpListener::from_std(self.listener);
        let listener = listen.map_err(Error::system("listen"))?;
        let (over, mut ended) = channel(1);
        let mut handshakes = PendingHandshakes::default();
        while !self.admission.gate.taken() {
            tokio::select! {
                outcome = ended.recv() => return outcome.unwrap_or(Ok(())),
                () = self.admission.entered.notified() => {}
                () = tokio::time::sleep_until(self.until.into()) => return Err(Error::Expired),
                arrived = listener.accept() => match arrived {
                    Ok((tcp, from)) => self.admission.receive(tcp, from, &mut handshakes, &over),
                    Err(error) => {
                        self.admission.say(&format!("cannot take a connection: {error}"));
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                }
            }
        }
        // Closes the port: no other controller is admitted, and connections of strangers must not disturb the
        // measurements.
        drop(listener);
        drop(over);
        let vanished = || Error::Ended { why: "the controller went away in its handshake".to_owned() };
        ended.recv().await.unwrap_or_else(|| Err(vanished()))
    }
}

struct Admission {
    gate: TokenGate,
    entered: Notify,
    config: Arc<ServerConfig>,
    handler: Arc<dyn RequestHandler>,
    limiter: Mutex<NoticeLimiter>,
    options: ServeOptions,
}

/// The reason why a connection did not become a session.
enum AdmissionFailure {
    /// The connection is refused and the agent keeps listening. The line is for the person who started the agent.
    Refused(String),
    Fatal(Error),
}

impl From<Error> for AdmissionFailure {
    fn from(error: Error) -> Self {
        AdmissionFailure::Refused(error.to_string())
    }
}

impl Admission {
    /// Handles a connection in a separate task. Sends an outcome that ends the agent to `over`.
    fn receive(
        self: &Arc<Self>,
        tcp: TcpStream,
        from: SocketAddr,
        handshakes: &mut PendingHandshakes,
        over: &Sender<Result<(), Error>>,
    ) {
        // If a controller was admitted since the last check, its task must not be dropped as a stranger's.
        if self.gate.taken() {
            return;
        }
        for gone in handshakes.make_room(from) {
            self.say(&format!("{gone}: dropped in its handshake: others came"));
        }
        let (admission, over) = (Arc::clone(self), over.clone());
        let task = tokio::spawn(async move {
            let admitted =
                tokio::time::timeout(admission.options.handshake.into(), admission.admit(tcp, from)).await;
            let slow = || Error::no_session(from.to_string(), admission.options.handshake);
            let outcome = match admitted.unwrap_or_else(|_| Err(slow().into())) {
                Ok((connection, peer)) => admission.attend(connection, peer).await,
                Err(AdmissionFailure::Fatal(error)) => Err(error),
                Err(AdmissionFailure::Refused(line)) => return admission.say(&line),
            };
            // The queue is full or closed only if another outcome has already ended the agent.
            let _ = over.try_send(outcome);
        });
        handshakes.add(from, task.abort_handle());
    }

    fn say(&self, line: &str) {
        self.limiter.lock().say(line, Instant::now());
    }

    async fn attend(&self, connection: PeerConnection, peer: Hello) -> Result<(), Error> {
        self.limiter.lock().sum_up();
        let lines = &self.options.lines;
        lines.say(&format!("session with {} (landspeed {})", connection.name, peer.landspeed));
        attend(connection, peer, Arc::clone(&self.handler), &self.options).await
    }

    async fn admit(
        &self,
        tcp: TcpStream,
        from: SocketAddr,
    ) -> Result<(PeerConnection, Hello), AdmissionFailure> {
        let name = from.to_string();
        let _ = tcp.set_nodelay(true);
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        let stream = acceptor.accept(tcp).await.map_err(|e| tls::explain(&name, &e))?;
        let binding = tls::binding(&name, stream.get_ref().1)?;
        let (reader, writer) = tokio::io::split(stream);
        let mut connection = PeerConnection::new(&name, reader, writer);
        if let Err(reason) = self.gate.open(Instant::now()) {
            return Err(self.deny(connection, reason).await);
        }
        let peer = connection.greet(&Hello::ours(self.options.lease)).await?;
        let OpeningMessage::Proof(proof) = connection.hear().await? else {
            return Err(connection.reject("a second hello where a proof belongs".to_owned()).await.into());
        };
        match self.gate.enter(&proof, &binding, Instant::now()) {
            Ok(proof) => {
                self.entered.notify_one();
                connection.send(&OpeningMessage::Proof(proof)).await;
                Ok((connection, peer))
            }
            Err(reason) => Err(self.deny(connection, reason).await),
        }
    }

    /// Refuses the connection with `reason`, and returns the failure to report at this end.
    async fn deny(&self, mut connection: PeerConnection, reason: DenialReason) -> AdmissionFailure {
        if reason == DenialReason::Wrong {
            tokio::time::sleep(WRONG_TOKEN_PAUSE).await;
        }
        connection.refuse(reason.why()).await;
        let from = connection.name;
        match reason {
            DenialReason::Expired => AdmissionFailure::Fatal(Error::Expired),
            _ => AdmissionFailure::Refused(format!("{from}: sent away: {}", reason.why())),
        }
    }
}
