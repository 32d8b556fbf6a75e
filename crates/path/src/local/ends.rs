//! Which socket is at the other end of a connection. The kernel says so: no byte goes through the connection for it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use landspeed_netlink::{SockDiag, SocketId, netns_cookie};
use libbpf_rs::{Object, ObjectBuilder, ProgramInput};
use rustix::thread::{CapabilitySet, LinkNameSpaceType, move_into_link_name_space};

use crate::socket::{int, option, plain};

/// Made by build.rs from ends.bpf.c.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ends.bpf.o"));
/// The kernel's number for a socket's network namespace (linux/socket.h, Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;
/// Whichever socket has the addresses (INET_DIAG_NOCOOKIE).
const ANY: u64 = u64::MAX;
/// A frame's header, and what comes after it in ends.bpf.c.
const FRAME: usize = 14;
const QUESTION: usize = 4 + 36;

/// A connection: own address, and the peer's.
pub(super) type Names = (SocketAddr, SocketAddr);

/// The network namespace of a socket: no other has its number.
pub(super) fn namespace(fd: impl AsFd) -> Option<u64> {
    let mut cookie = [0; 8];
    option(fd, (libc::SOL_SOCKET, SO_NETNS_COOKIE), &mut cookie).ok()?;
    Some(u64::from_ne_bytes(cookie))
}

/// What looks sockets up.
#[derive(Default)]
pub(super) struct Ends {
    /// Sockets of sock_diag(7), by network namespace.
    diags: Mutex<BTreeMap<u64, SockDiag>>,
    programs: OnceLock<Option<Mutex<Object>>>,
}

/// How far a socket has sent and received, as TCP counts.
#[derive(Debug, PartialEq, Eq)]
struct End {
    cookie: u64,
    sent: u32,
    received: u32,
}

impl Ends {
    /// The cookie of the socket at the other end of `tcp`, in the same network namespace. There, the kernel lets one connection have two
    /// addresses, unless sockets are bound to devices, or take connections of addresses that are not the host's.
    pub(super) fn other(&self, tcp: impl AsFd, thread: i32, (own, peer): Names) -> Option<u64> {
        if is_special(&tcp) {
            return None;
        }
        let namespace = namespace(&tcp)?;
        let id = SocketId { local: plain(peer), remote: plain(own), interface: 0, cookie: ANY };
        let mut diags = self.diags.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || inside(namespace, || of_thread(thread), || SockDiag::open().ok());
        let diag = match diags.entry(namespace) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(open()?),
        };
        let found = diag.tcp_flow(&id).ok()??.id;
        (found.interface == 0).then_some(found.cookie)
    }

    /// Whether the socket with this cookie, in another network namespace, is the other end of `tcp`. Both may have these addresses by
    /// chance. The numbers that their bytes begin with are random: 64 bits say that it is one connection.
    pub(super) fn is_other(
        &self,
        (tcp, thread): (impl AsFd, i32),
        (own, peer): Names,
        (there, cookie): (BorrowedFd<'_>, (u64, u64)),
    ) -> bool {
        let look = || {
            let here = inside(namespace(&tcp)?, || of_thread(thread), || self.end((own, peer)))?;
            let theirs = inside(cookie.0, || there.try_clone_to_owned(), || self.end((peer, own)))?;
            Some(theirs.cookie == cookie.1 && (theirs.sent, theirs.received) == (here.received, here.sent))
        };
        !is_special(&tcp) && look().unwrap_or(false)
    }

    /// Has the program loaded that looks into other namespaces, where this process may: a first connection does not wait that long.
    pub(super) fn prepare(self: &Arc<Self>) {
        let own = Arc::clone(self);
        if rustix::process::geteuid().is_root() && self.programs.get().is_none() {
            let _ = thread::Builder::new().spawn(move || own.programs().is_some());
        }
    }

    fn programs(&self) -> Option<&Mutex<Object>> {
        self.programs.get_or_init(|| load().ok().map(Mutex::new)).as_ref()
    }

    /// The socket with these addresses, in this thread's network namespace.
    fn end(&self, names: Names) -> Option<End> {
        let object = self.programs()?;
        let object = object.lock().unwrap_or_else(PoisonError::into_inner);
        let program = object.progs_mut().find(|program| program.name() == "ends")?;
        let asked = question(names);
        let mut answer = [0; FRAME + QUESTION];
        let input =
            ProgramInput { data_in: Some(&asked), data_out: Some(&mut answer), ..ProgramInput::default() };
        let found = program.test_run(input).ok()?.return_value == 0;
        let word = |at: usize| answer[FRAME + at..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
        let cookie = u64::from_ne_bytes(*answer[FRAME..].first_chunk()?);
        found.then_some(End { cookie, sent: word(8), received: word(12) })
    }
}

/// Whether another socket of its network namespace may have the same addresses.
fn is_special(tcp: impl AsFd) -> bool {
    let is_on = |level, name| int(&tcp, level, name).is_ok_and(|value| value != 0);
    is_on(libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX) || is_on(libc::IPPROTO_IP, libc::IP_TRANSPARENT)
}

fn load() -> Result<Object, String> {
    landspeed_bpf::allowed(CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN)?;
    landspeed_bpf::listen();
    // A copy on the heap: libelf wants its image aligned, which bytes in the binary are not.
    let image = CODE.to_vec();
    let loaded = || ObjectBuilder::default().name("ends")?.open_memory(&image)?.load();
    loaded().map_err(|error: libbpf_rs::Error| landspeed_bpf::take().unwrap_or_else(|| error.to_string()))
}

/// As a packet from the peer would have the addresses.
fn question((own, peer): Names) -> [u8; FRAME + QUESTION] {
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

fn of_thread(thread: i32) -> io::Result<std::os::fd::OwnedFd> {
    Ok(File::open(format!("/proc/{thread}/ns/net"))?.into())
}

/// Does something in a network namespace: here, or on a thread that ends, so that none of ours is left in another one.
fn inside<T: Send>(
    wanted: u64,
    namespace: impl FnOnce() -> io::Result<std::os::fd::OwnedFd>,
    work: impl FnOnce() -> Option<T> + Send,
) -> Option<T> {
    static OWN: OnceLock<Option<u64>> = OnceLock::new();
    if *OWN.get_or_init(|| netns_cookie().ok()) == Some(wanted) {
        return work();
    }
    let namespace = namespace().ok()?;
    let there = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
        if netns_cookie().ok()? == wanted { work() } else { None }
    };
    thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, there).ok()?.join().ok()?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::socket::cookie;

    fn thread() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    #[test]
    fn the_other_end_is_known_by_its_cookie_before_a_byte_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        let names = (server.local_addr().unwrap(), from);
        let ends = Ends::default();
        assert_eq!(ends.other(&server, thread(), names), cookie(&client));
        drop(client);
        drop(server);
        assert!(ends.other(&listener, thread(), names).is_none());
    }

    #[test]
    fn one_connection_between_two_namespaces_is_told_from_another_with_its_addresses() {
        if let Err(why) = load() {
            return eprintln!("SKIP one_connection_between_two_namespaces_is_told_from_another: {why}");
        }
        let connection = || {
            let listener = TcpListener::bind("127.0.0.1:39127").unwrap();
            let client = socket_from(39128, listener.local_addr().unwrap());
            let server = listener.accept().unwrap().0;
            (server, client)
        };
        let elsewhere = || {
            let loopback = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(loopback.unwrap().success());
            let namespace = of_thread(thread()).unwrap();
            (connection(), namespace, netns_cookie().unwrap())
        };
        let ((server, client), there, number) = landspeed_netlink::in_throwaway(elsewhere).unwrap();
        let names = (server.local_addr().unwrap(), server.peer_addr().unwrap());
        let ends = Ends::default();
        let is = |of: &OwnedFd| {
            ends.is_other((of, thread()), names, (there.as_fd(), (number, cookie(&client).unwrap())))
        };
        // Here is a connection with the same addresses: it has another end.
        let (other, _other) = connection();
        assert!(!is(&other.into()));
        let _ = server;
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
