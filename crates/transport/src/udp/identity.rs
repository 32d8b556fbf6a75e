//! The tags and keys by which both ends recognise a flow's datagrams.

use landspeed_proof::KeyProof;

use super::wire::{DatagramFeedback, ProofPass};
use crate::ProofKey;

/// The tags and the feedback key of one end of a flow, derived from the flow's proof.
#[derive(Debug)]
pub(super) struct FlowIdentity {
    /// The tag of datagrams that this end sends.
    pub(super) own_tag: u32,
    /// The tag of the peer's datagrams. It differs from `own_tag`, so that reflected datagrams are dropped.
    pub(super) peer_tag: u32,
    feedback: ProofKey,
    /// The client's confirm, and the welcome with which the server answers each copy of the confirm; `None` at the
    /// client.
    confirm: Option<(Vec<u8>, Vec<u8>)>,
}

impl FlowIdentity {
    /// Returns the identity of the client's end of the flow with this proof.
    pub(super) fn client(proof: &KeyProof, key: &ProofKey) -> Self {
        let [own_tag, peer_tag] = tags(proof, key);
        FlowIdentity { own_tag, peer_tag, feedback: proof.derive(key, "feedback"), confirm: None }
    }

    /// Returns the identity of the server's end of the flow with this proof.
    pub(super) fn server(proof: &KeyProof, key: &ProofKey) -> Self {
        let [peer_tag, own_tag] = tags(proof, key);
        let confirm = ProofPass::Confirm(*proof, proof.confirm(key)).bytes();
        let welcome = ProofPass::Welcome(proof.welcome(key)).bytes();
        let confirm = Some((confirm, welcome));
        FlowIdentity { own_tag, peer_tag, feedback: proof.derive(key, "feedback"), confirm }
    }

    /// Returns the datagram that carries `feedback` to the peer.
    pub(super) fn feedback_datagram(&self, feedback: &DatagramFeedback) -> impl AsRef<[u8]> {
        feedback.bytes(self.own_tag, &self.feedback)
    }

    /// Parses and authenticates feedback; `None` if the datagram is no feedback of the peer.
    pub(super) fn parse_feedback(&self, datagram: &[u8]) -> Option<DatagramFeedback> {
        DatagramFeedback::parse(datagram, self.peer_tag, &self.feedback)
    }

    pub(super) fn welcome(&self) -> Option<&[u8]> {
        self.confirm.as_ref().map(|(_, welcome)| welcome.as_slice())
    }

    /// Returns true if the datagram repeats this flow's confirm, because the welcome was lost.
    pub(super) fn is_confirm(&self, datagram: &[u8]) -> bool {
        self.confirm.as_ref().is_some_and(|(confirm, _)| confirm == datagram)
    }
}

/// Derives the tags of the datagrams to the server and to the client.
fn tags(proof: &KeyProof, key: &ProofKey) -> [u32; 2] {
    ["to server", "to client"].map(|direction| {
        let [a, b, c, d, ..] = proof.derive(key, direction);
        u32::from_be_bytes([a, b, c, d])
    })
}
