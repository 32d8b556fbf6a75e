//! The watched flows of one window, from its opening to its close.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use landspeed_kernel::netlink::{PortFilter, SockDiag, SocketKind};
use landspeed_record::units::Nanos;
use landspeed_record::{Observations, WatchTarget};

use super::listeners::WatchedListeners;
use super::state;
use super::track::WatchedFlow;
use crate::sockets::{ListedSocket, MOST_FLOWS, SocketOwners, SocketSelector, inodes_of, select};
use crate::window::OpenWindow;
use crate::{Error, WatchSubject};

/// The reciprocal of the share of time that may be spent on listing all sockets, which is slow on a host with many
/// sockets.
const LISTING_ONE_IN: u32 = 20;

pub(super) struct WatchedFlows {
    diag: SockDiag,
    opened: Instant,
    selector: SocketSelector,
    /// The time at which all sockets may be listed again.
    next_list: Instant,
    flows: Vec<WatchedFlow>,
    listeners: WatchedListeners,
    /// The processes of the sockets that existed when the window opened.
    owners: SocketOwners,
    /// Duplicates of the workload's sockets. They keep a flow's socket in the kernel until the window closes, even if
    /// the workload closes its own descriptor before.
    _held: Vec<OwnedFd>,
    /// The smallest number of bytes of TCP_INFO that the kernel returned for a flow.
    filled: usize,
    /// The cookies of the sockets that are not watched because of the limit [`MOST_FLOWS`].
    too_many: BTreeSet<u64>,
    notes: Vec<String>,
}

impl WatchedFlows {
    pub(super) fn open(subject: &WatchSubject<'_>) -> Result<Self, Error> {
        let diag = SockDiag::open()?;
        let held = held(subject)?;
        let own_inodes = match subject.target {
            WatchTarget::Workload => inodes_of(std::process::id()).unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        let before = Instant::now();
        let selection = select(&diag, subject)?;
        // For the target `Top`, `select` also waits between two readings. This does not matter here, because that set
        // of flows never grows and is not listed again.
        let opened = Instant::now();
        let mut window = WatchedFlows {
            diag,
            opened,
            selector: selection.selector,
            next_list: opened + (opened - before) * LISTING_ONE_IN,
            flows: selection.found.iter().map(WatchedFlow::new).collect(),
            listeners: WatchedListeners::new(own_inodes),
            owners: SocketOwners::default(),
            _held: held,
            filled: state::WHOLE,
            too_many: BTreeSet::new(),
            notes: selection.notes,
        };
        window.take(&selection.found, Nanos(0));
        window.listeners.look(&window.diag, &window.selector, &window.flows)?;
        window.owners = SocketOwners::find(window.inodes());
        Ok(window)
    }

    fn look(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        let found = if self.selector.may_grow() && now >= self.next_list {
            self.selector.refresh();
            let all = self.selector.list(&self.diag, &mut self.notes)?;
            self.next_list = Instant::now() + now.elapsed() * LISTING_ONE_IN;
            all
        } else {
            self.known()?
        };
        let at = self.opened.elapsed().into();
        self.join(&found);
        self.take(&found, at);
        self.listeners.look(&self.diag, &self.selector, &self.flows)
    }

    /// Returns the known sockets in their current state. Looks up TCP connections one by one. Lists UDP sockets by
    /// port, because a look-up by address would return an arbitrary one of the sockets that share the address.
    fn known(&self) -> Result<Vec<ListedSocket>, Error> {
        let mut found = Vec::new();
        let mut ports = BTreeSet::new();
        for flow in self.flows.iter().filter(|flow| flow.alive) {
            if flow.is_tcp() {
                let socket = self.diag.tcp_flow(&flow.id)?;
                found.extend(socket.map(|socket| ListedSocket::new(SocketKind::TcpFlow, socket)));
            } else {
                ports.insert(flow.key.local.port());
            }
        }
        for local in ports {
            let sockets = self.diag.list(SocketKind::Udp, PortFilter { local, remote: 0 })?;
            found.extend(sockets.into_iter().map(|socket| ListedSocket::new(SocketKind::Udp, socket)));
        }
        Ok(found)
    }

    /// Adds the sockets of `found` that are not watched yet, up to [`MOST_FLOWS`] flows in total. Does nothing if the
    /// selector cannot match new sockets.
    fn join(&mut self, found: &[ListedSocket]) {
        if !self.selector.may_grow() {
            return;
        }
        for new in found {
            let cookie = new.cookie();
            if self.flows.iter().any(|flow| flow.id.cookie == cookie) {
                continue;
            }
            if self.flows.len() < MOST_FLOWS {
                self.flows.push(WatchedFlow::new(new));
            } else {
                self.too_many.insert(cookie);
            }
        }
    }

    /// Adds the state at the time `at` to the flows whose sockets are in `found`, and marks the others as gone.
    fn take(&mut self, found: &[ListedSocket], at: Nanos) {
        let found: BTreeMap<u64, &ListedSocket> = found.iter().map(|found| (found.cookie(), found)).collect();
        for flow in &mut self.flows {
            flow.alive = false;
            if let Some(found) = found.get(&flow.id.cookie) {
                flow.take(found, at);
                if flow.is_tcp() {
                    self.filled = self.filled.min(found.socket.tcp_info.len());
                }
            }
        }
    }

    fn inodes(&self) -> Vec<u32> {
        self.flows.iter().map(|flow| flow.inode).chain(self.listeners.inodes()).collect()
    }

    /// Adds the observations and notes of the window to `seen`. First looks up the processes of the sockets that
    /// appeared within the window.
    fn tell(self, seen: &mut Observations) {
        let came = self.inodes().into_iter().filter(|inode| self.owners.of(*inode).is_none());
        let came = SocketOwners::find(came);
        let pid_of = |inode: u32| self.owners.of(inode).or_else(|| came.of(inode));
        let mut notes = self.notes;
        notes.extend(came.missing());
        notes.extend(state::missing_fields(self.filled));
        if !self.too_many.is_empty() {
            notes.push(format!("{} flows that came later: {MOST_FLOWS} are watched", self.too_many.len()));
        }
        if self.flows.is_empty() {
            notes.push("no socket matches what is to be watched".into());
        }
        notes.dedup();
        seen.unseen.extend(notes.into_iter().map(|note| format!("flows: {note}")));
        seen.put(self.listeners.into_watches(pid_of));
        let watch = |flow: WatchedFlow| {
            let pid = pid_of(flow.inode);
            flow.into_watch(pid)
        };
        seen.put(self.flows.into_iter().map(watch).collect::<Vec<_>>());
    }
}

impl OpenWindow for WatchedFlows {
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        self.look()
    }

    /// Adds the observations to `seen` even if the last reading fails, and then returns its error.
    fn close(mut self, seen: &mut Observations) -> Result<(), Error> {
        let last = self.look();
        self.tell(seen);
        last
    }
}

/// Returns duplicates of the descriptors of the workload's sockets.
fn held(subject: &WatchSubject<'_>) -> Result<Vec<OwnedFd>, Error> {
    let own = |(flow, socket): &(u32, BorrowedFd<'_>)| {
        let own = socket.try_clone_to_owned();
        own.map_err(|error| Error::io("duplicate", format!("the socket of flow {flow}"), error))
    };
    subject.sockets.iter().map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::{FlowWatch, ListenerWatch};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    /// Takes samples until `look` returns true for the known flows. How soon new flows are listed depends on how long a
    /// list takes on this machine.
    fn sample_until(window: &mut WatchedFlows, look: impl Fn(&[WatchedFlow]) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !look(&window.flows) {
            assert!(Instant::now() < deadline, "{:?}", window.flows);
            std::thread::sleep(Duration::from_millis(2));
            window.look().unwrap();
        }
    }

    #[test]
    fn a_flow_that_comes_and_goes_has_fewer_samples() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let target = WatchTarget::Flow { at };
        let mut window = WatchedFlows::open(&WatchSubject { target, ..WatchSubject::default() }).unwrap();
        assert!(window.flows.is_empty());
        let client = TcpStream::connect(at).unwrap();
        let near = client.local_addr().unwrap();
        let server = listener.accept().unwrap().0;
        sample_until(&mut window, |flows| flows.len() == 2);
        window.look().unwrap();
        // The server's end closes first, so that no state of the client's remains.
        drop(server);
        drop(client);
        sample_until(&mut window, |flows| flows.iter().all(|flow| !flow.alive));
        window.look().unwrap();
        let mut seen = Observations::default();
        window.tell(&mut seen);
        let flow = seen.get::<Vec<FlowWatch>>().iter().find(|flow| flow.key.local == near).unwrap();
        assert!(flow.samples.len() >= 2 && flow.samples[0].at_ns > Nanos(0), "{flow:?}");
        assert!(flow.samples.windows(2).all(|two| two[0].at_ns < two[1].at_ns));
        assert_eq!(seen.get::<Vec<ListenerWatch>>()[0].local, at);
    }
}
