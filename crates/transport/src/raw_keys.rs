//! TLS 1.3 between two ends that share a session's key, without certificates.
//!
//! Both ends derive the same two Ed25519 keys from the session's key, one for each role, and use them as raw public
//! keys (RFC 7250). Each end accepts only the key of its peer's role, so that a finished handshake proves the session's
//! key both ways: CertificateVerify (RFC 8446 section 4.4.3) signs the whole handshake.

use std::sync::Arc;

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

/// The server's name, which rustls requires. It is not sent, and only the key is verified.
pub(crate) const NAME: &str = "landspeed";
/// The bytes that precede the seed of an Ed25519 key in PKCS #8 (RFC 8410 section 7).
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The contexts from which one protocol derives the keys of its two ends. They differ from those of any other protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyContexts {
    pub(crate) server: &'static str,
    pub(crate) client: &'static str,
}

impl KeyContexts {
    /// Returns the configuration of a server with the session key `key`, which accepts the ciphers of `provider`.
    pub(crate) fn server_config(
        self,
        key: &ProofKey,
        provider: CryptoProvider,
    ) -> Result<ServerConfig, String> {
        let own = certified(key, self.server)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(text)?
            .with_client_cert_verifier(PeerKeyVerifier::with(key, self.client)?)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        // There is only one connection, so there is nothing to resume.
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Returns the configuration of a client with the session key `own`, which offers the ciphers of `provider` and
    /// expects a server with `key`.
    pub(crate) fn client_config(
        self,
        own: &ProofKey,
        key: &ProofKey,
        provider: CryptoProvider,
    ) -> Result<ClientConfig, String> {
        let own = certified(own, self.client)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(text)?
            .dangerous()
            .with_custom_certificate_verifier(PeerKeyVerifier::with(key, self.server)?)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        config.enable_sni = false;
        config.resumption = Resumption::disabled();
        Ok(config)
    }
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
/// 1.3.
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

    #[test]
    fn keys_follow_from_the_session_and_the_role() {
        let public =
            |key, role| public(signing(key, role).expect("a key").as_ref()).expect("its public part");
        let [key, other] = [&[7; 32], &[8; 32]];
        assert_eq!(public(key, "a server"), public(key, "a server"));
        assert_ne!(public(key, "a server"), public(key, "a client"));
        assert_ne!(public(key, "a server"), public(other, "a server"));
    }
}
