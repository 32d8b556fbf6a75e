//! The connection of a flow, which the threads of both halves drive alternately.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use socket2::Socket;

use super::disconnect::CloseCode;
use super::driver::QuicDriver;
use crate::socket;

/// One of the two halves of a flow. Identifies the thread that waits for this half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowHalf {
    Send,
    Receive,
}

/// The state that all threads of a flow share.
pub(super) struct SharedConnection {
    pub(super) socket: Arc<Socket>,
    state: Mutex<ConnectionState>,
    /// An eventfd for each half. Both halves wait for the same socket. If the thread of one half drives the
    /// connection, it wakes the other half.
    alarms: [OwnedFd; 2],
    /// True once the receiver must stop.
    woken: AtomicBool,
}

pub(super) struct ConnectionState {
    pub(super) driver: QuicDriver,
    waiting: [bool; 2],
}

impl SharedConnection {
    pub(super) fn new(socket: Arc<Socket>, driver: QuicDriver) -> io::Result<Self> {
        let alarm = || eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let alarms = [alarm()?, alarm()?];
        let state = Mutex::new(ConnectionState { driver, waiting: [false; 2] });
        Ok(SharedConnection { socket, state, alarms, woken: AtomicBool::new(false) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock()
    }

    /// Drives the connection. If there is nothing to do, releases the lock and waits for a packet, a timer or the other
    /// half, at most until `until`. Returns the state, locked again.
    pub(super) fn advance<'a>(
        &'a self,
        mut state: MutexGuard<'a, ConnectionState>,
        half: FlowHalf,
        until: Instant,
    ) -> io::Result<MutexGuard<'a, ConnectionState>> {
        let now = Instant::now();
        if state.driver.drive(now) {
            self.ring(&state, Some(half));
            return Ok(state);
        }
        let due = state.driver.due().map_or(until, |due| due.min(until));
        let interest = state.driver.interest();
        state.waiting[half as usize] = true;
        drop(state);
        let waited = self.wait(half, interest, due.saturating_duration_since(now));
        let mut state = self.lock();
        state.waiting[half as usize] = false;
        waited.map(|()| state)
    }

    fn wait(&self, half: FlowHalf, interest: PollFlags, time: Duration) -> io::Result<()> {
        let alarm = &self.alarms[half as usize];
        let mut ready = [PollFd::new(&*self.socket, interest), PollFd::new(alarm, PollFlags::IN)];
        socket::wait(&mut ready, time)?;
        if !ready[1].revents().is_empty() {
            // Clears the eventfd. Another thread may write to it at any time, but the caller checks the state again in
            // any case.
            let _ = rustix::io::read(alarm, &mut [0; 8]);
        }
        Ok(())
    }

    /// Wakes the halves that wait, except `but`.
    fn ring(&self, state: &ConnectionState, but: Option<FlowHalf>) {
        for half in [FlowHalf::Send, FlowHalf::Receive] {
            if state.waiting[half as usize] && Some(half) != but {
                let _ = rustix::io::write(&self.alarms[half as usize], &1_u64.to_ne_bytes());
            }
        }
    }

    /// Drives the connection without waiting, and returns its locked state.
    pub(super) fn look(&self) -> MutexGuard<'_, ConnectionState> {
        let mut state = self.lock();
        if state.driver.drive(Instant::now()) {
            self.ring(&state, None);
        }
        state
    }

    /// Reads the bytes that are ready for the receiver; zero if the flow has ended. Returns `None` if the receiver
    /// has to wait.
    pub(super) fn take(&self, state: &mut ConnectionState, into: &mut [u8]) -> Option<io::Result<usize>> {
        match state.driver.read(into) {
            Ok(0) => {}
            read => return Some(read),
        }
        if state.driver.has_ended() || self.is_woken() {
            return Some(Ok(0));
        }
        state.driver.broken().map(Err)
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    /// Makes the receiver stop, also if it waits.
    pub(super) fn wake_receiver(&self) {
        self.woken.store(true, Ordering::Release);
        let state = self.lock();
        self.ring(&state, Some(FlowHalf::Send));
    }

    pub(super) fn close(&self, code: CloseCode) {
        let mut state = self.lock();
        state.driver.close(code);
        self.ring(&state, None);
    }
}
