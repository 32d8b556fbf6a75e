//! Reading a link's parameters.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use landspeed_units::{BitRate, Bytes, Nanos, parse_duration};

use super::loss::most_in_bursts;
use super::share::Share;
use super::spec::{Queue, WanSpec};

/// Every parameter and what its value is, for errors.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("rate", "a rate from 8k to 100G bits of IP packets a second: 1G, 2.5Gb/s, 100mbit"),
    ("rtt", "a round-trip time up to 10 s: 20ms, 180ms"),
    ("queue", "what may wait in front of the line: 1bdp, 0.5bdp, 64K, 1M (bytes)"),
    ("loss", "a share of segments from 0 to 100 %: 0.01%, 1e-4"),
    ("loss-burst", "the mean length of a run of losses in segments, from 1 to 100000: 8, 12.5"),
    ("reorder", "a share of segments from 0 to 100 %: 0.1%"),
    ("reorder-delay", "how long those are held back, up to 10 s: 1ms"),
    ("drop-above", "the largest IP packet that passes, from 68 to 65535 bytes: 1400"),
    ("seed", "a whole number: 7"),
];

const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;
const LONGEST: Nanos = Nanos::secs(10);
const BURSTS: RangeInclusive<u32> = 1_000..=100_000_000;
/// From the smallest packet that every IPv4 router passes (RFC 791) to the largest there is.
const SIZES: RangeInclusive<u64> = 68..=65_535;
/// 16 GiB, or a hundred times the bandwidth-delay product: beyond any memory of today.
const QUEUES: RangeInclusive<u64> = 1..=1 << 34;
const BDPS: RangeInclusive<u32> = 1..=100_000;

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
    Twice(&'static str),
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
}

impl FromStr for WanSpec {
    type Err = WanSpecError;

    /// "rate=1G,rtt=20ms,loss=0.01%"; what is left out has its default, so "" is a link too.
    fn from_str(text: &str) -> Result<Self, WanSpecError> {
        let mut spec = WanSpec::default();
        let mut seen = HashSet::new();
        for word in text.split(',').filter(|_| !text.is_empty()) {
            let (key, value) = word.split_once('=').ok_or_else(|| WanSpecError::NoValue(shown(word)))?;
            let (key, expected) =
                *KEYS.iter().find(|(known, _)| *known == key).ok_or_else(|| no_such(key))?;
            if !seen.insert(key) {
                return Err(WanSpecError::Twice(key));
            }
            let wrong = || WanSpecError::Value { key, given: shown(value), expected };
            set(&mut spec, key, value).ok_or_else(wrong)?;
        }
        together(&spec, &seen)?;
        Ok(spec)
    }
}

fn set(spec: &mut WanSpec, key: &str, value: &str) -> Option<()> {
    match key {
        "rate" => spec.rate_bps = rate(value)?,
        "rtt" => spec.rtt = time(value)?,
        "queue" => spec.queue = queue(value)?,
        "loss" => spec.loss = Share::parse(value)?,
        "loss-burst" => spec.loss_burst = Some(thousandths(value).filter(|n| BURSTS.contains(n))?),
        "reorder" => spec.reorder = Share::parse(value)?,
        "reorder-delay" => spec.reorder_delay = time(value).filter(|t| t.0 > 0)?,
        "drop-above" => spec.drop_above = Some(value.parse::<Bytes>().ok().filter(|s| SIZES.contains(&s.0))?),
        "seed" => spec.seed = value.parse().ok()?,
        _ => return None,
    }
    Some(())
}

fn together(spec: &WanSpec, given: &HashSet<&str>) -> Result<(), WanSpecError> {
    let without = |key: &str, needed: &str| {
        WanSpecError::Together(format!("{key} says nothing without {needed}: add {needed}=0.1%"))
    };
    if let Some(length) = spec.loss_burst() {
        if spec.loss.is_zero() {
            return Err(without("loss-burst", "loss"));
        }
        let most = most_in_bursts(length);
        if spec.loss.as_f64() > most {
            let most = Share::new(most).unwrap_or_default();
            let text = format!("runs of {length} losses make up at most loss={most}, not {}", spec.loss);
            return Err(WanSpecError::Together(text));
        }
    }
    if given.contains("reorder-delay") && spec.reorder.is_zero() {
        return Err(without("reorder-delay", "reorder"));
    }
    Ok(())
}

/// As units read them, and as tc writes them: "100mbit".
fn rate(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let short = ["bit/s", "bit", "bps"].iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(&text);
    let rate: BitRate = short.parse().ok()?;
    let whole = rate.0.round() as u64;
    RATES.contains(&whole).then_some(whole)
}

fn time(text: &str) -> Option<Nanos> {
    parse_duration(text).ok().filter(|time| *time <= LONGEST)
}

fn queue(text: &str) -> Option<Queue> {
    let Some(factor) = text.strip_suffix("bdp") else {
        let size: Bytes = text.parse().ok()?;
        return QUEUES.contains(&size.0).then_some(Queue::Bytes(size.0));
    };
    thousandths(factor).filter(|factor| BDPS.contains(factor)).map(Queue::Bdp)
}

/// A plain decimal number, in thousandths.
fn thousandths(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = plain.then(|| text.parse().ok()).flatten()?;
    // Larger numbers become the largest, which no parameter takes.
    Some((number * 1000.0).round() as u32)
}

fn no_such(key: &str) -> WanSpecError {
    let known: Vec<_> = KEYS.iter().map(|(key, _)| *key).collect();
    WanSpecError::NoSuch { given: shown(key), known: known.join(", ") }
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_default().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<WanSpec>().expect_err(text).to_string()
    }

    #[test]
    fn nothing_said_is_a_clean_gigabit() {
        let spec: WanSpec = "".parse().unwrap();
        assert_eq!(spec.to_string(), "rate=1G,rtt=20ms,queue=1bdp");
        assert_eq!(spec.queue(), Bytes(2_500_000));
        assert_eq!(spec.one_way(), Nanos::millis(10));
    }

    #[test]
    fn every_parameter_is_read_and_printed_again() {
        let all = "rate=2500M,rtt=180ms,queue=0.5bdp,loss=0.01%,loss-burst=12.5,reorder=0.1%,\
                   reorder-delay=2500us,drop-above=1400,seed=7";
        assert_eq!(all.parse::<WanSpec>().unwrap().to_string(), all);
        assert!(KEYS.iter().all(|(key, _)| all.contains(&format!("{key}="))), "every key is tested");
    }

    #[test]
    fn every_parameter_is_on_the_reference_page() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/lab-wan.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert!(rows.eq(KEYS.iter().map(|(key, _)| *key)));
    }

    #[test]
    fn rates_are_read_as_people_and_tc_write_them() {
        for text in ["1G", "1gbit", "1Gbit/s", "1Gb/s", "1000mbit", "1e0G", "1000000000"] {
            let spec = format!("rate={text}").parse::<WanSpec>();
            assert_eq!(spec.ok().map(|s| s.rate_bps), (text != "1e0G").then_some(1_000_000_000), "{text}");
        }
    }

    #[test]
    fn a_queue_takes_at_least_what_a_host_sends_at_once() {
        let queue = |text: &str| text.parse::<WanSpec>().unwrap().queue();
        assert_eq!(queue("rtt=0ms"), Bytes::kib(64));
        assert_eq!(queue("queue=3000"), Bytes(3000), "but what is said in bytes is meant");
    }

    #[test]
    fn errors_say_what_and_what_instead() {
        assert!(refused("rate").contains("expected KEY=VALUE"));
        let error = refused("delay=20ms");
        assert!(error.contains("'delay'") && error.contains("rtt"), "{error}");
        let error = refused("rate=7bits");
        assert!(error.contains("rate=7bits") && error.contains("2.5Gb/s"), "{error}");
        assert_eq!(refused("seed=1,seed=2"), "lab:wan: seed is given twice");
        assert!(refused("loss-burst=8").contains("add loss=0.1%"));
        assert!(refused("reorder-delay=8ms").contains("add reorder=0.1%"));
        assert!(refused("loss=90%,loss-burst=4").contains("at most loss=80%"));
    }

    #[test]
    fn what_makes_no_link_is_refused() {
        for bad in [
            "rate=0",
            "rate=200G",
            "rtt=11s",
            "rtt=-1ms",
            "queue=0",
            "queue=0bdp",
            "queue=101bdp",
            "queue=bdp",
            "loss=101%",
            "loss=",
            "loss-burst=0,loss=1%",
            "loss-burst=100001,loss=1%",
            "loss-burst=1e3,loss=1%",
            "reorder=2",
            "reorder=1%,reorder-delay=0s",
            "drop-above=67",
            "drop-above=64K",
            "seed=-1",
            ",",
            "rate=1G,",
            "=1",
            "\u{1b}[2J=1",
        ] {
            let error = refused(bad);
            assert!(!error.contains('\u{1b}'), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            if let Ok(spec) = text.parse::<WanSpec>() {
                prop_assert_eq!(spec.to_string().parse(), Ok(spec));
            }
        }

        #[test]
        fn any_link_reads_as_it_prints(
            rate in 8_000..=100_000_000_000_u64,
            rtt in 0..=10_000_000_000_u64,
            queue in prop_oneof![(1..=1_u64 << 34).prop_map(Queue::Bytes), (1..=100_000_u32).prop_map(Queue::Bdp)],
            loss in 0.0..0.5_f64,
            drop_above in prop::option::of(68..=65_535_u64),
            seed in any::<u64>(),
        ) {
            let spec = WanSpec {
                rate_bps: rate,
                rtt: Nanos(rtt),
                queue,
                loss: Share::new(loss).unwrap(),
                drop_above: drop_above.map(Bytes),
                seed,
                ..WanSpec::default()
            };
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}
