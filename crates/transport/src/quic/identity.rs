//! The keys by which the two ends of a connection authenticate each other.
//!
//! Both ends derive the same two Ed25519 keys from the session's key, one for each role, and use them as raw public
//! keys (RFC 7250) in TLS 1.3. Each end accepts only the key of its peer's role, so that a finished handshake proves
//! the session's key both ways: CertificateVerify (RFC 8446 section 4.4.3) signs the whole handshake.
//!
//! A server must not spend memory or signatures on strangers. A client may choose any connection ID for its first
//! packet (RFC 9000 section 7.2). Here the ID is a nonce and a MAC under the session's key, and a server ignores first
//! packets with any other ID.

use std::sync::Arc;

use quinn_proto::ConnectionId;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::ring::{default_provider, sign::any_eddsa_type};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    ServerConfig, SignatureScheme,
};

use crate::ProofKey;

/// The protocol name that both ends agree on (ALPN, RFC 9001 section 8.1).
const PROTOCOL: &[u8] = b"landspeed flow 1";
/// The server's name, which quinn requires. It is not sent, and only the key is verified.
pub(super) const NAME: &str = "landspeed";
const SERVER: &str = "landspeed 2026 QUIC server";
const CLIENT: &str = "landspeed 2026 QUIC client";
const KNOCK: &str = "landspeed 2026 QUIC first connection ID";
/// The bytes that precede the seed of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
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
    let own = certified(key, SERVER)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(text)?
        .with_client_cert_verifier(PeerKeyVerifier::with(key, CLIENT)?)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    // There is only one connection, so there is nothing to resume.
    config.send_tls13_tickets = 0;
    config.try_into().map_err(text)
}

/// Returns the TLS configuration of a client.
pub(super) fn client(key: &ProofKey) -> Result<QuicClientConfig, String> {
    client_with(key, key)
}

/// Returns the TLS configuration of a client with the session key `own` that expects a server with `key`.
pub(super) fn client_with(own: &ProofKey, key: &ProofKey) -> Result<QuicClientConfig, String> {
    let own = certified(own, CLIENT)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(text)?
        .dangerous()
        .with_custom_certificate_verifier(PeerKeyVerifier::with(key, SERVER)?)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    config.try_into().map_err(text)
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

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Derives the signing key of a role.
fn signing(key: &ProofKey, role: &str) -> Result<Arc<dyn SigningKey>, String> {
    let der = [&PKCS8[..], &blake3::derive_key(role, key)].concat();
    any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).map_err(text)
}

/// Returns the public key of a signing key, in DER.
fn public(signing: &dyn SigningKey) -> Result<Vec<u8>, String> {
    signing
        .public_key()
        .map(|key| key.to_vec())
        .ok_or_else(|| "an Ed25519 key without a public one".to_owned())
}

fn certified(key: &ProofKey, role: &str) -> Result<Arc<CertifiedKey>, String> {
    let signing = signing(key, role)?;
    let public = CertificateDer::from(public(signing.as_ref())?);
    Ok(Arc::new(CertifiedKey::new(vec![public], signing)))
}

/// A verifier that accepts a single public key.
#[derive(Debug)]
struct PeerKeyVerifier {
    public: Vec<u8>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PeerKeyVerifier {
    fn with(key: &ProofKey, role: &str) -> Result<Arc<Self>, String> {
        let public = public(signing(key, role)?.as_ref())?;
        Ok(Arc::new(PeerKeyVerifier {
            public,
            algorithms: default_provider().signature_verification_algorithms,
        }))
    }

    fn check(&self, public: &CertificateDer<'_>) -> Result<(), Error> {
        let same = public.as_ref() == self.public;
        same.then_some(()).ok_or_else(|| CertificateError::ApplicationVerificationFailure.into())
    }
}

/// The methods that the verifiers of the client and of the server share. They accept raw Ed25519 public keys over TLS
/// 1.3, the only version of TLS that QUIC uses.
macro_rules! raw_key_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let public = SubjectPublicKeyInfoDer::from(cert.as_ref());
            verify_tls13_signature_with_raw_key(message, &public, dss, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for PeerKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    raw_key_signatures!();
}

impl ClientCertVerifier for PeerKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    raw_key_signatures!();
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

    #[test]
    fn keys_follow_from_the_session_and_the_role() {
        let public =
            |key, role| public(signing(key, role).expect("a key").as_ref()).expect("its public part");
        assert_eq!(public(&KEY, SERVER), public(&KEY, SERVER));
        assert_ne!(public(&KEY, SERVER), public(&KEY, CLIENT));
        assert_ne!(public(&KEY, SERVER), public(&OTHER, SERVER));
    }
}
