//! Finds the socket at the other end of a connection by queries to the kernel, without sending a byte through the
//! connection.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread;

use landspeed_kernel::netlink::{InetSocketId, SockDiag, netns_cookie};
use libbpf_rs::{Object, ObjectBuilder, ProgramInput};
use parking_lot::Mutex;
use rustix::thread::{CapabilitySet, LinkNameSpaceType, move_into_link_name_space};

use crate::socket::{int, option, plain};

/// The object file that build.rs makes from ends.bpf.c.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ends.bpf.o"));
/// The socket option that returns the cookie of the socket's network namespace (linux/socket.h, Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;
/// The cookie that matches any socket with the given addresses (INET_DIAG_NOCOOKIE).
const ANY: u64 = u64::MAX;
/// The capabilities needed to look a socket up in another network namespace.
const RIGHTS: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYS_ADMIN);
/// Length of the Ethernet header that precedes the input of ends.bpf.c, in bytes.
const FRAME: usize = 14;
/// Length of the input of ends.bpf.c after the header, in bytes: a length, and room for addresses and ports.
const QUESTION: usize = 4 + 36;

/// The addresses of a connection: the socket's own, then its peer's.
pub(super) type AddressPair = (SocketAddr, SocketAddr);

/// Returns the cookie of a socket's network namespace, which is unique.
fn namespace(fd: impl AsFd) -> Option<u64> {
    let mut cookie = [0; 8];
    option(fd, libc::SOL_SOCKET, SO_NETNS_COOKIE, &mut cookie).ok()?;
    Some(u64::from_ne_bytes(cookie))
}

/// The network in which a supervisor and its programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NetworkScope {
    /// The cookie of the supervisor's network namespace.
    pub(super) namespace: u64,
    /// Hash of the name of the network whose addresses are declared unique (`LANDSPEED_PATH_NET`); 0 for none.
    pub(super) net: u64,
}

impl NetworkScope {
    fn own() -> Self {
        let net = |name| {
            let mut hasher = DefaultHasher::new();
            std::ffi::OsString::hash(&name, &mut hasher);
            hasher.finish().max(1)
        };
        let net = std::env::var_os(crate::NET).filter(|name| !name.is_empty()).map_or(0, net);
        NetworkScope { namespace: netns_cookie().unwrap_or_default(), net }
    }

    fn has_one_net_with(self, other: NetworkScope) -> bool {
        self.net != 0 && self.net == other.net
    }
}

/// The network namespace of another supervisor, and descriptors from that supervisor to use the namespace.
pub(super) struct PeerNamespace {
    pub(super) place: NetworkScope,
    /// Looks up sockets of that namespace. It needs no capability.
    diag: Mutex<SockDiag>,
    entry: OwnedFd,
}

impl PeerNamespace {
    pub(super) fn new(net: u64, [diag, entry]: [OwnedFd; 2]) -> Option<Self> {
        let diag = SockDiag::of(diag)?;
        let place = NetworkScope { namespace: namespace(&diag)?, net };
        Some(PeerNamespace { place, diag: Mutex::new(diag), entry })
    }

    /// Returns the two descriptors that let another supervisor use this process's network namespace: a diag socket, and
    /// the namespace file.
    pub(super) fn handed() -> io::Result<(SockDiag, OwnedFd)> {
        let diag = SockDiag::open().map_err(io::Error::other)?;
        Ok((diag, File::open("/proc/self/ns/net")?.into()))
    }

    /// Returns the cookie of the TCP socket with these addresses in the peer's namespace.
    fn socket(&self, (own, peer): AddressPair) -> Option<u64> {
        let id = InetSocketId { local: plain(own), remote: plain(peer), interface: 0, cookie: ANY };
        let diag = self.diag.lock();
        let found = diag.tcp_flow(&id).ok()??.id;
        (found.interface == 0).then_some(found.cookie)
    }
}

/// Finds the socket at the other end of a connection, in this or another network namespace.
pub(super) struct EndFinder {
    pub(super) here: NetworkScope,
    /// True if this process has the rights to inspect other network namespaces; unset until first needed.
    may_look: OnceLock<bool>,
    programs: OnceLock<Option<Mutex<Object>>>,
}

/// A socket's cookie and its TCP sequence numbers: the next to send, and the next to receive.
#[derive(Debug, PartialEq, Eq)]
struct SequenceNumbers {
    cookie: u64,
    sent: u32,
    received: u32,
}

impl EndFinder {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(EndFinder {
            here: NetworkScope::own(),
            may_look: OnceLock::new(),
            programs: OnceLock::new(),
        })
    }

    /// Returns true if a socket is in this process's network namespace.
    pub(super) fn is_here(&self, tcp: impl AsFd) -> bool {
        namespace(tcp) == Some(self.here.namespace)
    }

    /// Returns true if this process can prove that a socket in `there` is the other end of a connection.
    pub(super) fn may_prove(&self, there: NetworkScope) -> bool {
        there.namespace == self.here.namespace || self.here.has_one_net_with(there) || self.may_look()
    }

    fn may_look(&self) -> bool {
        *self.may_look.get_or_init(|| landspeed_kernel::bpf::allowed(RIGHTS).is_ok())
    }

    /// Returns the cookie of the socket at the other end of `tcp`, if it is proven to be in the namespace `there`.
    /// `names` are the addresses of `tcp`. Within one network namespace, two addresses identify one connection, unless
    /// sockets are bound to devices or are transparent. In two namespaces, two connections may have equal addresses by
    /// chance.
    pub(super) fn other(&self, tcp: impl AsFd, names: AddressPair, there: &PeerNamespace) -> Option<u64> {
        if is_special(&tcp) {
            return None;
        }
        let cookie = there.socket((names.1, names.0))?;
        let is_proven = match there.place.namespace == self.here.namespace {
            true => true,
            false if self.here.has_one_net_with(there.place) => is_unique(names),
            false => self.is_one_connection(names, there, cookie).unwrap_or(false),
        };
        is_proven.then_some(cookie)
    }

    /// Returns true if the socket with this cookie in `there` is the other end of the local socket with the addresses
    /// `names`, by comparing their TCP sequence numbers. The initial number of each direction depends on a secret and
    /// on a clock that ticks every 64 ns, so two connections have different numbers.
    fn is_one_connection(&self, names: AddressPair, there: &PeerNamespace, cookie: u64) -> Option<bool> {
        let here = self.end(names)?;
        let theirs = inside(there, || self.end((names.1, names.0)))?;
        Some(theirs.cookie == cookie && (theirs.sent, theirs.received) == (here.received, here.sent))
    }

    /// Loads the BPF program that inspects other namespaces, in the background, so that the first connection does not
    /// wait for it. Does nothing if this process lacks the rights.
    pub(super) fn prepare(self: &Arc<Self>) {
        let own = Arc::clone(self);
        if self.programs.get().is_none() && self.may_look() {
            let _ = thread::Builder::new().spawn(move || own.programs().is_some());
        }
    }

    fn programs(&self) -> Option<&Mutex<Object>> {
        self.programs.get_or_init(|| load().ok().map(Mutex::new)).as_ref()
    }

    /// Returns the cookie and the sequence numbers of the TCP socket with these addresses in this thread's network
    /// namespace.
    fn end(&self, names: AddressPair) -> Option<SequenceNumbers> {
        let object = self.programs()?;
        let object = object.lock();
        let program = object.progs_mut().find(|program| program.name() == "ends")?;
        let asked = question(names);
        let mut answer = [0; FRAME + QUESTION];
        let input =
            ProgramInput { data_in: Some(&asked), data_out: Some(&mut answer), ..ProgramInput::default() };
        let found = program.test_run(input).ok()?.return_value == 0;
        let word = |at: usize| answer[FRAME + at..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        let cookie = u64::from_ne_bytes(*answer[FRAME..].first_chunk()?);
        found.then_some(SequenceNumbers { cookie, sent: word(8), received: word(12) })
    }
}

/// Returns true if the network namespace may have another socket with equal addresses, because this one is bound to a
/// device or transparent.
fn is_special(tcp: impl AsFd) -> bool {
    let is_on = |level, name| int(&tcp, level, name).is_ok_and(|value| value != 0);
    is_on(libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX) || is_on(libc::IPPROTO_IP, libc::IP_TRANSPARENT)
}

fn load() -> Result<Object, String> {
    landspeed_kernel::bpf::allowed(RIGHTS)?;
    landspeed_kernel::bpf::listen();
    // Copied to the heap: libelf needs an aligned image, and bytes within the binary may not be aligned.
    let image = CODE.to_vec();
    let loaded = || ObjectBuilder::default().name("ends")?.open_memory(&image)?.load();
    loaded()
        .map_err(|error: libbpf_rs::Error| landspeed_kernel::bpf::take().unwrap_or_else(|| error.to_string()))
}

/// Returns the input of the BPF program. The peer's address is the source, as in a packet from the peer.
fn question((own, peer): AddressPair) -> [u8; FRAME + QUESTION] {
    let (own, peer) = (plain(own), plain(peer));
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let ports = [peer.port().to_be_bytes(), own.port().to_be_bytes()].concat();
    let tuple = [octets(peer.ip()), octets(own.ip()), ports].concat();
    let mut all = [0; FRAME + QUESTION];
    all[FRAME..FRAME + 4].copy_from_slice(&(tuple.len() as u32).to_ne_bytes());
    all[FRAME + 4..FRAME + 4 + tuple.len()].copy_from_slice(&tuple);
    all
}

/// Returns true if no other two hosts of a network with unique addresses can have these addresses. Loopback and
/// link-local addresses exist on each host.
fn is_unique((own, peer): AddressPair) -> bool {
    let is_global = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    let (own, peer) = (plain(own).ip(), plain(peer).ip());
    own != peer && is_global(own) && is_global(peer)
}

/// Runs `work` in the network namespace `there`. It runs on a thread that then ends, so that no thread of this process
/// stays in that namespace.
fn inside<T: Send>(there: &PeerNamespace, work: impl FnOnce() -> Option<T> + Send) -> Option<T> {
    let work = || {
        move_into_link_name_space(there.entry.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        if netns_cookie().ok()? == there.place.namespace { work() } else { None }
    };
    thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, work).ok()?.join().ok()?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::socket::cookie;

    fn handed(net: u64) -> PeerNamespace {
        let (diag, entry) = PeerNamespace::handed().unwrap();
        PeerNamespace::new(net, [diag.as_fd().try_clone_to_owned().unwrap(), entry]).unwrap()
    }

    fn ends(net: u64) -> EndFinder {
        EndFinder {
            here: NetworkScope { net, ..NetworkScope::own() },
            may_look: OnceLock::new(),
            programs: OnceLock::new(),
        }
    }

    #[test]
    fn the_other_end_is_known_by_its_cookie_before_a_byte_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        let names = (server.local_addr().unwrap(), from);
        let (ends, there) = (ends(0), handed(0));
        assert!(ends.is_here(&server));
        assert_eq!(ends.other(&server, names, &there), cookie(&client));
        drop(client);
        drop(server);
        assert!(ends.other(&listener, names, &there).is_none());
    }

    #[test]
    fn a_connection_between_two_namespaces_differs_from_another_with_its_addresses() {
        if let Err(why) = load() {
            return eprintln!("SKIP a_connection_between_two_namespaces_differs_from_another: {why}");
        }
        let connection = |server: u16, client: u16| {
            let listener = TcpListener::bind(("127.0.0.1", server)).unwrap();
            let client = socket_from(client, listener.local_addr().unwrap());
            let server = listener.accept().unwrap().0;
            (server, client)
        };
        // Other programs use ports of this namespace, so the kernel chooses free ones.
        let (other, _other) = connection(0, 0);
        let names = (other.local_addr().unwrap(), other.peer_addr().unwrap());
        // A connection with the same addresses in another namespace must not be taken for the other end.
        let elsewhere = || {
            let loopback = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(loopback.unwrap().success());
            (connection(names.0.port(), names.1.port()), handed(0))
        };
        let (_there, there) = landspeed_kernel::netlink::in_throwaway(elsewhere).unwrap();
        assert!(ends(0).other(&other, names, &there).is_none());
        // A common network name does not make loopback addresses unique.
        let there = PeerNamespace { place: NetworkScope { net: 7, ..there.place }, ..there };
        assert!(ends(7).other(&other, names, &there).is_none());
    }

    #[test]
    fn in_a_network_of_unique_addresses_those_of_two_hosts_are() {
        let is_unique = |own: &str, peer: &str| is_unique((own.parse().unwrap(), peer.parse().unwrap()));
        assert!(is_unique("10.0.0.1:80", "10.0.0.2:5000") && is_unique("[fd00::1]:80", "[fd00::2]:5000"));
        assert!(!is_unique("10.0.0.1:80", "[::ffff:10.0.0.1]:5000"));
        assert!(
            !is_unique("127.0.0.1:80", "127.0.0.2:5000") && !is_unique("[fe80::1%2]:80", "[fe80::2%2]:9")
        );
    }

    fn socket_from(port: u16, to: SocketAddr) -> TcpStream {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_reuseaddr(&fd, true).unwrap();
        bind(&fd, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        connect(&fd, &to).unwrap();
        fd.into()
    }
}
