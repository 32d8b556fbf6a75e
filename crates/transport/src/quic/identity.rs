//! The keys by which the two ends of a connection authenticate each other (`raw_keys.rs`).
//!
//! A server must not spend memory or signatures on strangers. A client may choose any connection ID for its first
//! packet (RFC 9000 section 7.2). Here the ID is a nonce and a MAC under the session's key, and a server ignores first
//! packets with any other ID.

use quinn_proto::ConnectionId;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::ring::default_provider;

use crate::ProofKey;
use crate::raw_keys::KeyContexts;

/// The protocol name that both ends agree on (ALPN, RFC 9001 section 8.1).
const PROTOCOL: &[u8] = b"landspeed flow 1";
const CONTEXTS: KeyContexts =
    KeyContexts { server: "landspeed 2026 QUIC server", client: "landspeed 2026 QUIC client" };
const KNOCK: &str = "landspeed 2026 QUIC first connection ID";
/// The length of the nonce in the connection ID of a first packet, in bytes.
const NONCE: usize = 12;
/// The length of the connection ID of a first packet, in bytes: the most that QUIC allows. The MAC after the nonce is
/// truncated to fit.
const ID: usize = 20;
/// The bit that marks a packet with a long header (RFC 9000 section 17.2).
const LONG: u8 = 0x80;
/// The offset of the destination connection ID in a first packet, in bytes: after the first byte (1), the version (4)
/// and the length of the ID (1).
const AT: usize = 6;

/// Returns the TLS configuration of a server.
pub(super) fn server(key: &ProofKey) -> Result<QuicServerConfig, String> {
    let mut config = CONTEXTS.server_config(key, default_provider())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.try_into().map_err(text)
}

/// Returns the TLS configuration of a client.
pub(super) fn client(key: &ProofKey) -> Result<QuicClientConfig, String> {
    client_with(key, key)
}

/// Returns the TLS configuration of a client with the session key `own` that expects a server with `key`.
pub(super) fn client_with(own: &ProofKey, key: &ProofKey) -> Result<QuicClientConfig, String> {
    let mut config = CONTEXTS.client_config(own, key, default_provider())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.try_into().map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns a new connection ID for a client's first packet, which shows that the client has `key`.
pub(super) fn knock(key: &ProofKey) -> ConnectionId {
    let mut id = [0; ID];
    id[..NONCE].copy_from_slice(&landspeed_proof::random::<NONCE>());
    let mac = mac(key, &id[..NONCE]);
    id[NONCE..].copy_from_slice(&mac[..ID - NONCE]);
    ConnectionId::new(&id)
}

/// Returns the connection ID of a first packet if it shows that the sender has `key`; `None` for any other datagram.
pub(super) fn knocked(key: &ProofKey, datagram: &[u8]) -> Option<[u8; ID]> {
    if datagram.first()? & LONG == 0 || usize::from(*datagram.get(AT - 1)?) != ID {
        return None;
    }
    let id: &[u8; ID] = datagram.get(AT..)?.first_chunk()?;
    let expected = mac(key, &id[..NONCE]);
    // Compares in constant time, so that a MAC cannot be guessed byte by byte.
    let differs = id[NONCE..].iter().zip(&expected).fold(0, |differs, (a, b)| differs | (a ^ b));
    (differs == 0).then_some(*id)
}

fn mac(key: &ProofKey, nonce: &[u8]) -> [u8; blake3::OUT_LEN] {
    *blake3::keyed_hash(&blake3::derive_key(KNOCK, key), nonce).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ProofKey = [7; 32];
    const OTHER: ProofKey = [8; 32];

    fn first_packet(id: &ConnectionId) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, ID as u8], &id[..], &[0; 1174]].concat()
    }

    #[test]
    fn only_the_holder_of_the_key_can_knock_and_each_time_differently() {
        let packet = first_packet(&knock(&KEY));
        assert!(knocked(&KEY, &packet).is_some() && knocked(&OTHER, &packet).is_none());
        assert_ne!(knock(&KEY), knock(&KEY));
        for length in 0..AT + ID {
            assert_eq!(knocked(&KEY, &packet[..length]), None, "{length}");
        }
        for bit in (0..8).chain(AT * 8 - 8..(AT + ID) * 8) {
            let mut spoilt = packet.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            // Of the first byte, only the header form is checked.
            assert_eq!(knocked(&KEY, &spoilt).is_some(), bit < 7, "bit {bit}");
        }
    }
}
