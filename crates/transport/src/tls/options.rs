//! The settings of a TLS flow: those of the flow below it, and the cipher.

use landspeed_record::factor::{Domain, Factor, PersistMethod, Proposal};
use landspeed_record::{SettingMismatch, Settings};
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};

use crate::options::others;
use crate::transport::Transport;

/// The names of the ciphers, with their suites. The first one is the first choice of rustls.
static CIPHERS: [(&str, SupportedCipherSuite); 3] = [
    ("aes-256-gcm", TLS13_AES_256_GCM_SHA384),
    ("aes-128-gcm", TLS13_AES_128_GCM_SHA256),
    ("chacha20-poly1305", TLS13_CHACHA20_POLY1305_SHA256),
];

static CIPHER: Factor = Factor {
    name: "tls-cipher",
    about: "cipher of TLS's records, in both directions: the client offers this one only",
    domain: Domain::OneOf(&["aes-256-gcm", "aes-128-gcm", "chacha20-poly1305"]),
    default: "aes-256-gcm",
    persist: &[PersistMethod::Application("put this cipher suite first in the program's TLS configuration")],
    interacts: &["write-size", "placement"],
    source: "RFC 8446 appendix B.4",
    propose: |view| others(view, [Proposal::new("aes-128-gcm", 62), Proposal::new("chacha20-poly1305", 132)]),
    ..Factor::FLOW
};

/// Returns the factors of a TLS flow over the transport `below`. Zero-copy is not among them, because encryption and
/// decryption copy every byte.
pub(super) fn factors(below: &dyn Transport) -> Vec<&'static Factor> {
    let copies = |factor: &&Factor| !factor.name.starts_with("zerocopy-");
    below.factors().into_iter().filter(copies).chain([&CIPHER]).collect()
}

/// Returns the cipher suite that `settings` request.
pub(super) fn cipher(settings: &Settings) -> SupportedCipherSuite {
    let asked = CIPHER.of(settings);
    let found = CIPHERS.iter().find(|(name, _)| *name == asked);
    found.unwrap_or(&CIPHERS[0]).1
}

/// Returns a mismatch if a connection uses another cipher suite than `settings` request.
pub(super) fn other_cipher(settings: &Settings, used: SupportedCipherSuite) -> Option<SettingMismatch> {
    let is_used = |(_, suite): &&(&str, SupportedCipherSuite)| *suite == used;
    let got = CIPHERS.iter().find(is_used).map_or("another", |(name, _)| name);
    let differs = cipher(settings) != used;
    differs
        .then(|| SettingMismatch::of(CIPHER.name, CIPHER.of(settings), got, "the client chooses the cipher"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::with;
    use crate::tcp::TcpTransport;

    #[test]
    fn each_value_of_the_setting_has_a_suite_of_its_own() {
        let Domain::OneOf(values) = CIPHER.domain else { panic!("a list of names") };
        assert_eq!(values.to_vec(), CIPHERS.map(|(name, _)| name));
        for (name, suite) in CIPHERS {
            let settings = with(&[(&CIPHER, name)]);
            assert_eq!(cipher(&settings), suite, "{name}");
            let told = CIPHERS.map(|(_, used)| other_cipher(&settings, used).map(|one| one.got));
            let expected = CIPHERS.map(|(got, _)| (got != name).then(|| got.to_owned()));
            assert_eq!(told, expected, "{name}");
        }
        assert_eq!(cipher(&with(&[])), CIPHERS[0].1);
    }

    #[test]
    fn a_flow_has_the_settings_of_tcp_but_zero_copy() {
        let names = |factors: Vec<&'static Factor>| factors.iter().map(|f| f.name).collect::<Vec<_>>();
        let (mut own, tcp) = (names(factors(&TcpTransport)), names(TcpTransport.factors()));
        assert_eq!(own.pop(), Some("tls-cipher"));
        assert!(own.iter().all(|name| tcp.contains(name)) && own.contains(&"pacing-rate"));
        assert_eq!(tcp.len() - own.len(), 2, "{tcp:?}");
    }
}
