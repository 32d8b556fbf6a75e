//! The format of datagrams on the wire. Numbers are big endian.
//!
//! These are the four passes of the proof (crate `proof`). An answer is never larger than the pass before it, so that
//! a client with a forged source address cannot use the server to amplify traffic:
//!
//! | pass | bytes |
//! |---|---|
//! | hello | "LSh1", hello (52) |
//! | answer | "LSa1", answer (48); its challenge is the cookie that `listen.rs` makes |
//! | confirm | "LSc1", flow number (4), challenges C and S (16 each), MAC (32) |
//! | welcome | "LSw1", MAC (32) |
//!
//! Datagrams of a proven flow begin with a header of 16 bytes, which counts as payload:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | tag of the flow and direction, derived from the proof |
//! | 4 | echo: the last four bytes of the highest number received from the other end |
//! | 1 | kind: 0 data, 1 feedback, 2 feedback of an end that has finished, 3 feedback of one that knows that both have |
//! | 7 | number, from 1, for each kind and direction |
//!
//! In feedback, these fields follow: the highest data number received (8), the bytes of all data received (8), and a
//! MAC over everything before it (32). Without valid feedback a sender slows down, and because of the MAC only the peer
//! can make valid feedback.

use landspeed_proof::{ANSWER, CHALLENGE, CONFIRM, HELLO, KeyProof, MAC};

use crate::ProofKey;

/// The length of a header in bytes, which is also that of the smallest data datagram.
pub(super) const HEADER: usize = 16;
/// The largest UDP payload over IPv4, in bytes: 65535 less 20 for IP and 8 for UDP.
pub(super) const LARGEST: usize = 65_507;
const FEEDBACK: usize = HEADER + 8 + 8 + MAC;
/// The length of the largest datagram that carries no data, in bytes: the confirm.
pub(super) const CONTROL: usize = 4 + CONFIRM_BODY;
const CONFIRM_BODY: usize = 4 + 2 * CHALLENGE + CONFIRM;
/// The largest sequence number, which has seven bytes.
const NUMBERS: u64 = (1 << 56) - 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProofPass {
    Hello([u8; HELLO]),
    Answer([u8; ANSWER]),
    Confirm(KeyProof, [u8; CONFIRM]),
    Welcome([u8; MAC]),
}

impl ProofPass {
    /// Parses a pass; `None` if the bytes are no pass.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first_chunk::<4>()?;
        match kind {
            b"LSh1" => body.try_into().ok().map(ProofPass::Hello),
            b"LSa1" => body.try_into().ok().map(ProofPass::Answer),
            b"LSc1" => parse_confirm(body.try_into().ok()?),
            b"LSw1" => body.try_into().ok().map(ProofPass::Welcome),
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            ProofPass::Hello(hello) => [b"LSh1", &hello[..]].concat(),
            ProofPass::Answer(answer) => [b"LSa1", &answer[..]].concat(),
            ProofPass::Confirm(proof, mac) => {
                [b"LSc1", &proof.number.to_be_bytes()[..], &proof.client, &proof.server, mac].concat()
            }
            ProofPass::Welcome(mac) => [b"LSw1", &mac[..]].concat(),
        }
    }
}

fn parse_confirm(body: &[u8; CONFIRM_BODY]) -> Option<ProofPass> {
    let (number, rest) = body.split_first_chunk::<4>()?;
    let (client, rest) = rest.split_first_chunk::<CHALLENGE>()?;
    let (server, mac) = rest.split_first_chunk::<CHALLENGE>()?;
    let proof = KeyProof { number: u32::from_be_bytes(*number), client: *client, server: *server };
    Some(ProofPass::Confirm(proof, mac.try_into().ok()?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatagramKind {
    Data,
    Feedback,
    /// Feedback of an end that has finished.
    End,
    /// Feedback of an end that has finished and knows that the other has.
    BothEnd,
}

/// The kinds of datagrams, in the order of their numbers.
const KINDS: [DatagramKind; 4] =
    [DatagramKind::Data, DatagramKind::Feedback, DatagramKind::End, DatagramKind::BothEnd];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatagramHeader {
    pub(super) tag: u32,
    pub(super) echo: u32,
    pub(super) kind: DatagramKind,
    pub(super) number: u64,
}

impl DatagramHeader {
    /// Parses the header at the beginning of a datagram; `None` if there is no valid header.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first_chunk::<4>()?;
        let (echo, rest) = rest.split_first_chunk::<4>()?;
        let word = u64::from_be_bytes(*rest.first_chunk::<8>()?);
        let kind = *KINDS.get((word >> 56) as usize)?;
        let (tag, echo) = (u32::from_be_bytes(*tag), u32::from_be_bytes(*echo));
        Some(DatagramHeader { tag, echo, kind, number: word & NUMBERS })
    }

    pub(super) fn bytes(self) -> [u8; HEADER] {
        let kind = (self.kind as u64) << 56;
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.tag.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.echo.to_be_bytes());
        bytes[8..].copy_from_slice(&(kind | (self.number & NUMBERS)).to_be_bytes());
        bytes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatagramFeedback {
    /// The kind, which is any but `Data`.
    pub(super) kind: DatagramKind,
    /// The number of this feedback, from 1.
    pub(super) number: u64,
    /// The highest sequence number of data received.
    pub(super) highest: u64,
    /// The bytes of all data received.
    pub(super) received_bytes: u64,
}

impl DatagramFeedback {
    /// Returns the datagram that carries this feedback, with the flow's `tag` and a MAC by the feedback key `key`.
    pub(super) fn bytes(&self, tag: u32, key: &ProofKey) -> [u8; FEEDBACK] {
        let header = DatagramHeader { tag, echo: self.highest as u32, kind: self.kind, number: self.number };
        let mut bytes = [0; FEEDBACK];
        bytes[..HEADER].copy_from_slice(&header.bytes());
        bytes[HEADER..HEADER + 8].copy_from_slice(&self.highest.to_be_bytes());
        bytes[HEADER + 8..HEADER + 16].copy_from_slice(&self.received_bytes.to_be_bytes());
        let mac = blake3::keyed_hash(key, &bytes[..FEEDBACK - MAC]);
        bytes[FEEDBACK - MAC..].copy_from_slice(mac.as_bytes());
        bytes
    }

    /// Parses a feedback datagram; `None` if the tag, the kind or the MAC is wrong.
    pub(super) fn parse(bytes: &[u8], tag: u32, key: &ProofKey) -> Option<Self> {
        let bytes: &[u8; FEEDBACK] = bytes.try_into().ok()?;
        let header = DatagramHeader::parse(bytes)?;
        if header.tag != tag || header.kind == DatagramKind::Data {
            return None;
        }
        let (body, mac) = bytes.split_last_chunk::<MAC>()?;
        // Compares in constant time.
        if blake3::keyed_hash(key, body) != blake3::Hash::from_bytes(*mac) {
            return None;
        }
        let field = |at: usize| body[at..].first_chunk().map(|chunk| u64::from_be_bytes(*chunk));
        Some(DatagramFeedback {
            kind: header.kind,
            number: header.number,
            highest: field(HEADER)?,
            received_bytes: field(HEADER + 8)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: ProofKey = [5; 32];

    fn passes() -> [ProofPass; 4] {
        let proof = KeyProof { number: 7, client: [1; CHALLENGE], server: [2; CHALLENGE] };
        [
            ProofPass::Hello(proof.hello(&KEY)),
            ProofPass::Answer(proof.answer(&KEY)),
            ProofPass::Confirm(proof, proof.confirm(&KEY)),
            ProofPass::Welcome(proof.welcome(&KEY)),
        ]
    }

    #[test]
    fn passes_survive_the_wire_and_no_reply_is_larger_than_its_request() {
        for pass in passes() {
            assert_eq!(ProofPass::parse(&pass.bytes()), Some(pass.clone()));
            assert!(pass.bytes().len() <= CONTROL, "{pass:?}");
        }
        let [hello, answer, confirm, welcome] = passes().map(|pass| pass.bytes().len());
        assert!(answer <= hello && welcome <= confirm, "{answer} for {hello}, {welcome} for {confirm}");
        assert_eq!(confirm, CONTROL);
    }

    #[test]
    fn feedback_of_another_key_direction_or_content_is_none() {
        let feedback =
            DatagramFeedback { kind: DatagramKind::End, number: 3, highest: 900, received_bytes: 1 << 40 };
        let bytes = feedback.bytes(11, &KEY);
        assert_eq!(DatagramFeedback::parse(&bytes, 11, &KEY), Some(feedback));
        assert_eq!(DatagramFeedback::parse(&bytes, 12, &KEY), None);
        assert_eq!(DatagramFeedback::parse(&bytes, 11, &[6; 32]), None);
        for at in 0..FEEDBACK * 8 {
            let mut spoilt = bytes;
            spoilt[at / 8] ^= 1 << (at % 8);
            assert_eq!(DatagramFeedback::parse(&spoilt, 11, &KEY), None, "bit {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic_and_only_passes_as_passes(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            magic in prop::sample::select(vec![*b"LSh1", *b"LSa1", *b"LSc1", *b"LSw1", *b"LSx1"]),
        ) {
            for bytes in [bytes.clone(), [&magic[..], &bytes].concat()] {
                if let Some(pass) = ProofPass::parse(&bytes) {
                    prop_assert_eq!(pass.bytes(), bytes.clone());
                }
                prop_assert_eq!(DatagramFeedback::parse(&bytes, 0, &KEY), None);
                if let Some(header) = DatagramHeader::parse(&bytes) {
                    prop_assert_eq!(&header.bytes()[..], &bytes[..HEADER]);
                }
            }
        }

        #[test]
        fn headers_survive_the_wire(tag: u32, echo: u32, kind in prop::sample::select(KINDS.to_vec()), number in 0..=NUMBERS) {
            let header = DatagramHeader { tag, echo, kind, number };
            prop_assert_eq!(DatagramHeader::parse(&header.bytes()), Some(header));
        }
    }
}
