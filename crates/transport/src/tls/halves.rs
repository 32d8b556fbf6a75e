//! The sending and the receiving half of a flow.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::flow::TlsFlow;
use super::records::Wire;
use crate::transport::{Receiver, Sender};

pub(super) struct TlsSender<'a> {
    pub(super) flow: &'a TlsFlow,
    pub(super) socket: BorrowedFd<'a>,
    /// True if [`Sender::give_up_after`] was called.
    pub(super) gives_up: bool,
}

impl Sender for TlsSender<'_> {
    /// Encrypts a part of `message`, and sends it. Bytes that the socket has no room for within the time limit are sent
    /// by the next call on the flow.
    fn send(&mut self, message: &[u8], _: u64) -> io::Result<usize> {
        let records = self.flow.records();
        let wire = Wire { socket: self.socket, is_hasty: false };
        let mut outgoing = records.outgoing().lock();
        wire.send(&mut outgoing, self.gives_up)?;
        let taken = records.encrypt(message, &mut outgoing)?;
        match wire.send(&mut outgoing, self.gives_up) {
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Err(error)
            }
            _ => Ok(taken),
        }
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.gives_up = true;
        Ok(set_socket_timeout(self.socket, Timeout::Send, Some(wait))?)
    }
}

pub(super) struct TlsReceiver<'a> {
    pub(super) flow: &'a TlsFlow,
    pub(super) socket: BorrowedFd<'a>,
}

impl TlsReceiver<'_> {
    fn take(&self, into: &mut [u8], is_hasty: bool) -> io::Result<usize> {
        let wire = Wire { socket: self.socket, is_hasty };
        match self.flow.records().receive(into, wire) {
            // The wake ended the stream at this end only.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && self.flow.is_woken() => Ok(0),
            taken => taken,
        }
    }
}

impl Receiver for TlsReceiver<'_> {
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.take(into, false)
    }

    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.take(into, true)
    }
}
