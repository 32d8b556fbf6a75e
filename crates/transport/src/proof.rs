//! Proof that both ends hold the session's key, on the very flow that will carry traffic.
//!
//! The proof has the three passes of ISO/IEC 9798-4 clause 7.2 ("three-pass mutual authentication"), with keyed
//! BLAKE3 as the check function:
//!
//! | pass | bytes |
//! |---|---|
//! | hello, client to server | flow number (4, big endian), challenge C (16), MAC("client", flow, C) |
//! | answer, server to client | challenge S (16), MAC("server", flow, C, S) |
//! | confirm, client to server | MAC("confirm", flow, C, S) |
//!
//! UDP keeps no state of a client before its confirm, so the confirm's datagram repeats flow number and challenges.
//! Because a datagram may be lost, UDP acknowledges the confirm with a fourth pass: MAC("welcome", flow, C, S).
//!
//! The hello's MAC lets a server drop strangers immediately; the confirm shows that the hello was no replay of an
//! earlier one. Only then does the server send anything else on the flow.

use crate::ProofKey;

pub(crate) const CHALLENGE: usize = 16;
pub(crate) const MAC: usize = blake3::OUT_LEN;
pub(crate) const HELLO: usize = 4 + CHALLENGE + MAC;
pub(crate) const ANSWER: usize = CHALLENGE + MAC;
pub(crate) const CONFIRM: usize = MAC;

/// Random bytes that no peer can predict.
pub(crate) type Challenge = [u8; CHALLENGE];

/// Returns a fresh challenge.
///
/// # Panics
/// Panics if the kernel has no random numbers, which does not happen on Linux once it has booted.
pub(crate) fn challenge() -> Challenge {
    let mut bytes = [0; CHALLENGE];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}

/// A proof under way, at either end: the flow's number and the challenges known so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowProof {
    flow: u32,
    client: Challenge,
    server: Challenge,
}

impl FlowProof {
    /// Starts the client's proof, with its challenge.
    pub(crate) fn start(flow: u32, client: Challenge) -> Self {
        FlowProof { flow, client, server: [0; CHALLENGE] }
    }

    /// Returns the first pass.
    pub(crate) fn hello(&self, key: &ProofKey) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..4].copy_from_slice(&self.flow.to_be_bytes());
        bytes[4..4 + CHALLENGE].copy_from_slice(&self.client);
        bytes[4 + CHALLENGE..].copy_from_slice(self.mac(key, "client").as_bytes());
        bytes
    }

    /// Starts the server's proof from a hello, with the server's challenge; `None` if a stranger sent the hello.
    pub(crate) fn greeted(key: &ProofKey, hello: &[u8; HELLO], server: Challenge) -> Option<Self> {
        let (flow, rest) = hello.split_first_chunk::<4>()?;
        let (client, mac) = rest.split_first_chunk::<CHALLENGE>()?;
        let proof = FlowProof::start(u32::from_be_bytes(*flow), *client);
        proof.holds(key, "client", mac).then_some(FlowProof { server, ..proof })
    }

    /// Returns the second pass.
    pub(crate) fn answer(&self, key: &ProofKey) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..CHALLENGE].copy_from_slice(&self.server);
        bytes[CHALLENGE..].copy_from_slice(self.mac(key, "server").as_bytes());
        bytes
    }

    /// Returns the client's proof with the challenge of the server's answer; `None` if the server lacks the key.
    pub(crate) fn answered(self, key: &ProofKey, answer: &[u8; ANSWER]) -> Option<Self> {
        let (server, mac) = answer.split_first_chunk::<CHALLENGE>()?;
        let proof = FlowProof { server: *server, ..self };
        proof.holds(key, "server", mac).then_some(proof)
    }

    /// Returns the third pass.
    pub(crate) fn confirm(&self, key: &ProofKey) -> [u8; CONFIRM] {
        *self.mac(key, "confirm").as_bytes()
    }

    /// Checks the client's confirm and returns the flow's number; `None` if the client lacks the key.
    pub(crate) fn confirmed(&self, key: &ProofKey, confirm: &[u8; CONFIRM]) -> Option<u32> {
        self.holds(key, "confirm", confirm).then_some(self.flow)
    }

    /// Returns a proof of values that a client claims, for a server that keeps no state.
    pub(crate) fn claimed(flow: u32, client: Challenge, server: Challenge) -> Self {
        FlowProof { flow, client, server }
    }

    /// Returns the flow number, the client's challenge and the server's challenge.
    pub(crate) fn parts(&self) -> (u32, &Challenge, &Challenge) {
        (self.flow, &self.client, &self.server)
    }

    /// Returns the fourth pass, of UDP only: the server has the confirm.
    pub(crate) fn welcome(&self, key: &ProofKey) -> [u8; MAC] {
        *self.mac(key, "welcome").as_bytes()
    }

    /// Returns true if `welcome` is the server's fourth pass.
    pub(crate) fn welcomed(&self, key: &ProofKey, welcome: &[u8; MAC]) -> bool {
        self.holds(key, "welcome", welcome)
    }

    /// Derives a key that only the two ends of this flow share, for one purpose.
    pub(crate) fn derive(&self, key: &ProofKey, purpose: &'static str) -> ProofKey {
        *self.mac(key, purpose).as_bytes()
    }

    fn mac(&self, key: &ProofKey, pass: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(b"landspeed flow 1 ");
        hasher.update(pass.as_bytes());
        hasher.update(&self.flow.to_be_bytes());
        hasher.update(&self.client);
        hasher.update(&self.server);
        hasher.finalize()
    }

    /// Compares in constant time (`blake3::Hash` does), so that a MAC cannot be guessed byte by byte.
    fn holds(&self, key: &ProofKey, pass: &str, mac: &[u8]) -> bool {
        mac.try_into().is_ok_and(|mac: [u8; MAC]| self.mac(key, pass) == blake3::Hash::from_bytes(mac))
    }
}

/// The server's part of the proof over a stream. It is fed with the bytes that arrive.
#[derive(Debug)]
pub(crate) struct ServerProof {
    proof: Option<FlowProof>,
    bytes: [u8; HELLO],
    got: usize,
}

/// The result of feeding bytes to a [`ServerProof`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerProofStep {
    /// More bytes are needed.
    More,
    /// These bytes must be sent to the client, and more bytes are needed.
    Answer([u8; ANSWER]),
    /// The flow of this number is proven.
    Proven(u32),
    /// The client does not hold the key.
    Stranger,
}

impl ServerProof {
    /// Returns a greeting that waits for a hello.
    pub(crate) fn new() -> Self {
        ServerProof { proof: None, bytes: [0; HELLO], got: 0 }
    }

    /// Returns true if a hello with the key has arrived.
    pub(crate) fn has_greeted(&self) -> bool {
        self.proof.is_some()
    }

    /// Returns the buffer for the next bytes. It has room for the proof only, because what follows belongs to the
    /// flow.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let wanted = if self.proof.is_none() { HELLO } else { CONFIRM };
        &mut self.bytes[self.got..wanted]
    }

    /// Processes `bytes` bytes that were read into [`ServerProof::room`].
    pub(crate) fn came(&mut self, key: &ProofKey, bytes: usize) -> ServerProofStep {
        self.got += bytes;
        if !self.room().is_empty() {
            return ServerProofStep::More;
        }
        self.got = 0;
        if let Some(proof) = &self.proof {
            let confirm = self.bytes.first_chunk::<CONFIRM>();
            let number = confirm.and_then(|confirm| proof.confirmed(key, confirm));
            return number.map_or(ServerProofStep::Stranger, ServerProofStep::Proven);
        }
        self.proof = FlowProof::greeted(key, &self.bytes, challenge());
        self.proof.map_or(ServerProofStep::Stranger, |proof| ServerProofStep::Answer(proof.answer(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ProofKey = [7; 32];
    const OTHER: ProofKey = [8; 32];

    #[test]
    fn three_passes_prove_both_ends() {
        let client = FlowProof::start(3, challenge());
        let server = FlowProof::greeted(&KEY, &client.hello(&KEY), challenge()).expect("same key");
        let client = client.answered(&KEY, &server.answer(&KEY)).expect("same key");
        assert_eq!(server.confirmed(&KEY, &client.confirm(&KEY)), Some(3));
        assert!(client.welcomed(&KEY, &server.welcome(&KEY)));
        assert!(!client.welcomed(&KEY, &server.welcome(&OTHER)));
    }

    #[test]
    fn another_key_proves_nothing_in_any_pass() {
        let client = FlowProof::start(3, challenge());
        assert_eq!(FlowProof::greeted(&KEY, &client.hello(&OTHER), challenge()), None);
        let server = FlowProof::greeted(&KEY, &client.hello(&KEY), challenge()).expect("same key");
        assert_eq!(client.answered(&KEY, &server.answer(&OTHER)), None);
        let client = client.answered(&KEY, &server.answer(&KEY)).expect("same key");
        assert_eq!(server.confirmed(&KEY, &client.confirm(&OTHER)), None);
    }

    #[test]
    fn a_replayed_hello_and_confirm_prove_nothing() {
        let client = FlowProof::start(0, challenge());
        let first = FlowProof::greeted(&KEY, &client.hello(&KEY), challenge()).expect("same key");
        let confirm = client.answered(&KEY, &first.answer(&KEY)).expect("same key").confirm(&KEY);
        let second = FlowProof::greeted(&KEY, &client.hello(&KEY), challenge()).expect("same key");
        assert_eq!(second.confirmed(&KEY, &confirm), None);
    }

    #[test]
    fn any_flipped_bit_of_a_hello_is_noticed() {
        let hello = FlowProof::start(1, challenge()).hello(&KEY);
        for at in 0..HELLO * 8 {
            let mut spoilt = hello;
            spoilt[at / 8] ^= 1 << (at % 8);
            assert_eq!(FlowProof::greeted(&KEY, &spoilt, challenge()), None, "bit {at}");
        }
    }

    #[test]
    fn an_answer_cannot_be_reflected_as_a_hello() {
        let client = FlowProof::start(1, challenge());
        let server = FlowProof::greeted(&KEY, &client.hello(&KEY), challenge()).expect("same key");
        assert_ne!(server.answer(&KEY)[CHALLENGE..], server.confirm(&KEY));
    }
}
