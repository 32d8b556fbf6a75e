//! The messages of the handshake (passes in the words of ISO/IEC 9798-4), made and checked without I/O, for callers
//! that read and write themselves.
//!
//! The UDP transport keeps no state of a client until the client's confirm arrives. Therefore the datagram with the
//! confirm repeats the number and both challenges. Because this datagram may be lost, the server acknowledges it with a
//! fourth pass: MAC("welcome", number, C, S).

use crate::{ProofKey, random};

/// Length of a challenge in bytes.
pub const CHALLENGE: usize = 16;
/// Length of a MAC in bytes.
pub const MAC: usize = blake3::OUT_LEN;
/// Length of the hello, the first pass, in bytes.
pub const HELLO: usize = 4 + CHALLENGE + MAC;
/// Length of the answer, the second pass, in bytes.
pub const ANSWER: usize = CHALLENGE + MAC;
/// Length of the confirm, the third pass, in bytes.
pub const CONFIRM: usize = MAC;

/// Random bytes that the other end cannot predict.
pub type Challenge = [u8; CHALLENGE];

/// The state of one handshake, at the client or at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyProof {
    /// The number of the flow, or the length of the request in bytes.
    pub number: u32,
    /// The client's challenge.
    pub client: Challenge,
    /// The server's challenge; zeros until it is known.
    pub server: Challenge,
}

impl KeyProof {
    /// Starts a proof at the client. `number` is the number of the flow, or the length of the request in bytes.
    /// `client` is a fresh challenge.
    pub fn start(number: u32, client: Challenge) -> Self {
        KeyProof { number, client, server: [0; CHALLENGE] }
    }

    /// Returns the client's hello, the first pass.
    pub fn hello(&self, key: &ProofKey) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..4].copy_from_slice(&self.number.to_be_bytes());
        bytes[4..4 + CHALLENGE].copy_from_slice(&self.client);
        bytes[4 + CHALLENGE..].copy_from_slice(self.mac(key, "client").as_bytes());
        bytes
    }

    /// Starts the server's proof from a hello. `server` is the server's challenge. Returns `None` if the hello's MAC
    /// was not made with `key`.
    pub fn greeted(key: &ProofKey, hello: &[u8; HELLO], server: Challenge) -> Option<Self> {
        let (number, rest) = hello.split_first_chunk::<4>()?;
        let (client, mac) = rest.split_first_chunk::<CHALLENGE>()?;
        let proof = KeyProof::start(u32::from_be_bytes(*number), *client);
        proof.holds(key, "client", mac).then_some(KeyProof { server, ..proof })
    }

    /// Returns the server's answer, the second pass.
    pub fn answer(&self, key: &ProofKey) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..CHALLENGE].copy_from_slice(&self.server);
        bytes[CHALLENGE..].copy_from_slice(self.mac(key, "server").as_bytes());
        bytes
    }

    /// Checks the server's answer. Returns the client's proof with the challenge of the answer, or `None` if the
    /// answer's MAC was not made with `key`.
    pub fn answered(self, key: &ProofKey, answer: &[u8; ANSWER]) -> Option<Self> {
        let (server, mac) = answer.split_first_chunk::<CHALLENGE>()?;
        let proof = KeyProof { server: *server, ..self };
        proof.holds(key, "server", mac).then_some(proof)
    }

    /// Returns the client's confirm, the third pass.
    pub fn confirm(&self, key: &ProofKey) -> [u8; CONFIRM] {
        *self.mac(key, "confirm").as_bytes()
    }

    /// Checks the client's confirm. Returns [`KeyProof::number`], or `None` if the MAC is wrong.
    pub fn confirmed(&self, key: &ProofKey, confirm: &[u8; CONFIRM]) -> Option<u32> {
        self.holds(key, "confirm", confirm).then_some(self.number)
    }

    /// Returns the fourth pass, with which the server acknowledges the confirm. Only the UDP transport sends it.
    pub fn welcome(&self, key: &ProofKey) -> [u8; MAC] {
        *self.mac(key, "welcome").as_bytes()
    }

    /// Checks the fourth and last message of the handshake, which the server sends over UDP only. Returns true if
    /// `welcome` is the right MAC.
    pub fn welcomed(&self, key: &ProofKey, welcome: &[u8; MAC]) -> bool {
        self.holds(key, "welcome", welcome)
    }

    /// Derives a key for `purpose` that only the two ends of this handshake know.
    pub fn derive(&self, key: &ProofKey, purpose: &'static str) -> ProofKey {
        *self.mac(key, purpose).as_bytes()
    }

    fn mac(&self, key: &ProofKey, pass: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(b"landspeed flow 1 ");
        hasher.update(pass.as_bytes());
        hasher.update(&self.number.to_be_bytes());
        hasher.update(&self.client);
        hasher.update(&self.server);
        hasher.finalize()
    }

    /// Returns true if `mac` is the MAC of the pass `pass`. The comparison takes constant time (`blake3::Hash`), so
    /// that a MAC cannot be guessed byte by byte.
    fn holds(&self, key: &ProofKey, pass: &str, mac: &[u8]) -> bool {
        mac.try_into().is_ok_and(|mac: [u8; MAC]| self.mac(key, pass) == blake3::Hash::from_bytes(mac))
    }
}

/// The server's side of the handshake over a byte stream. The caller reads bytes into [`ServerProof::room`] and
/// processes them with [`ServerProof::came`].
#[derive(Debug)]
pub struct ServerProof {
    proof: Option<KeyProof>,
    bytes: [u8; HELLO],
    got: usize,
}

/// The next step of a [`ServerProof`], after some bytes from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProofStep {
    /// More bytes are needed.
    More,
    /// Send these bytes to the client, then read its confirm.
    Answer([u8; ANSWER]),
    /// The client holds the key. The value is the number in its hello.
    Proven(u32),
    /// The client does not hold the key.
    Stranger,
}

impl ServerProof {
    /// Begins a proof that waits for a hello.
    pub fn begin() -> Self {
        ServerProof { proof: None, bytes: [0; HELLO], got: 0 }
    }

    /// Returns true once a hello has arrived whose MAC was made with the key.
    pub fn has_greeted(&self) -> bool {
        self.proof.is_some()
    }

    /// Returns the buffer into which the caller must read the next bytes. The buffer has room for the rest of the
    /// expected message only, because the bytes after the handshake belong to the flow.
    pub fn room(&mut self) -> &mut [u8] {
        let wanted = if self.proof.is_none() { HELLO } else { CONFIRM };
        &mut self.bytes[self.got..wanted]
    }

    /// Processes the `bytes` bytes that the caller has read into [`ServerProof::room`], and returns what to do next.
    pub fn came(&mut self, key: &ProofKey, bytes: usize) -> ServerProofStep {
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
        self.proof = KeyProof::greeted(key, &self.bytes, random());
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
        let client = KeyProof::start(3, random());
        let server = KeyProof::greeted(&KEY, &client.hello(&KEY), random()).expect("same key");
        let client = client.answered(&KEY, &server.answer(&KEY)).expect("same key");
        assert_eq!(server.confirmed(&KEY, &client.confirm(&KEY)), Some(3));
        assert!(client.welcomed(&KEY, &server.welcome(&KEY)));
        assert!(!client.welcomed(&KEY, &server.welcome(&OTHER)));
    }

    #[test]
    fn another_key_proves_nothing_in_any_pass() {
        let client = KeyProof::start(3, random());
        assert_eq!(KeyProof::greeted(&KEY, &client.hello(&OTHER), random()), None);
        let server = KeyProof::greeted(&KEY, &client.hello(&KEY), random()).expect("same key");
        assert_eq!(client.answered(&KEY, &server.answer(&OTHER)), None);
        let client = client.answered(&KEY, &server.answer(&KEY)).expect("same key");
        assert_eq!(server.confirmed(&KEY, &client.confirm(&OTHER)), None);
    }

    #[test]
    fn a_replayed_hello_and_confirm_prove_nothing() {
        let client = KeyProof::start(0, random());
        let first = KeyProof::greeted(&KEY, &client.hello(&KEY), random()).expect("same key");
        let confirm = client.answered(&KEY, &first.answer(&KEY)).expect("same key").confirm(&KEY);
        let second = KeyProof::greeted(&KEY, &client.hello(&KEY), random()).expect("same key");
        assert_eq!(second.confirmed(&KEY, &confirm), None);
    }

    #[test]
    fn any_flipped_bit_of_a_hello_is_noticed() {
        let hello = KeyProof::start(1, random()).hello(&KEY);
        for at in 0..HELLO * 8 {
            let mut spoilt = hello;
            spoilt[at / 8] ^= 1 << (at % 8);
            assert_eq!(KeyProof::greeted(&KEY, &spoilt, random()), None, "bit {at}");
        }
    }

    #[test]
    fn an_answer_cannot_be_reflected_as_a_hello() {
        let client = KeyProof::start(1, random());
        let server = KeyProof::greeted(&KEY, &client.hello(&KEY), random()).expect("same key");
        assert_ne!(server.answer(&KEY)[CHALLENGE..], server.confirm(&KEY));
    }
}
