//! The handshake of every port: both ends prove that they know a key, without sending it.
//!
//! The proof has the three passes of ISO/IEC 9798-4 clause 7.2 ("three-pass mutual authentication"), with keyed
//! BLAKE3 as the check function:
//!
//! | pass | bytes |
//! |---|---|
//! | hello, client to server | number (4, big endian), challenge C (16), MAC("client", number, C) |
//! | answer, server to client | challenge S (16), MAC("server", number, C, S) |
//! | confirm, client to server | MAC("confirm", number, C, S) |
//!
//! At a data port the key is the session's, and the number is the flow's ([`KeyProof`]). At any other port a request
//! follows the hello ([`verify_server`]) and the number is its length. The key is derived from the run's token, the
//! kind of the port and the request, so that no proof is valid for another request or at another kind of port.
//!
//! The hello's MAC lets a server drop strangers immediately. The confirm shows that the hello was not a replay of an
//! earlier hello. The server does nothing for the client before the confirm. The bytes after the handshake are neither
//! encrypted nor authenticated.

#![warn(missing_docs)]

mod key_proof;
mod request;

use std::net::{IpAddr, Ipv6Addr};

pub use key_proof::{
    ANSWER, CHALLENGE, CONFIRM, Challenge, HELLO, KeyProof, MAC, ServerProof, ServerProofStep,
};
pub use request::{DeadlineStream, ProvenServer, Secret, TOKEN, receive_request, verify_server};

/// A key that both ends know.
pub type ProofKey = [u8; 32];

/// Returns `N` bytes from the kernel's random source.
///
/// # Panics
/// Panics if the kernel has no random source, which does not happen on Linux once it has booted.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    bytes
}

/// Returns the address under which the connections of a stranger are counted. For IPv6 it is the first address of the
/// /64 network, because one host may use all addresses of its network.
pub fn one_source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let same = |a: &str, b: &str| one_source(a.parse().unwrap()) == one_source(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:2") && same("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1") && !same("192.0.2.1", "192.0.2.2"));
    }
}
