//! New keys before the limit of a cipher.

use std::sync::atomic::{AtomicU64, Ordering};

use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundOpaqueMessage, OutboundPlainMessage,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::ring::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};
use rustls::{ConnectionTrafficSecrets, SupportedCipherSuite, Tls13CipherSuite};

use super::*;

/// The number of records that a key encrypts in this test.
const LIMIT: u64 = 32;
/// The most payload of a record.
const RECORD: u64 = 1 << 14;

/// The number of keys that were made to encrypt, of the handshake too.
static KEYS: AtomicU64 = AtomicU64::new(0);
/// The largest number of a record under one key, from 0.
static LARGEST: AtomicU64 = AtomicU64::new(0);

/// A cipher that counts its keys, and the records under each.
struct CountedCipher(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for CountedCipher {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        KEYS.fetch_add(1, Ordering::Relaxed);
        Box::new(CountedRecords(self.0.encrypter(key, iv)))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

struct CountedRecords(Box<dyn MessageEncrypter>);

impl MessageEncrypter for CountedRecords {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        number: u64,
    ) -> Result<OutboundOpaqueMessage, rustls::Error> {
        LARGEST.fetch_max(number, Ordering::Relaxed);
        self.0.encrypt(message, number)
    }

    fn encrypted_payload_len(&self, length: usize) -> usize {
        self.0.encrypted_payload_len(length)
    }
}

/// Returns the parts of a suite.
fn parts(suite: SupportedCipherSuite) -> &'static Tls13CipherSuite {
    suite.tls13().expect("a suite of TLS 1.3")
}

/// Returns AES-128-GCM with a low limit.
fn limited() -> SupportedCipherSuite {
    let own = parts(TLS13_AES_128_GCM_SHA256);
    let suite = Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: own.common.suite,
            hash_provider: own.common.hash_provider,
            confidentiality_limit: LIMIT,
        },
        hkdf_provider: own.hkdf_provider,
        aead_alg: Box::leak(Box::new(CountedCipher(own.aead_alg))),
        quic: None,
    };
    SupportedCipherSuite::Tls13(Box::leak(Box::new(suite)))
}

#[test]
fn keys_are_replaced_before_the_limit_of_the_cipher() {
    let (there, here) = bare_flows_of(&CipherChoice { offered: vec![limited()], insisted: None });
    let bytes = &pattern(4 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| send(&there, bytes, 131_072));
        assert!(receive(&here, bytes.len(), 100_000) == *bytes, "other bytes came");
    });
    let [keys, largest] = [&KEYS, &LARGEST].map(|count| count.load(Ordering::Relaxed));
    let records = bytes.len() as u64 / RECORD;
    assert!(
        keys > records / LIMIT && largest < LIMIT,
        "{keys} keys, up to {largest} records before a new one"
    );
}

/// A copy of terabytes relies on this (RFC 8446 section 5.5).
#[test]
fn ciphers_with_a_limit_have_it_in_their_suites() {
    for suite in [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384] {
        assert!(parts(suite).common.confidentiality_limit <= 1 << 24, "{suite:?}");
    }
}
