//! What makes a flow's datagrams known to both ends.

use super::wire::{Feedback, Pass};
use crate::Key;
use crate::proof::Proof;

/// Tags and key of one end of a flow; they follow from its proof.
#[derive(Debug)]
pub(super) struct Identity {
    /// Tag of what this end sends.
    pub(super) own_tag: u32,
    /// Tag of what the peer sends: another one, so that what is sent back as it came is dropped.
    pub(super) peer_tag: u32,
    feedback: Key,
    /// The server's: the client's confirm, and what to say to it when it comes again.
    confirm: Option<(Vec<u8>, Vec<u8>)>,
}

impl Identity {
    /// The client's.
    pub(super) fn client(proof: &Proof, key: &Key) -> Self {
        let [own_tag, peer_tag] = tags(proof, key);
        Identity { own_tag, peer_tag, feedback: proof.derive(key, "feedback"), confirm: None }
    }

    /// The server's.
    pub(super) fn server(proof: &Proof, key: &Key) -> Self {
        let [peer_tag, own_tag] = tags(proof, key);
        let confirm = Pass::Confirm(*proof, proof.confirm(key)).bytes();
        let welcome = Pass::Welcome(proof.welcome(key)).bytes();
        let confirm = Some((confirm, welcome));
        Identity { own_tag, peer_tag, feedback: proof.derive(key, "feedback"), confirm }
    }

    /// The datagram that tells the peer `feedback`.
    pub(super) fn tell(&self, feedback: &Feedback) -> impl AsRef<[u8]> {
        feedback.bytes(self.own_tag, &self.feedback)
    }

    /// The peer's feedback, if the datagram is one.
    pub(super) fn told(&self, datagram: &[u8]) -> Option<Feedback> {
        Feedback::parse(datagram, self.peer_tag, &self.feedback)
    }

    pub(super) fn welcome(&self) -> Option<&[u8]> {
        self.confirm.as_ref().map(|(_, welcome)| welcome.as_slice())
    }

    /// Whether the datagram is this flow's confirm, once more: its welcome was lost.
    pub(super) fn is_confirm(&self, datagram: &[u8]) -> bool {
        self.confirm.as_ref().is_some_and(|(confirm, _)| confirm == datagram)
    }
}

/// Tags to the server and to the client.
fn tags(proof: &Proof, key: &Key) -> [u32; 2] {
    ["to server", "to client"].map(|way| {
        let [a, b, c, d, ..] = proof.derive(key, way);
        u32::from_be_bytes([a, b, c, d])
    })
}
