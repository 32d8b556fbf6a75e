//! The sending and the receiving half of a flow.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::records::{TlsRecords, send_all};
use crate::transport::{Receiver, Sender};

pub(super) struct TlsSender<'a> {
    pub(super) records: &'a TlsRecords,
    /// The sending half of the flow below.
    pub(super) below: Box<dyn Sender + 'a>,
    /// True if [`Sender::give_up_after`] was called.
    pub(super) gives_up: bool,
}

impl Sender for TlsSender<'_> {
    /// Encrypts a part of `message`, and sends it. Bytes that the stream has no room for within the time limit are sent
    /// by the next call on the flow.
    fn send(&mut self, message: &[u8], _: u64) -> io::Result<usize> {
        let TlsSender { records, below, gives_up } = self;
        let mut give = |bytes: &[u8]| below.send(bytes, 1);
        let mut outgoing = records.outgoing().lock();
        send_all(&mut outgoing, *gives_up, &mut give)?;
        let taken = records.encrypt(message, &mut outgoing)?;
        match send_all(&mut outgoing, *gives_up, &mut give) {
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Err(error)
            }
            _ => Ok(taken),
        }
    }

    fn give_up_after(&mut self, wait: Duration) -> io::Result<()> {
        self.gives_up = true;
        self.below.give_up_after(wait)
    }
}

pub(super) struct TlsReceiver<'a> {
    pub(super) records: &'a TlsRecords,
    /// The receiving half of the flow below.
    pub(super) below: Box<dyn Receiver + 'a>,
    /// True if the receiver was woken to stop.
    pub(super) woken: &'a AtomicBool,
}

impl TlsReceiver<'_> {
    fn take(&mut self, into: &mut [u8], is_hasty: bool) -> io::Result<usize> {
        let TlsReceiver { records, below, woken } = self;
        let mut receive = |room: &mut [u8]| match is_hasty {
            true => below.try_receive(room),
            false => below.receive(room),
        };
        match records.receive(into, &mut receive) {
            // The wake ended the stream at this end only.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && woken.load(Ordering::Acquire) => {
                Ok(0)
            }
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
