//! The protocol of agent and guardian: one JSON document per packet of a sequenced-packet socket pair.
//!
//! A packet arrives as a whole or not at all, even if a process is killed or stopped, so neither side can be left
//! waiting for the second half of a message. Every write on the host is bracketed: `Intent`, answered by `Go`, then
//! the write, then `Wrote`, answered by `Noted`. So the guardian knows at any moment whether its agent may be writing.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use landspeed_record::RestoreOutcome;
use landspeed_record::units::Nanos;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest packet in bytes. It is small enough for the send buffer of a socket on any host.
const MAX_PACKET: usize = 64 * 1024;
/// The largest number of bytes that the notes of [`RestoreOutcome`] take in a packet.
const MAX_NOTES: usize = MAX_PACKET - 1024;
/// The largest number of characters of one note. The rest is cut off.
const MAX_NOTE: usize = 400;
const DESCRIPTORS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum GuardianRequest {
    /// Take the lock and open the journal. Answered by `Begun` or `Refused`.
    Begin { state_dir: PathBuf, lease: Nanos },
    /// `knob` is about to be set to `to`. Answered by `Go`, `Refused` or `Lost`.
    Intent { knob: String, device: String, to: String },
    /// The write that `Go` permitted is over, whatever its result. Answered by `Noted` or `Lost`.
    Wrote {},
    /// The controller is alive.
    Heartbeat {},
    /// From now on, restore everything unless a heartbeat comes within this time.
    ShortLease { lease: Nanos },
    /// Restore everything. Answered by `Restored`.
    Restore {},
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(super) enum GuardianReply {
    /// The journal is open, in the file `name`. The packet carries the descriptors of journal and namespace, which hold
    /// the locks, and a pidfd of the guardian.
    Begun { name: String },
    /// The intent is on disk: write now.
    Go {},
    /// The effects of the write have settled, and its changes are on disk.
    Noted {},
    /// Nothing may be written, for this reason.
    Refused { why: String },
    /// The guardian is restoring everything on its own initiative, for this reason. Nothing may be written any more.
    Lost { why: String },
    /// Everything that can be restored has been. This is the guardian's last message.
    Restored { restored: RestoreOutcome },
}

#[derive(Debug)]
pub(super) struct GuardianChannel(pub(super) OwnedFd);

impl GuardianChannel {
    /// Sends a packet. If the other end is gone, returns [`io::ErrorKind::BrokenPipe`] and raises no signal.
    pub(super) fn send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        self.send_with(message, &[])
    }

    /// Sends a packet unless that would block. It is for messages that are soon outdated.
    pub(super) fn try_send<M: Serialize>(&self, message: &M) -> io::Result<()> {
        self.send_flags(message, &[], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    pub(super) fn send_with<M: Serialize>(&self, message: &M, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_flags(message, fds, SendFlags::NOSIGNAL)
    }

    fn send_flags<M: Serialize>(
        &self,
        message: &M,
        fds: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MAX_PACKET {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)), "too many descriptors for a packet");
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(&text)], &mut control, flags))?;
        Ok(())
    }

    /// Receives a packet and its descriptors. Returns `None` if the other end is gone.
    pub(super) fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut buffer = vec![0; MAX_PACKET];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)
            {
                Err(rustix::io::Errno::INTR) => {}
                // The other end died before it had read all packets that this end sent.
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                got => break got?,
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        if got.bytes == 0 {
            return Ok(None);
        }
        if got.flags.contains(ReturnFlags::TRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet was too long"));
        }
        Ok(Some((serde_json::from_slice(&buffer[..got.bytes])?, fds)))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns `restored` with its notes shortened to fit into a packet.
pub(super) fn fitting(restored: RestoreOutcome) -> RestoreOutcome {
    let RestoreOutcome { restored, left, unknown, notes } = restored;
    let (total, mut room) = (notes.len(), MAX_NOTES);
    let mut kept: Vec<String> = Vec::new();
    for note in notes {
        let short: String = note.chars().take(MAX_NOTE).collect();
        let size = serde_json::to_string(&short).map_or(MAX_NOTES, |text| text.len() + 1);
        let Some(left) = room.checked_sub(size) else { break };
        room = left;
        kept.push(short);
    }
    if kept.len() < total {
        kept.push(format!("and {} more", total - kept.len()));
    }
    RestoreOutcome { restored, left, unknown, notes: kept }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (GuardianChannel, GuardianChannel) {
        let (a, b) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        (GuardianChannel(a), GuardianChannel(b))
    }

    #[test]
    fn a_packet_carries_words_and_descriptors() {
        let (a, b) = pair();
        let file = tempfile::tempfile().unwrap();
        let begun = GuardianReply::Begun { name: "net-7.jsonl".into() };
        a.send_with(&begun, &[file.as_fd(), file.as_fd(), file.as_fd()]).unwrap();
        let (got, fds) = b.receive::<GuardianReply>().unwrap().unwrap();
        assert_eq!((got, fds.len()), (begun, 3));
        b.send(&GuardianRequest::Wrote {}).unwrap();
        assert_eq!(a.receive::<GuardianRequest>().unwrap().unwrap().0, GuardianRequest::Wrote {});
    }

    #[test]
    fn the_end_of_the_other_is_seen_even_with_packets_unread() {
        let (a, b) = pair();
        a.send(&GuardianRequest::Heartbeat {}).unwrap();
        drop(b);
        assert!(a.receive::<GuardianReply>().unwrap().is_none());
        assert!(a.send(&GuardianRequest::Heartbeat {}).is_err());
    }

    #[test]
    fn any_number_of_notes_fits() {
        let notes = vec!["\u{1}".repeat(1000); 1000];
        let cut = fitting(RestoreOutcome { notes, ..RestoreOutcome::default() });
        assert!(cut.notes.last().unwrap().ends_with("more"));
        let (a, _b) = pair();
        a.try_send(&GuardianReply::Restored { restored: cut }).unwrap();
        let few = RestoreOutcome {
            notes: vec!["mtu of eth0: 9000, put back to 1500".into()],
            ..RestoreOutcome::untouched()
        };
        assert_eq!(fitting(few.clone()), few);
    }
}
