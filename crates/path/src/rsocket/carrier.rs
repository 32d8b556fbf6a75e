//! Counts the connections that the library of rsockets carries, those that it leaves to the kernel, and the operations
//! that it lacks.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libc::c_int;
use parking_lot::Mutex;
use rustix::fs::{FileType, fstat};

use super::evidence;
use crate::count::MissingFeature;
use crate::kernel_socket::{KernelProtocol, KernelSocketCarrier};
use crate::notify::{NotifiedCall, SyscallAnswer, SyscallRule};
use crate::rdma::CountedPorts;
use crate::shared::CallStage;
use crate::socket::DescriptorKind;
use crate::{ConnectionCounts, FallbackReason, Inheritance, Options, PathCarrier};

/// The length in bytes of the command by which librdmacm accepts a connection, at either end over InfiniBand and RoCE:
/// a header, and `struct rdma_ucm_accept` of rdma/rdma_user_cm.h (rdma-core 31 and newer).
const ACCEPT_LENGTH: u32 = 8 + 296;
/// RDMA_USER_CM_CMD_ACCEPT.
const ACCEPT: u32 = 8;
/// The flags with which glibc's fork(3) calls clone(2).
const FORK: c_int = libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD;
/// The device number of /dev/null.
const NULL: u64 = libc::makedev(1, 3);
/// The reason why bytes are not counted.
const NO_BYTES: &str =
    "rsockets send from the program's own memory, and no socket of the kernel sees the bytes";

pub(super) const RULES: &[SyscallRule] = &[
    SyscallRule { call: libc::SYS_connect, when: &[] },
    SyscallRule { call: libc::SYS_accept, when: &[] },
    SyscallRule { call: libc::SYS_accept4, when: &[] },
    SyscallRule { call: libc::SYS_write, when: &[&[(2, ACCEPT_LENGTH)]] },
    SyscallRule { call: libc::SYS_epoll_ctl, when: &[&[(1, libc::EPOLL_CTL_ADD as u32)]] },
    SyscallRule { call: libc::SYS_clone, when: &[&[(0, FORK as u32)]] },
];

/// The kernel's TCP, on which the library leaves connections. The kernel itself opens its sockets.
struct LeftOnTcp;

impl KernelProtocol for LeftOnTcp {
    const KIND: DescriptorKind = DescriptorKind::Tcp;
    const WATCHED: Duration = Duration::from_secs(5);

    fn fallback(&self, _fd: &OwnedFd, call: &NotifiedCall<'_>) -> Option<FallbackReason> {
        Some(evidence::why_tcp(call))
    }
}

/// Counts the connections of a program over rsockets.
pub(super) struct RsocketCarrier {
    /// Connections that the kernel makes.
    tcp: KernelSocketCarrier<LeftOnTcp>,
    /// Device number of the connection manager; 0 in a keeper.
    manager: u64,
    ports: CountedPorts,
    no_bytes: Option<String>,
    carried: AtomicU64,
    lacks: Mutex<BTreeMap<MissingFeature, u64>>,
}

impl RsocketCarrier {
    pub(super) fn new(manager: u64, ports: CountedPorts, options: &Options) -> Self {
        let no_bytes = options.bytes.then(|| NO_BYTES.to_owned());
        let tcp = KernelSocketCarrier::new(LeftOnTcp, &Options { bytes: false, ..options.clone() });
        RsocketCarrier { tcp, manager, ports, no_bytes, ..RsocketCarrier::alone() }
    }

    /// Returns the carrier for a keeper.
    pub(super) fn alone() -> Self {
        RsocketCarrier {
            tcp: KernelSocketCarrier::alone(LeftOnTcp),
            manager: 0,
            ports: CountedPorts::default(),
            no_bytes: None,
            carried: AtomicU64::new(0),
            lacks: Mutex::default(),
        }
    }

    fn is_keeper(&self) -> bool {
        self.manager == 0
    }

    /// Returns true if a call of write(2) accepts an RDMA connection. Over InfiniBand and RoCE, the end that connects
    /// accepts it too, once the other end has answered (ucma_process_conn_resp() in librdmacm). Over iWARP the kernel
    /// does so itself (cma_iw_handler() in cma.c).
    fn accepts(&self, call: &NotifiedCall<'_>) -> bool {
        let mut header = [0; 8];
        call.read(call.address(1), &mut header).is_ok()
            && is_accept(header)
            && call.descriptor(call.int(0)).is_ok_and(|fd| device(&fd) == Some(self.manager))
    }

    /// Counts a connection that an RDMA device carries, and lets the kernel continue the call. An interrupted call is
    /// repeated, and counts only then.
    fn count_carried(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        // Counts before the answer, because after it the program may end and the counts be read.
        self.carried.fetch_add(1, Ordering::AcqRel);
        if !call.answer(SyscallAnswer::Continue) {
            self.carried.fetch_sub(1, Ordering::AcqRel);
        }
        SyscallAnswer::Gone
    }

    /// Counts an operation that the library lacks, and lets the kernel continue the call. An interrupted call counts
    /// only when it is repeated.
    fn count_missing(&self, what: MissingFeature, call: &NotifiedCall<'_>) -> SyscallAnswer {
        // Holds the lock until the call is counted: after the answer the program may end and the counts be read.
        let mut lacks = self.lacks.lock();
        if call.answer(SyscallAnswer::Continue) {
            *lacks.entry(what).or_default() += 1;
        }
        SyscallAnswer::Gone
    }
}

impl PathCarrier for RsocketCarrier {
    fn answer(&self, call: &NotifiedCall<'_>) -> SyscallAnswer {
        match call.number {
            libc::SYS_write if self.accepts(call) => self.count_carried(call),
            libc::SYS_epoll_ctl if is_placeholder(call, 2) => self.count_missing(MissingFeature::Epoll, call),
            libc::SYS_accept4 if is_placeholder(call, 0) => self.count_missing(MissingFeature::Accept4, call),
            libc::SYS_clone if evidence::has_rsockets(call.process()) => {
                self.count_missing(MissingFeature::Fork, call)
            }
            // A keeper's counts are not read.
            libc::SYS_connect if self.is_keeper() => SyscallAnswer::Continue,
            libc::SYS_connect | libc::SYS_accept | libc::SYS_accept4 => self.tcp.answer(call),
            _ => SyscallAnswer::Continue,
        }
    }

    fn left(&self, why: FallbackReason) {
        self.tcp.left(why);
    }

    fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            carried: self.carried.load(Ordering::Acquire),
            lacks: self.lacks.lock().clone(),
            no_bytes: self.no_bytes.clone(),
            rdma: self.ports.meanwhile(),
            ..self.tcp.counts()
        }
    }

    /// The killed supervisor may have connected already, or have begun to.
    fn resume(&self, call: &NotifiedCall<'_>, inheritance: &mut Inheritance) -> Option<SyscallAnswer> {
        let may_be_begun = call.number == libc::SYS_connect && inheritance.stage == CallStage::Open;
        may_be_begun.then(|| self.tcp.answer(call))
    }
}

/// Returns true if a command to the connection manager accepts a connection. `header` holds the command, and the lengths
/// of what follows and of the answer (`struct rdma_ucm_cmd_hdr`).
fn is_accept(header: [u8; 8]) -> bool {
    let [a, b, c, d, e, f, ..] = header;
    let follows = u32::from(u16::from_ne_bytes([e, f]));
    u32::from_ne_bytes([a, b, c, d]) == ACCEPT && follows + 8 == ACCEPT_LENGTH
}

/// Returns true if an argument of the call is a descriptor of /dev/null, which the library gives the program in place of
/// each socket. A call that the library does not replace reaches /dev/null. Standard input is often /dev/null for other
/// reasons, and a program without RDMA sockets may have opened it itself.
fn is_placeholder(call: &NotifiedCall<'_>, argument: usize) -> bool {
    let fd = call.int(argument);
    fd > libc::STDERR_FILENO
        && call.descriptor(fd).is_ok_and(|fd| device(&fd) == Some(NULL))
        && evidence::has_rsockets(call.process())
}

/// Returns the number of a character device; `None` for any other descriptor.
fn device(fd: impl AsFd) -> Option<u64> {
    let about = fstat(fd).ok()?;
    (FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice).then_some(about.st_rdev)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u32, follows: u16) -> [u8; 8] {
        let [a, b, c, d] = command.to_ne_bytes();
        let [e, f] = follows.to_ne_bytes();
        [a, b, c, d, e, f, 0, 0]
    }

    #[test]
    fn only_the_command_that_accepts_counts() {
        assert!(is_accept(header(8, 296)));
        // CONNECT is another command. Before version 31, librdmacm sends less.
        assert!(!is_accept(header(6, 296)) && !is_accept(header(8, 288)));
        assert!(!is_accept(*b"GET / HT"));
    }

    #[test]
    fn devices_are_known_by_their_numbers() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let zero = std::fs::File::open("/dev/zero").unwrap();
        assert_eq!((device(&null), device(&zero)), (Some(NULL), Some(libc::makedev(1, 5))));
        assert_eq!(device(std::fs::File::open("/proc/self/stat").unwrap()), None);
    }
}
