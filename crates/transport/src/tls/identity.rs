//! The keys by which the two ends of a connection authenticate each other (`raw_keys.rs`).
//!
//! A proof of the session's key precedes the handshake (crate `proof`). It uses a key of its own, so that a proof that
//! is relayed to a port of the transport `tcp` opens nothing there.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, ServerConfig};

use super::options::CipherChoice;
use crate::ProofKey;
use crate::raw_keys::KeyContexts;

const PROOF: &str = "landspeed 2026 TLS proof before the handshake";
const CONTEXTS: KeyContexts =
    KeyContexts { server: "landspeed 2026 TLS server", client: "landspeed 2026 TLS client" };

/// Returns the key of the proof that precedes the handshake.
pub(super) fn proof_key(key: &ProofKey) -> ProofKey {
    blake3::derive_key(PROOF, key)
}

/// Returns the configuration of a server. It accepts every cipher of TLS 1.3: the client chooses, unless the server insists on one.
pub(super) fn server(key: &ProofKey, ciphers: &CipherChoice) -> Result<Arc<ServerConfig>, String> {
    let mut provider = default_provider();
    // The order of the others stays.
    provider.cipher_suites.sort_by_key(|suite| Some(*suite) != ciphers.insisted);
    let mut config = CONTEXTS.server_config(key, provider)?;
    config.ignore_client_order = ciphers.insisted.is_some();
    Ok(Arc::new(config))
}

/// Returns the configuration of a client.
pub(super) fn client(key: &ProofKey, ciphers: &CipherChoice) -> Result<Arc<ClientConfig>, String> {
    let provider = CryptoProvider { cipher_suites: ciphers.offered.clone(), ..default_provider() };
    CONTEXTS.client_config(key, key, provider).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_has_a_key_of_its_own() {
        let key = [7; 32];
        let own = [CONTEXTS.server, CONTEXTS.client].map(|context| blake3::derive_key(context, &key));
        assert!(proof_key(&key) != key && !own.contains(&proof_key(&key)));
    }
}
