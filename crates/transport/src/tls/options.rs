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

/// The value that leaves the choice to both ends ([`chosen`]).
const AUTO: &str = "auto";

static CIPHER: Factor = Factor {
    name: "tls-cipher",
    about: "cipher of TLS's records, both ways; auto: aes-128-gcm if both processors have AES, else chacha20-poly1305",
    domain: Domain::OneOf(&["aes-256-gcm", "aes-128-gcm", "chacha20-poly1305", AUTO]),
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

/// Returns true if this processor has the instructions with which ring runs AES-GCM. Without them it runs AES in software, and
/// several times as slowly.
#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// The suites between which both ends choose, on a processor with instructions for AES or without.
fn chosen(has_aes: bool) -> &'static [SupportedCipherSuite] {
    static WITH: [SupportedCipherSuite; 2] = [TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256];
    if has_aes { &WITH } else { &WITH[1..] }
}

/// The cipher suites that an end of a connection takes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CipherChoice {
    /// Those that a client offers, the one that it likes best first.
    pub(super) offered: Vec<SupportedCipherSuite>,
    /// The one that a server takes if it is offered, whatever the client likes best; `None` if the client chooses. A server takes
    /// every other one too.
    pub(super) insisted: Option<SupportedCipherSuite>,
}

impl CipherChoice {
    /// Returns the choice that `settings` request on this processor.
    pub(super) fn of(settings: &Settings) -> Self {
        CipherChoice::on(settings, has_aes())
    }

    fn on(settings: &Settings, has_aes: bool) -> Self {
        let asked = CIPHER.of(settings);
        if asked == AUTO {
            let offered = chosen(has_aes).to_vec();
            let insisted = (!has_aes).then_some(TLS13_CHACHA20_POLY1305_SHA256);
            return CipherChoice { offered, insisted };
        }
        let found = CIPHERS.iter().find(|(name, _)| *name == asked);
        CipherChoice { offered: vec![found.unwrap_or(&CIPHERS[0]).1], insisted: None }
    }

    /// Returns true if a connection with this suite matches the settings, for any processor at the other end.
    fn allows(settings: &Settings, used: SupportedCipherSuite) -> bool {
        CipherChoice::on(settings, true).offered.contains(&used)
    }
}

/// Returns the name of a cipher suite.
pub(super) fn name(used: SupportedCipherSuite) -> &'static str {
    CIPHERS.iter().find(|(_, suite)| *suite == used).map_or("another", |(name, _)| name)
}

/// Returns a mismatch if a connection uses another cipher suite than `settings` request.
pub(super) fn other_cipher(settings: &Settings, used: SupportedCipherSuite) -> Option<SettingMismatch> {
    let why = "the client chooses the cipher";
    let mismatch = || SettingMismatch::of(CIPHER.name, CIPHER.of(settings), name(used), why);
    (!CipherChoice::allows(settings, used)).then(mismatch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::with;
    use crate::tcp::TcpTransport;

    #[test]
    fn each_value_of_the_setting_has_a_suite_of_its_own() {
        let Domain::OneOf(values) = CIPHER.domain else { panic!("a list of names") };
        assert_eq!(values.to_vec(), [&CIPHERS.map(|(name, _)| name)[..], &[AUTO]].concat());
        for (name, suite) in CIPHERS {
            let settings = with(&[(&CIPHER, name)]);
            let alone = CipherChoice { offered: vec![suite], insisted: None };
            assert_eq!(CipherChoice::of(&settings), alone, "{name}");
            let mismatch = CIPHERS.map(|(_, used)| other_cipher(&settings, used).map(|one| one.got));
            let expected = CIPHERS.map(|(got, _)| (got != name).then(|| got.to_owned()));
            assert_eq!(mismatch, expected, "{name}");
        }
        assert_eq!(CipherChoice::of(&with(&[])).offered, [CIPHERS[0].1]);
    }

    #[test]
    fn an_end_without_instructions_for_aes_takes_the_cipher_that_needs_none() {
        let auto = with(&[(&CIPHER, AUTO)]);
        let [fast, slow] = [true, false].map(|has_aes| CipherChoice::on(&auto, has_aes));
        let (aes, chacha) = (TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256);
        assert_eq!(fast, CipherChoice { offered: vec![aes, chacha], insisted: None });
        assert_eq!(slow, CipherChoice { offered: vec![chacha], insisted: Some(chacha) });
        let mismatch = [aes, chacha, TLS13_AES_256_GCM_SHA384].map(|used| other_cipher(&auto, used));
        assert_eq!(mismatch.map(|one| one.map(|one| one.got)), [None, None, Some("aes-256-gcm".to_owned())]);
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
