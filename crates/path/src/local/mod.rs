//! An AF_UNIX socket in the place of a TCP connection between two programs of one host.
//!
//! Both programs run over this path. Their supervisors meet in a directory that only their user can enter:
//!
//! 1. a program listens: its supervisor *registers* the address, with the network namespace that it is in;
//! 2. another one connects to a registered address: its supervisor *claims* the connection, makes it over TCP, and looks whether the
//!    socket is one descriptor of one process. If so, it hands over the connected socket and one end of a pair of AF_UNIX sockets;
//!    if not, it withdraws the claim;
//! 3. the first one accepts: its supervisor takes the TCP connection. Is its peer the one that was claimed? A number that no one can
//!    guess goes into the socket that was handed over, and must come out of the accepted one. Then it says *agreed* into the pair;
//! 4. the second supervisor puts the other end of the pair in the place of its program's socket, and ends the TCP connection with a FIN;
//! 5. the FIN tells the first supervisor that this is done: its program gets its end of the pair from accept.
//!
//! Whatever fails before the FIN leaves the TCP connection as it is, with not a byte in it, and both programs go on over TCP. The
//! kernel keeps this promise where a supervisor is killed: descriptors close, and a pair that has lost its other end is no agreement.

mod accept;
mod connect;
mod entangled;
mod meeting;
mod names;
mod options;
mod rendezvous;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use crate::accept::Accepts;
use crate::count::Count;
use crate::notify::{Answer, Call, Rule, When};
use crate::{Carrier, Counts, Error, Only, Options, Path, Shared, Why};
use rendezvous::Rendezvous;

/// The path.
pub(crate) struct Local;

const LEVEL: u32 = 1;
const NAME: u32 = 2;
/// Options of TCP and IP, which an AF_UNIX socket does not have.
const OF_IP: [&[When]; 3] = [
    &[(LEVEL, libc::IPPROTO_TCP as u32)],
    &[(LEVEL, libc::IPPROTO_IP as u32)],
    &[(LEVEL, libc::IPPROTO_IPV6 as u32)],
];
/// What a socket says that it is.
const OF_KIND: [&[When]; 2] = [
    &[(LEVEL, libc::SOL_SOCKET as u32), (NAME, libc::SO_DOMAIN as u32)],
    &[(LEVEL, libc::SOL_SOCKET as u32), (NAME, libc::SO_PROTOCOL as u32)],
];

impl Path for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn describe(&self) -> &'static str {
        "an AF_UNIX socket in the place of a connection between two programs on one host"
    }

    fn rules(&self) -> &'static [Rule] {
        &[
            Rule { call: libc::SYS_connect, when: &[] },
            Rule { call: libc::SYS_accept, when: &[] },
            Rule { call: libc::SYS_accept4, when: &[] },
            Rule { call: libc::SYS_listen, when: &[] },
            Rule { call: libc::SYS_getsockname, when: &[] },
            Rule { call: libc::SYS_getpeername, when: &[] },
            Rule { call: libc::SYS_setsockopt, when: &OF_IP },
            Rule {
                call: libc::SYS_getsockopt,
                when: &[OF_IP[0], OF_IP[1], OF_IP[2], OF_KIND[0], OF_KIND[1]],
            },
        ]
    }

    fn carrier(&self, shared: &Arc<Shared>, options: &Options) -> Result<Box<dyn Carrier>, Error> {
        Ok(Box::new(Carried::new(shared, Some(Rendezvous::open()?), options)))
    }

    fn alone(&self, shared: &Arc<Shared>) -> Box<dyn Carrier> {
        Box::new(Carried::new(shared, None, &Options::default()))
    }

    fn clear(&self) {
        meeting::clear();
    }
}

/// Connections of a program's processes.
struct Carried {
    shared: Arc<Shared>,
    /// Where supervisors meet; closed where nothing new is to be carried.
    rendezvous: Option<Rendezvous>,
    only: Only,
    count: Count,
    /// A pair for the next connection, made when there was time.
    spare: Mutex<Option<(OwnedFd, OwnedFd)>>,
    accepts: Accepts,
    /// Cookies of sockets that are connected, and whose programs may ask again.
    made: Mutex<BTreeSet<u64>>,
    /// Options that programs have set, and what a new socket has of some.
    set: options::Remembered,
    new_tcp: Vec<libc::c_int>,
}

impl Carried {
    fn new(shared: &Arc<Shared>, rendezvous: Option<Rendezvous>, options: &Options) -> Self {
        Carried {
            shared: Arc::clone(shared),
            rendezvous,
            only: options.only.clone(),
            count: Count::new(options.bytes),
            spare: Mutex::default(),
            accepts: Accepts::default(),
            made: Mutex::default(),
            set: options::Remembered::default(),
            new_tcp: options::of_new(),
        }
    }
}

impl Carrier for Carried {
    fn answer(&self, call: &Call<'_>) -> Answer {
        match (call.number, &self.rendezvous) {
            (libc::SYS_getsockname, _) => self.name(call, false),
            (libc::SYS_getpeername, _) => self.name(call, true),
            (libc::SYS_getsockopt, _) => self.get_option(call),
            (libc::SYS_setsockopt, _) => self.set_option(call),
            (libc::SYS_connect, Some(rendezvous)) => self.connect(rendezvous, call),
            (libc::SYS_accept | libc::SYS_accept4, Some(rendezvous)) => self.accept(rendezvous, call),
            (libc::SYS_listen, Some(rendezvous)) => {
                rendezvous.register(call);
                Answer::Continue
            }
            _ => Answer::Continue,
        }
    }

    fn left(&self, why: Why) {
        self.count.left(why);
    }

    fn counts(&self) -> Counts {
        self.count.so_far()
    }
}
