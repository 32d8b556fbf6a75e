//! A proven QUIC flow.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Details, SettingMismatch, Settings};
use socket2::Socket;

use super::connection::{ConnectionState, FlowHalf, SharedConnection};
use super::disconnect::{CloseCode, DisconnectReason};
use super::driver::{ACK_DELAY, QuicDriver};
use super::halves::{QuicReceiver, QuicSender};
use super::options::{OPTIONS, QuicSettings};
use super::stats;
use crate::transport::{AckProgress, Flow, Receiver, Sender};
use crate::{Error, Patience, shared_port};

pub(super) struct QuicFlow {
    shared: Arc<SharedConnection>,
    number: u32,
    set_up: Nanos,
    /// The number of bytes of the stream that belong to the proof. They are not counted as acknowledged payload.
    proof: u64,
    parsed: QuicSettings,
    not_as_asked: Vec<SettingMismatch>,
}

impl QuicFlow {
    /// Returns a flow over the connection of `driver`. Compares the socket's options and the connection's settings
    /// with `settings`.
    pub(super) fn new(
        socket: Arc<Socket>,
        driver: QuicDriver,
        number: u32,
        set_up: Nanos,
        settings: &Settings,
    ) -> io::Result<Self> {
        let proof = driver.written();
        let parsed = QuicSettings::of(settings);
        let shared = Arc::new(SharedConnection::new(socket, driver)?);
        let mut flow = QuicFlow { shared, number, set_up, proof, parsed, not_as_asked: Vec::new() };
        flow.read_back(settings);
        Ok(flow)
    }

    fn read_back(&mut self, settings: &Settings) {
        let mut lines = OPTIONS.read_back(&self.shared.socket, settings);
        lines.extend(self.shared.lock().driver.wire().lacks(&QuicSettings::of(settings)));
        lines.extend(self.parsed.kept_from(settings));
        self.not_as_asked = lines;
    }

    pub(super) fn shared(&self) -> &Arc<SharedConnection> {
        &self.shared
    }

    fn refused(&self, why: impl ToString) -> Error {
        Error::refused("finish", format!("flow {}", self.number), io::Error::other(why.to_string()))
    }

    /// Returns true if each end has received everything that the other end sent.
    ///
    /// # Errors
    /// Returns an error if the flow can no longer finish in order.
    fn is_finished(&self, state: &mut ConnectionState) -> Result<bool, Error> {
        let driver = &mut state.driver;
        if driver.read(&mut [0]).is_ok_and(|got| got > 0) {
            return Err(self.refused("the peer's bytes were not all received"));
        }
        if !driver.has_ended() {
            return driver.broken().map_or(Ok(false), |error| Err(self.refused(error)));
        }
        // A peer finishes in order only once it has received everything. It then closes the connection with
        // `CloseCode::Finished`. If that packet was lost, the peer's socket no longer exists, so the peer's host
        // refuses datagrams or resets the connection.
        let has_left = match driver.lost() {
            Some(lost) => {
                matches!(lost, DisconnectReason::There(CloseCode::Finished) | DisconnectReason::Gone)
            }
            None => driver.wire().is_refused(),
        };
        if driver.has_finished() || has_left {
            return Ok(true);
        }
        driver.broken().map_or(Ok(false), |error| Err(self.refused(error)))
    }
}

impl Drop for QuicFlow {
    fn drop(&mut self) {
        self.shared.close(CloseCode::Abort);
        let _ = shared_port::connect_to_itself(&self.shared.socket);
    }
}

impl Flow for QuicFlow {
    fn number(&self) -> u32 {
        self.number
    }

    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.shared.socket.as_fd()]
    }

    fn runs_in_calls(&self) -> bool {
        true
    }

    fn set_up(&self) -> Nanos {
        self.set_up
    }

    fn not_as_asked(&self) -> Vec<SettingMismatch> {
        self.not_as_asked.clone()
    }

    fn adopt(&mut self, settings: &Settings) {
        OPTIONS.set_accepted(&self.shared.socket, settings);
        self.shared.lock().driver.wire().adopt(&QuicSettings::of(settings));
        self.read_back(settings);
    }

    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error> {
        Ok(Box::new(QuicSender::new(&self.shared)))
    }

    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error> {
        Ok(Box::new(QuicReceiver(&self.shared)))
    }

    fn progress(&self) -> io::Result<AckProgress> {
        let state = self.shared.look();
        let driver = &state.driver;
        let stats = driver.stats();
        Ok(AckProgress {
            acked: Bytes(driver.acked().saturating_sub(self.proof)),
            delivered: driver.delivered(),
            // The content of a lost packet is sent again in another packet.
            resent: stats.path.lost_packets,
            outstanding: driver.broken().is_none() && driver.written() > driver.acked(),
            rtt: stats.path.rtt.into(),
            // The probe timeout (RFC 9002 section 6.2.1), assuming an RTT variation of half the smoothed RTT, which is
            // the variation's initial value (section 5.3).
            timeout: (3 * stats.path.rtt + ACK_DELAY).into(),
            ..AckProgress::default()
        })
    }

    fn add_details(&self, details: &mut Details) {
        stats::add_details(&self.shared.lock().driver.stats(), details);
    }

    fn wake_receiver(&self) {
        self.shared.wake_receiver();
    }

    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error> {
        if self.shared.is_woken() {
            return Err(self.refused("its receiver was woken before the end"));
        }
        let mut state = self.shared.lock();
        state.driver.finish();
        while !self.is_finished(&mut state)? {
            let slice = patience.slice()?.ok_or_else(|| self.refused("the peer did not finish in time"))?;
            let until = Instant::now() + slice;
            state =
                self.shared.advance(state, FlowHalf::Receive, until).map_err(|error| self.refused(error))?;
        }
        state.driver.close(CloseCode::Finished);
        Ok(())
    }

    fn abort(&self) -> io::Result<()> {
        self.shared.close(CloseCode::Abort);
        Ok(())
    }
}
