//! The server's ports for the flows of a trial, and how a client finds them.

mod first_free;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use landspeed_record::Settings;
use landspeed_transport::settings::{TRANSPORT, with};
use landspeed_transport::{Listener, ProofKey, ReservedPort, TRANSPORTS, Transport, port_offset};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::Error;
use crate::app::BlockServices;

/// The transport that carries the signals of every trial.
pub(crate) const SIGNALS: &str = "tcp";
/// The number of attempts to find a port number that is free for both signals and data. A number that is free for TCP
/// is seldom taken for another protocol.
const TRIES: usize = 16;

pub(crate) fn transport(name: &str) -> Result<&'static dyn Transport, Error> {
    landspeed_transport::find(name).ok_or_else(|| {
        let names: Vec<_> = TRANSPORTS.iter().map(|transport| transport.name()).collect();
        Error::spec("transport", format!("there is none called {name}; there are {}", names.join(", ")))
    })
}

pub(crate) fn plain() -> Settings {
    single_messages(&with(&[(&TRANSPORT, SIGNALS)]))
}

/// Returns `settings` changed for flows that carry one message at a time.
pub(crate) fn single_messages(settings: &Settings) -> Settings {
    let one =
        transport(TRANSPORT.of(settings)).map_or(&[][..], |transport| transport.about().single_messages);
    let mut settings = settings.clone();
    settings.extend(one.iter().map(|(factor, value)| ((*factor).to_owned(), (*value).to_owned())));
    settings
}

/// Returns the address of the data flows over `data` in a session whose signal flow uses the address `signals`.
fn data_address(data: &dyn Transport, signals: SocketAddr) -> Result<SocketAddr, Error> {
    let number = signals.port().checked_add(port_offset(data));
    let number = number.ok_or_else(|| Error::spec("at", format!("no port follows {}", signals.port())))?;
    Ok(with_port(signals, number))
}

/// Returns `address` with the port number `port`. The zone of a link-local address is kept.
fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

type ReservedDataPorts = Vec<(&'static str, Box<dyn ReservedPort>)>;

/// The ports of one session's trials: one for the signals, and one for each other transport. Between trials the ports
/// are reserved but do not listen.
pub struct DataPort {
    signals: Box<dyn ReservedPort>,
    /// The data port of each transport other than the signals' own, which uses the signals' port.
    data: ReservedDataPorts,
    key: ProofKey,
    /// Services of an application that keep running after a trial. They end when the port is dropped.
    living: Arc<BlockServices>,
}

impl DataPort {
    /// Reserves free ports of `address` for signals and for data flows over `transports`. Flows must prove `key`.
    /// Transports that are not listed need not work on this host.
    ///
    /// # Errors
    /// Returns [`Error::Transport`] if a port of `address` cannot be reserved, and [`Error::Spec`] for an unknown
    /// transport.
    pub fn open(address: IpAddr, transports: &[impl AsRef<str>], key: ProofKey) -> Result<DataPort, Error> {
        Self::open_at(SocketAddr::new(address, 0), transports, key)
    }

    /// Reserves the port `at` for signals, and ports for data flows over `transports`, which must prove `key`. The
    /// address may have a zone, which a link-local address needs. Port zero leaves the choice to the kernel.
    ///
    /// # Errors
    /// Returns [`Error::Transport`] if a port cannot be reserved, and [`Error::Spec`] for an unknown transport.
    pub fn open_at(at: SocketAddr, transports: &[impl AsRef<str>], key: ProofKey) -> Result<DataPort, Error> {
        let transports: Result<Vec<_>, _> = transports.iter().map(|name| transport(name.as_ref())).collect();
        DataPort::hold(at, &transports?, key)
    }

    /// Returns a replacement of this port with the same number, which serves `transports` in addition to this port's
    /// own transports.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] for an unknown transport or for a key other than this port's, and [`Error::Transport`]
    /// if a port cannot be reserved.
    pub fn with(&self, transports: &[impl AsRef<str>], key: ProofKey) -> Result<DataPort, Error> {
        if self.key != key {
            let why = format!("{} serves other hosts already: choose another data port", self.port());
            return Err(Error::spec("port", why));
        }
        let own = self.data.iter().map(|(name, _)| *name);
        let all: BTreeSet<&str> = own.chain(transports.iter().map(AsRef::as_ref)).collect();
        let port = DataPort::open_at(self.signals.address(), &all.into_iter().collect::<Vec<_>>(), key)?;
        Ok(DataPort { living: self.living(), ..port })
    }

    fn hold(at: SocketAddr, transports: &[&dyn Transport], key: ProofKey) -> Result<DataPort, Error> {
        let mut last = None;
        let tries = if at.port() == 0 { TRIES } else { 1 };
        for attempt in 1..=tries {
            let signals = transport(SIGNALS)?.reserve(at)?;
            let claims = claim_data(transports, signals.address());
            if attempt < tries && claims.is_none() {
                continue;
            }
            match reserve_data(transports, signals.address()) {
                Ok(data) => return Ok(DataPort { signals, data, key, living: Arc::default() }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("there was a try"))
    }

    pub(crate) fn living(&self) -> Arc<BlockServices> {
        Arc::clone(&self.living)
    }

    /// Returns the port number of the signal flow.
    pub fn port(&self) -> u16 {
        self.address().port()
    }

    /// Returns the address of the signal flow, from which those of the data flows are derived ([`ClientPlan::towards`]).
    pub fn address(&self) -> SocketAddr {
        self.signals.address()
    }

    /// Starts to listen for data flows with these settings. The signal flow arrives at the same listener if it uses
    /// the same transport; otherwise `listen_for_signals` accepts it.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] if no port of the settings' transport is open, and [`Error::Transport`] if the kernel
    /// refuses.
    pub fn listen(&self, settings: &Settings) -> Result<Box<dyn Listener>, Error> {
        let asked = TRANSPORT.of(settings);
        if asked == SIGNALS {
            return Ok(self.signals.listen(settings, &self.key)?);
        }
        let port = self.data.iter().find(|(name, _)| *name == asked).map(|(_, port)| port);
        let missing = || Error::spec("transport", format!("no data port of {asked} is open"));
        Ok(port.ok_or_else(missing)?.listen(settings, &self.key)?)
    }

    /// Starts to listen for flows of a transport without a reserved port. The port number is derived from this port's
    /// number.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] for an unknown transport or if another socket has the port, and [`Error::Transport`] if
    /// the kernel refuses.
    pub fn listen_beside(&self, settings: &Settings) -> Result<Box<dyn Listener>, Error> {
        let data = transport(TRANSPORT.of(settings))?;
        let at = data_address(data, self.address())?;
        let taken = || Error::spec("port", format!("another program has {at}, or one near it"));
        let _claimed = claim_data(&[data], self.address()).ok_or_else(taken)?;
        Ok(data.reserve(at)?.listen(settings, &self.key)?)
    }

    /// Starts to listen for the signal flow only.
    pub(crate) fn listen_for_signals(&self) -> Result<Box<dyn Listener>, Error> {
        Ok(self.signals.listen(&plain(), &self.key)?)
    }
}

/// Returns the transports whose data flows have a port of their own: all except the signals' one.
fn apart<'a>(transports: &'a [&'a dyn Transport]) -> impl Iterator<Item = &'a dyn Transport> {
    transports.iter().copied().filter(|transport| transport.name() != SIGNALS)
}

/// Claims the data ports; `None` if another socket has one of them. The kernel would let this process bind a port that
/// another landspeed has only reserved, because a reserved port must accept its listener. The two would then share the
/// port.
fn claim_data(transports: &[&dyn Transport], signals: SocketAddr) -> Option<Vec<OwnedFd>> {
    let ports: BTreeSet<SocketAddr> =
        apart(transports).filter_map(|data| data_address(data, signals).ok()).collect();
    let claims = ports.into_iter().flat_map(|at| {
        // The signals' own port is already reserved for TCP.
        let tcp = (at.port() != signals.port()).then(|| claim(at, SocketType::STREAM));
        tcp.into_iter().chain([claim(at, SocketType::DGRAM)])
    });
    claims.collect::<Result<_, _>>().ok()
}

/// Binds a socket to a port that no other socket has. While it is open, the port can be reserved, and no other session
/// can claim it.
fn claim(at: SocketAddr, kind: SocketType) -> rustix::io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &at)?;
    // A socket that has one of these options before the bind would share the port of another session.
    if kind == SocketType::STREAM {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    } else {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    Ok(socket)
}

/// Reserves a data port for each of `transports` except the signals' own, whose data use the signals' port.
fn reserve_data(transports: &[&dyn Transport], signals: SocketAddr) -> Result<ReservedDataPorts, Error> {
    apart(transports).map(|data| Ok((data.name(), data.reserve(data_address(data, signals)?)?))).collect()
}

impl std::fmt::Debug for DataPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("DataPort");
        shown.field("address", &self.signals.address());
        shown.field("data", &self.data.iter().map(|(name, _)| name).collect::<Vec<_>>());
        shown.finish_non_exhaustive()
    }
}

/// How a client reaches its server.
#[derive(Clone)]
pub struct ClientPlan {
    /// The address of the server's signal port. The addresses of the data ports are derived from it.
    pub server: SocketAddr,
    /// The first source port. Flow n uses this port plus n, and the signal flow uses the port after that of the last
    /// flow. Zero lets the kernel choose.
    pub source_port: u16,
    /// The session's key, which every flow proves.
    pub key: ProofKey,
}

impl ClientPlan {
    /// Returns the address of the server's data port for flows over `transport`.
    ///
    /// # Errors
    /// Returns [`Error::Spec`] if its number would be too large.
    pub fn towards(&self, transport: &dyn Transport) -> Result<SocketAddr, Error> {
        data_address(transport, self.server)
    }
}

impl std::fmt::Debug for ClientPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientPlan")
            .field("server", &self.server)
            .field("source_port", &self.source_port)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::Ipv4Addr;

    use landspeed_record::factor::Factor;
    use landspeed_transport::{ConnectRequest, Delivery, Flow, Patience, TransportProperties};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const KEY: ProofKey = [1; 32];

    /// A transport that can reserve ports and nothing else.
    struct FakeTransport {
        about: &'static TransportProperties,
        binds: bool,
    }

    const OURS: TransportProperties = TransportProperties {
        name: "fake",
        line: "ports and nothing else",
        delivery: Delivery::Stream,
        protocol: "ours",
        single_messages: &[],
        headlines: &[],
        details: &[],
    };
    const OF_TCP: TransportProperties = TransportProperties { protocol: "tcp", ..OURS };

    impl Transport for FakeTransport {
        fn about(&self) -> &'static TransportProperties {
            self.about
        }

        fn factors(&self) -> Vec<&'static Factor> {
            Vec::new()
        }

        fn can_run(&self, _: &Settings) -> Result<(), String> {
            Ok(())
        }

        fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, landspeed_transport::Error> {
            let (operation, object) = ("bind to", at.to_string());
            let source = io::ErrorKind::PermissionDenied.into();
            let refused =
                landspeed_transport::Error::Refused { operation, object, source, remedy: "; that is a test" };
            let space = if self.about.protocol == "tcp" { "tcp" } else { "udp" };
            if self.binds { transport(space).expect("registered").reserve(at) } else { Err(refused) }
        }

        fn connect(
            &self,
            _: &ConnectRequest<'_>,
            _: &Patience<'_>,
        ) -> Result<Box<dyn Flow>, landspeed_transport::Error> {
            unreachable!("nobody calls")
        }
    }

    fn held(transport: &dyn Transport) -> (u16, u16) {
        let port = DataPort::hold(SocketAddr::new(HERE, 0), &[transport], KEY).expect("a port on loopback");
        let data = port.data.first().map_or(&port.signals, |(_, port)| port).address();
        let plan = ClientPlan { server: port.signals.address(), source_port: 0, key: KEY };
        assert_eq!(plan.towards(transport).expect("an address"), data, "the client finds it");
        (port.port(), data.port())
    }

    #[test]
    fn data_have_the_signals_number_in_a_space_of_their_own_and_the_next_in_the_same() {
        for name in ["tcp", "udp"] {
            let (signals, data) = held(transport(name).expect("registered"));
            assert_eq!(signals, data, "{name}");
        }
        let (signals, data) = held(&FakeTransport { about: &OURS, binds: true });
        assert_eq!(signals, data);
        let (signals, data) = held(&FakeTransport { about: &OF_TCP, binds: true });
        let of_tcp = TRANSPORTS.iter().filter(|row| row.about().protocol == "tcp").count();
        assert_eq!(usize::from(data - signals), of_tcp, "behind those of the table");
    }

    #[test]
    fn a_transport_that_cannot_bind_leaves_the_others_usable() {
        let broken = FakeTransport { about: &OURS, binds: false };
        let all: [&dyn Transport; 3] = [TRANSPORTS[0], &broken, TRANSPORTS[1]];
        for transport in all {
            match DataPort::hold(SocketAddr::new(HERE, 0), &[transport], KEY) {
                Ok(_) => assert_ne!(transport.name(), broken.name()),
                Err(error) => {
                    assert_eq!(transport.name(), broken.name(), "{error}");
                    assert!(error.to_string().starts_with("cannot bind to 127.0.0.1:"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_port_serves_its_own_transports_only() {
        let port = DataPort::open(HERE, &["tcp"], KEY).expect("a port on loopback");
        let refused =
            port.listen(&with(&[(&TRANSPORT, "udp")])).err().expect("another transport").to_string();
        assert_eq!(refused, "transport: no data port of udp is open");
        let refused = DataPort::open(HERE, &["pigeon"], KEY).expect_err("no transport").to_string();
        assert!(refused.contains("there are tcp, udp"), "{refused}");
    }

    /// The reserved socket allows other sockets on its port, because its own listener needs it too.
    #[test]
    fn a_port_that_another_session_has_reserved_counts_as_taken() {
        let tls = [transport("tls").expect("registered")];
        let held = transport("tcp").expect("registered").reserve(SocketAddr::new(HERE, 0)).expect("a port");
        let before = |at: SocketAddr| with_port(at, at.port() - port_offset(tls[0]));
        assert!(claim_data(&tls, before(held.address())).is_none());
        let mut others = (0..1_000).map(|n| SocketAddr::new(HERE, 21_000 + 8 * n));
        assert!(others.any(|at| claim_data(&tls, at).is_some()), "some ports are free");
    }

    /// If two sessions claim a port at the same time, only one gets it.
    #[test]
    fn a_claimed_port_can_be_reserved_only_by_its_claimant() {
        let all = ["tls", "udp", "udt"].map(|name| transport(name).expect("registered"));
        let claims = |at| Some((claim(at, SocketType::STREAM).ok()?, claim_data(&all, at)?));
        let mut numbers = (0..1_000).map(|n| SocketAddr::new(HERE, 19_000 + 8 * n));
        let (at, claimed) = numbers.find_map(|at| Some((at, claims(at)?))).expect("some ports are free");
        assert!(claim(at, SocketType::STREAM).is_err() && claim_data(&all, at).is_none());
        let port = DataPort::hold(at, &all, KEY).expect("its own claims do not stand in its way");
        drop(claimed);
        assert!(claim(at, SocketType::STREAM).is_err() && claim_data(&all, at).is_none());
        for name in ["tcp", "tls", "udp", "udt"] {
            port.listen(&with(&[(&TRANSPORT, name)])).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    /// A running copy gets flows of another transport.
    #[test]
    fn a_listening_port_listens_for_another_transport_once_at_a_time() {
        let (tls, udt) = (with(&[(&TRANSPORT, "tls")]), with(&[(&TRANSPORT, "tls-udt")]));
        let is_free = |at: &SocketAddr| DataPort::open_at(*at, &["tls", "tls-udt"], KEY).is_ok();
        let at = (0..400).map(|n| SocketAddr::new(HERE, 29_000 + 8 * n)).find(is_free).expect("free ports");
        let port = DataPort::open_at(at, &["tls"], KEY).expect("free again");
        let _own = port.listen(&tls).expect("it listens");
        let other = port.listen_beside(&udt).expect("it listens beside");
        let taken = port.listen_beside(&udt).err().expect("the first one has it").to_string();
        assert!(taken.contains(&(at.port() + 3).to_string()), "{taken}");
        drop(other);
        port.listen_beside(&udt).expect("free again");
    }

    #[test]
    fn a_chosen_port_takes_up_further_transports_and_no_other_key() {
        // These numbers are below the ports that the kernel hands out to other tests.
        let all = ["tcp", "udp", "mptcp", "udt"];
        let is_free = |at: &SocketAddr| DataPort::open_at(*at, &all, KEY).is_ok();
        let at = (0..1_000).map(|n| SocketAddr::new(HERE, 21_000 + 8 * n)).find(is_free).expect("free ports");
        let chosen = DataPort::open_at(at, &["tcp"], KEY).expect("free again");
        assert_eq!(chosen.port(), at.port());
        let more = chosen.with(&["udp", "mptcp"], KEY).expect("beside the first");
        let more = more.with(&["udt"], KEY).expect("beside these");
        drop(chosen);
        assert_eq!(more.port(), at.port());
        for name in ["tcp", "udp", "mptcp", "udt"] {
            more.listen(&with(&[(&TRANSPORT, name)])).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let other = more.with(&["tcp"], [2; 32]).expect_err("another key").to_string();
        assert!(other.contains("choose another data port"), "{other}");
        let taken = std::net::TcpListener::bind(SocketAddr::new(HERE, 0)).expect("a port on loopback");
        let at = taken.local_addr().expect("its address");
        let why = DataPort::open_at(at, &["tcp"], KEY).expect_err("somebody listens there").to_string();
        assert!(why.contains(&at.port().to_string()) && why.contains("choose another"), "{why}");
    }
}
