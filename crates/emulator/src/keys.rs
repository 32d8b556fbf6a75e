//! The parameters of a link by name, and what can be wrong with them.

/// Every parameter of a direction and what its value is, for errors. With "back." before it it is said of
/// the way from B to A alone.
pub(super) const WAY_KEYS: &[(&str, &str)] = &[
    ("rate", "a rate from 8k to 100G bits of IP packets a second: 1G, 2.5Gb/s, 100mbit"),
    ("trace", "a file of delivery times in Mahimahi's format, in place of rate"),
    ("queue", "what may wait in front of the line: 1bdp, 0.5bdp, 64K, 1M (bytes), 1000p (packets)"),
    ("mark-above", "what may wait before packets are marked: 100K, 0.1bdp, 65p, or none"),
    ("jitter", "the most that a packet is delayed beyond the rest, up to 10 s: 2ms"),
    ("loss", "a share of segments from 0 to 100 %: 0.01%, 1e-4"),
    ("loss-burst", "the mean length of a run of losses in segments, from 1 to 100000: 8, 12.5, or none"),
    ("loss-states", "four shares of Elliott's chain, ENTER+LEAVE+GOOD+BAD: 0.1%+12.5%+0%+100%, or none"),
    ("loss-nth", "how many packets with payload there are for each one lost, from 1: 1000, or none"),
    ("drop-list", "numbers of packets with payload, the first is 1: 5+17+300, or a file of them, or none"),
    ("reorder", "a share of segments from 0 to 100 %: 0.1%"),
    ("reorder-delay", "how long those are held back, up to 10 s: 1ms"),
    ("duplicate", "a share of segments from 0 to 100 %: 0.1%"),
    ("drop-above", "the largest IP packet that passes, from 68 to 65535 bytes: 1400, or none"),
];

/// Every parameter of the whole link.
pub(super) const LINK_KEYS: &[(&str, &str)] = &[
    ("rtt", "a round-trip time up to 10 s: 20ms, 180ms"),
    ("pairs", "pairs of hosts that share the link, from 1 to 8: 2"),
    ("link", "what carries the packets: auto, netem or user"),
    ("seed", "a whole number: 7"),
];

/// Before a parameter of the way from B to A.
pub(super) const BACK: &str = "back.";

/// Parameters that make no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WanSpecError {
    /// Not KEY=VALUE.
    #[error("lab:wan: '{0}': expected KEY=VALUE")]
    NoValue(String),
    /// No such parameter.
    #[error("lab:wan has no '{given}': expected one of {known}")]
    NoSuch {
        /// What was given, shortened and escaped.
        given: String,
        /// What is understood.
        known: String,
    },
    /// The same parameter again.
    #[error("lab:wan: {0} is given twice")]
    Twice(String),
    /// A value that the parameter cannot have.
    #[error("lab:wan: {key}={given}: expected {expected}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// What was given, shortened and escaped.
        given: String,
        /// What is understood.
        expected: &'static str,
    },
    /// Values that do not go together.
    #[error("lab:wan: {0}")]
    Together(String),
    /// A file that a parameter names, and what is wrong with it.
    #[error("lab:wan: {key}={file}: {why}")]
    File {
        /// The parameter.
        key: &'static str,
        /// The file's name, shortened and escaped.
        file: String,
        /// The line and the reason.
        why: String,
    },
}

/// A parameter that there is not.
pub(super) fn no_such(key: &str) -> WanSpecError {
    let known: Vec<_> = WAY_KEYS.iter().chain(LINK_KEYS).map(|(key, _)| *key).collect();
    let known = format!("{}; or back.KEY", known.join(", "));
    WanSpecError::NoSuch { given: shown(key), known }
}

/// Text from outside, shortened and escaped.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_default().to_string()
}
