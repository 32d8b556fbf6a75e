//! Passes the flows of a trial to the mover, which usually opens its own flows.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use landspeed_mover::{Flows, Opening};
use landspeed_record::units::Nanos;
use landspeed_record::{Details, SettingMismatch, Settings, TrialSpec};
use landspeed_transport::{AckProgress, Error as TransportError, Flow, Listener, Patience, Receiver, Sender};
use rustix::net::sockopt::socket_type;
use rustix::net::{RecvFlags, Shutdown, SocketType, recv, shutdown};

/// Returns the flows twice: for the coordinator, which watches them, and for the mover.
pub(super) fn shared(flows: Vec<Box<dyn Flow>>, spec: &TrialSpec) -> (Vec<Box<dyn Flow>>, Flows) {
    let shared: Vec<SharedFlow> = flows.into_iter().map(|flow| SharedFlow(Arc::from(flow))).collect();
    let boxed = || -> Vec<Box<dyn Flow>> {
        shared.iter().map(|flow| Box::new(flow.clone()) as Box<dyn Flow>).collect()
    };
    let patience = Duration::from(spec.patience());
    let for_mover = Flows {
        count: shared.len() as u32,
        // Both ends already have their flows, so it does not matter which end opened them.
        opening: Opening::Accept(Box::new(OpenedFlows(boxed()))),
        patience,
        give_up_after: patience,
    };
    (boxed(), for_mover)
}

/// The flows of a trial, which are already open. A broken flow is not opened again: a trial over a path that breaks
/// fails.
struct OpenedFlows(Vec<Box<dyn Flow>>);

impl Listener for OpenedFlows {
    /// Returns the next flow. After the last flow, returns that it was cancelled, so that the mover waits for no more.
    fn accept(&mut self, _patience: &Patience<'_>) -> Result<Box<dyn Flow>, TransportError> {
        self.0.pop().ok_or(TransportError::Cancelled)
    }

    fn strangers(&self) -> u64 {
        0
    }
}

/// A flow with several owners. It ends when the last owner drops it.
#[derive(Clone)]
struct SharedFlow(Arc<dyn Flow>);

impl Flow for SharedFlow {
    fn number(&self) -> u32 {
        self.0.number()
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.0.sockets()
    }

    fn runs_in_calls(&self) -> bool {
        self.0.runs_in_calls()
    }

    fn set_up(&self) -> Nanos {
        self.0.set_up()
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        self.0.not_as_asked()
    }

    fn cipher(&self) -> Option<&'static str> {
        self.0.cipher()
    }

    /// Does nothing: a flow gets its settings before it is shared.
    fn adopt(&mut self, _settings: &Settings) {}

    fn sender(&self) -> Result<Box<dyn Sender + '_>, TransportError> {
        self.0.sender()
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, TransportError> {
        self.0.receiver()
    }

    fn progress(&self) -> io::Result<AckProgress> {
        self.0.progress()
    }

    fn add_details(&self, details: &mut Details) {
        self.0.add_details(details);
    }

    fn wake_receiver(&self) {
        self.0.wake_receiver();
    }

    fn finish(&self, patience: &Patience<'_>) -> Result<(), TransportError> {
        self.0.finish(patience)
    }

    /// Ends an idle stream in order, and any other flow abruptly. The mover ends its flows before the window closes,
    /// and a socket that is disconnected loses its counts of the connection (tcp_disconnect in net/ipv4/tcp.c). The
    /// second end to end sends nothing, so that no port stays in TIME_WAIT: dropping the flow disconnects it.
    fn abort(&self) -> io::Result<()> {
        if !self.is_quiet_stream() {
            return self.0.abort();
        }
        let sockets = self.0.sockets();
        let has_peer_ended = sockets.iter().all(has_ended);
        self.0.wake_receiver();
        if has_peer_ended {
            return Ok(());
        }
        sockets.iter().try_for_each(|socket| -> io::Result<()> { Ok(shutdown(socket, Shutdown::Write)?) })
    }
}

impl SharedFlow {
    /// Returns true if the flow has stream sockets and the peer has acknowledged all data. No thread then waits in a
    /// send call.
    fn is_quiet_stream(&self) -> bool {
        let sockets = self.0.sockets();
        let is_stream = |socket: &BorrowedFd<'_>| socket_type(socket) == Ok(SocketType::STREAM);
        let is_quiet = || self.0.progress().is_ok_and(|progress| !progress.outstanding);
        !sockets.is_empty() && sockets.iter().all(is_stream) && is_quiet()
    }
}

/// Returns true if all data of the peer was received and the peer has ended its direction.
fn has_ended(socket: &BorrowedFd<'_>) -> bool {
    matches!(recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((_, 0)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use landspeed_record::units::Bytes;
    use landspeed_transport::{CancelFlag, ConnectRequest, find};

    use super::*;

    /// Returns both ends of a flow over a transport on loopback.
    fn joined(transport: &str) -> [SharedFlow; 2] {
        let transport = find(transport).expect("in the table");
        let settings = landspeed_transport::settings::defaults(transport);
        let (key, cancel) = ([7; 32], CancelFlag::new());
        let patience = Patience { until: Instant::now() + Duration::from_secs(10), cancel: &cancel };
        let port = transport.reserve("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let mut listener = port.listen(&settings, &key).expect("it listens");
        let server = port.address();
        let call = ConnectRequest { server, number: 0, source_port: 0, settings: &settings, key: &key };
        let (one, other) = std::thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept(&patience));
            (transport.connect(&call, &patience), accepted.join().expect("no panic"))
        });
        [one, other].map(|flow| SharedFlow(Arc::from(flow.expect("a flow"))))
    }

    #[test]
    fn a_quiet_stream_ends_in_order_and_keeps_its_counts() {
        let [one, other] = joined("tcp");
        let mut room = [0; 16];
        one.sender().expect("a sender").send(b"hello", 1).expect("it is sent");
        assert_eq!(other.receiver().expect("a receiver").receive(&mut room).expect("it came"), 5);
        other.abort().expect("it ends");
        assert_eq!(one.receiver().expect("a receiver").receive(&mut room).expect("the end"), 0);
        one.abort().expect("it ends");
        let acked = one.progress().expect("counts").acked;
        assert!(acked >= Bytes(5), "{acked:?}");
    }

    /// If a flow makes progress only in calls, the mover makes such calls. Otherwise the flow would stall while both of
    /// its threads wait.
    #[test]
    fn a_shared_flow_says_whether_it_goes_on_by_itself() {
        for (transport, runs_in_calls) in [("tls", false), ("tls-udt", true)] {
            assert!(
                joined(transport).iter().all(|flow| flow.runs_in_calls() == runs_in_calls),
                "{transport}"
            );
        }
    }

    #[test]
    fn flows_are_handed_out_once() {
        let [one, _other] = joined("tcp");
        let (cancel, until) = (CancelFlag::new(), Instant::now());
        let mut opened = OpenedFlows(vec![Box::new(one)]);
        let patience = Patience { until, cancel: &cancel };
        assert!(opened.accept(&patience).is_ok_and(|flow| flow.number() == 0));
        assert!(matches!(opened.accept(&patience), Err(TransportError::Cancelled)));
    }
}
