//! A proven UDP flow.

use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use landspeed_record::units::Nanos;
use landspeed_record::{Details, SegmentationFallbacks, SettingMismatch, Settings};
use socket2::Socket;

use super::identity::FlowIdentity;
use super::options::{OPTIONS, RECEIVE, UdpSettings};
use super::receive::UdpReceiver;
use super::send::UdpSender;
use super::shared::SharedFlow;
use super::wire::DatagramKind;
use crate::message::ReceiveMode;
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{DatagramTotals, Error, Patience, raw, shared_port};

/// The interval at which an end that has finished repeats its end message, which may get lost.
const AGAIN: Duration = Duration::from_millis(10);
/// The number of received datagrams after which UDP_GRO counts as without effect, if none of them were joined.
const MANY: u64 = 1000;
/// The number of final messages that an end sends when it knows that both ends have finished.
const FAREWELLS: u32 = 3;

pub(super) struct UdpFlow {
    pub(super) shared: SharedFlow,
    number: u32,
    not_as_asked: Vec<SettingMismatch>,
}

impl UdpFlow {
    /// Creates a flow from its connected socket. Compares the socket's options with `settings`.
    pub(super) fn new(
        socket: Socket,
        number: u32,
        settings: &Settings,
        identity: FlowIdentity,
    ) -> io::Result<Self> {
        let not_as_asked = OPTIONS.read_back(&socket, settings);
        Ok(UdpFlow { shared: SharedFlow::new(socket, settings, identity)?, number, not_as_asked })
    }

    /// Returns true if UDP_GRO is on and [`MANY`] datagrams arrived, but none were joined.
    fn came_apart(&self) -> bool {
        self.shared.parsed.receive == ReceiveMode::Gro
            && !self.shared.counters.has_joined()
            && self.shared.counters.datagrams().received >= MANY
    }

    /// Returns the number of buffers that the kernel dropped because the socket was full, from SO_MEMINFO
    /// (SK_MEMINFO_DROPS, include/uapi/linux/sock_diag.h); zero if the kernel does not report it.
    fn overflowed(&self) -> u64 {
        const DROPS: usize = 8;
        let drops = raw::get::<[u32; DROPS + 1]>(&self.shared.socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
        drops.map_or(0, |drops| drops[DROPS].into())
    }

    fn name(&self) -> String {
        format!("flow {}", self.number)
    }
}

impl Drop for UdpFlow {
    fn drop(&mut self) {
        let _ = shared_port::connect_to_itself(&self.shared.socket);
    }
}

impl Flow for UdpFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.shared.socket.as_fd()]
    }

    /// Returns zero, because UDP has no connection set-up.
    fn set_up(&self) -> Nanos {
        Nanos(0)
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        let apart = self.came_apart().then(|| {
            SettingMismatch::of(
                RECEIVE.name,
                "gro",
                "plain",
                "the stack joined no datagrams: each came in a call of its own",
            )
        });
        self.not_as_asked.iter().cloned().chain(apart).collect()
    }

    fn adopt(&mut self, settings: &Settings) {
        OPTIONS.set_accepted(&self.shared.socket, settings);
        self.not_as_asked = OPTIONS.read_back(&self.shared.socket, settings);
        self.shared.parsed = UdpSettings::of(settings);
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        let refused = |source| Error::refused("send by UDP_SEGMENT on", self.name(), source);
        Ok(Box::new(UdpSender::new(&self.shared).map_err(refused)?))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        let refused = |source| Error::refused("receive by UDP_GRO on", self.name(), source);
        let receiver = UdpReceiver::new(&self.shared).map_err(refused)?;
        self.shared.set_receiving(true);
        Ok(Box::new(receiver))
    }

    fn progress(&self) -> io::Result<AckProgress> {
        Ok(self.shared.progress())
    }

    fn datagrams(&self) -> Option<DatagramTotals> {
        Some(DatagramTotals { overflowed: self.overflowed(), ..self.shared.counters.datagrams() })
    }

    fn add_details(&self, details: &mut Details) {
        if self.shared.are_segments_off() {
            details.get_mut::<SegmentationFallbacks>().0 += 1;
        }
    }

    fn wake_receiver(&self) {
        // shutdown(2) for reading wakes the thread that waits in a receive call on a datagram socket. The call then
        // returns zero bytes.
        let _ = self.shared.stop_receiver(Shutdown::Read);
    }

    /// Repeats the end message, which may get lost, until the peer reports that both ends have finished. Then sends
    /// [`FAREWELLS`] last messages. Stops earlier if the peer has finished and has closed its socket.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        let refused = |why| Error::refused("finish", self.name(), io::Error::other(why));
        let shared = &self.shared;
        if shared.is_woken() {
            return Err(refused("its receiver was woken before the end"));
        }
        let mut farewells = 0;
        while farewells < FAREWELLS {
            let has_left = shared.drain().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
            let kind = if shared.peer_has_ended() { DatagramKind::BothEnd } else { DatagramKind::End };
            farewells += u32::from(shared.last_heard() == Some(DatagramKind::BothEnd));
            shared.report_as(kind, &shared.counters.datagrams());
            if has_left && shared.peer_has_ended() {
                return Ok(());
            }
            let slice = patience.slice()?.ok_or_else(|| refused("the peer did not finish in time"))?;
            std::thread::sleep(slice.min(AGAIN));
        }
        Ok(())
    }

    fn abort(&self) -> io::Result<()> {
        self.shared.stop_receiver(Shutdown::Both)
    }
}
