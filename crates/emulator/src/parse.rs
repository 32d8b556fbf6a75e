//! Reading a link's parameters.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::str::FromStr;

use landspeed_units::{BitRate, Bytes, Nanos, parse_duration};

use super::keys::{BACK, LINK_KEYS, WAY_KEYS, WanSpecError, no_such, shown};
use super::list;
use super::loss::most_in_bursts;
use super::print::NONE;
use super::share::Share;
use super::spec::{Carrier, LossStates, Pace, Queue, WanSpec, Way};

const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;
const LONGEST: Nanos = Nanos::secs(10);
const BURSTS: RangeInclusive<u32> = 1_000..=100_000_000;
/// From the smallest packet that every IPv4 router passes (RFC 791) to the largest there is.
const SIZES: RangeInclusive<u64> = 68..=65_535;
/// 16 GiB, a million packets, or a hundred times the bandwidth-delay product: beyond any memory of today.
const QUEUES: RangeInclusive<u64> = 1..=1 << 34;
const PACKETS: RangeInclusive<u32> = 1..=1_000_000;
const BDPS: RangeInclusive<u32> = 1..=100_000;
/// Of a file's name, or a list: four of them, and the rest, must fit into what is written down of a lab (16 KiB), or
/// `landspeed lab down` would not find it.
const LONGEST_NAME: usize = 2000;

/// A parameter as it was given.
struct Given<'a> {
    is_back: bool,
    key: &'static str,
    expected: &'static str,
    value: &'a str,
}

impl FromStr for WanSpec {
    type Err = WanSpecError;

    /// "rate=1G,rtt=20ms,loss=0.01%"; what is left out has its default, so "" is a link too. Files are not
    /// read here.
    fn from_str(text: &str) -> Result<Self, WanSpecError> {
        let given = text.split(',').filter(|_| !text.is_empty()).map(given);
        let given: Vec<Given<'_>> = given.collect::<Result<_, _>>()?;
        let mut seen = HashSet::new();
        if let Some(again) = given.iter().find(|g| !seen.insert((g.is_back, g.key))) {
            let prefix = if again.is_back { BACK } else { "" };
            return Err(WanSpecError::Twice(format!("{prefix}{}", again.key)));
        }
        let mut spec = WanSpec::default();
        for word in given.iter().filter(|word| !word.is_back) {
            set(&mut spec, word.key, word.value).ok_or_else(|| wrong(word))?;
        }
        spec.ways[1] = spec.ways[0].back();
        for word in given.iter().filter(|word| word.is_back) {
            set_way(&mut spec.ways[1], word.key, word.value).ok_or_else(|| wrong(word))?;
        }
        for is_back in [false, true] {
            let says = |key| seen.contains(&(is_back, key));
            together(&spec.ways[usize::from(is_back)], says)?;
        }
        Ok(spec)
    }
}

fn given(word: &str) -> Result<Given<'_>, WanSpecError> {
    let (name, value) = word.split_once('=').ok_or_else(|| WanSpecError::NoValue(shown(word)))?;
    let back = name.strip_prefix(BACK);
    let keys: &'static [(&'static str, &'static str)] = if back.is_some() { &[] } else { LINK_KEYS };
    let mut keys = WAY_KEYS.iter().chain(keys);
    let (key, expected) =
        *keys.find(|(known, _)| *known == back.unwrap_or(name)).ok_or_else(|| no_such(name))?;
    Ok(Given { is_back: back.is_some(), key, expected, value })
}

fn wrong(word: &Given<'_>) -> WanSpecError {
    WanSpecError::Value { key: word.key, given: shown(word.value), expected: word.expected }
}

fn set(spec: &mut WanSpec, key: &str, value: &str) -> Option<()> {
    match key {
        "rtt" => spec.rtt = time(value)?,
        "pairs" => spec.pairs = value.parse().ok().filter(|n| (1..=WanSpec::MAX_PAIRS).contains(n))?,
        "link" => spec.carrier = carrier(value)?,
        "seed" => spec.seed = value.parse().ok()?,
        _ => return set_way(&mut spec.ways[0], key, value),
    }
    Some(())
}

fn set_way(way: &mut Way, key: &str, value: &str) -> Option<()> {
    match key {
        "rate" => way.pace = Pace::Rate(rate(value)?),
        "trace" => way.pace = Pace::Trace(name(value)?),
        "queue" => way.queue = queue(value)?,
        "mark-above" => way.mark_above = or_none(value, queue)?,
        "jitter" => way.jitter = time(value)?,
        "loss" => way.loss = Share::parse(value)?,
        "loss-burst" => {
            way.loss_burst = or_none(value, |text| thousandths(text).filter(|n| BURSTS.contains(n)))?;
        }
        "loss-states" => way.loss_states = or_none(value, states)?,
        "loss-nth" => way.loss_nth = or_none(value, |text| text.parse().ok().filter(|nth| *nth > 0))?,
        "drop-list" => way.drop_list = or_none(value, |text| name(text).filter(|t| list::could_be(t)))?,
        "reorder" => way.reorder = Share::parse(value)?,
        "reorder-delay" => way.reorder_delay = time(value).filter(|t| t.0 > 0)?,
        "duplicate" => way.duplicate = Share::parse(value)?,
        "drop-above" => way.drop_above = or_none(value, size)?,
        _ => return None,
    }
    Some(())
}

/// `Some(None)` for "none".
fn or_none<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { read(text).map(Some) }
}

fn together(way: &Way, given: impl Fn(&'static str) -> bool) -> Result<(), WanSpecError> {
    let without = |key: &str, needed: &str| {
        WanSpecError::Together(format!("{key} says nothing without {needed}: add {needed}=0.1%"))
    };
    if let Some(thousandths) = way.loss_burst {
        let length = f64::from(thousandths) / 1000.0;
        let most = most_in_bursts(length);
        if way.loss.is_zero() && given("loss-burst") {
            return Err(without("loss-burst", "loss"));
        }
        if way.loss.as_f64() > most {
            let most = Share::new(most).unwrap_or_default();
            let text = format!("runs of {length} losses make up at most loss={most}, not {}", way.loss);
            return Err(WanSpecError::Together(text));
        }
    }
    let both =
        |a: &str, b: &str, why: &str| Err(WanSpecError::Together(format!("{a} and {b} {why}: give one")));
    if given("rate") && given("trace") {
        return both("rate", "trace", "both say how fast the line is");
    }
    if !way.loss.is_zero() && way.loss_states.is_some() {
        return both("loss", "loss-states", "both say what chance loses");
    }
    if given("reorder-delay") && way.reorder.is_zero() {
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

/// Whether a line can be of this rate.
pub(super) fn is_rate(bps: u64) -> bool {
    RATES.contains(&bps)
}

fn time(text: &str) -> Option<Nanos> {
    parse_duration(text).ok().filter(|time| *time <= LONGEST)
}

fn size(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|size: &Bytes| SIZES.contains(&size.0))
}

fn queue(text: &str) -> Option<Queue> {
    if let Some(factor) = text.strip_suffix("bdp") {
        return thousandths(factor).filter(|factor| BDPS.contains(factor)).map(Queue::Bdp);
    }
    if let Some(packets) = text.strip_suffix('p') {
        let plain = packets.bytes().all(|b| b.is_ascii_digit());
        let packets = plain.then(|| packets.parse().ok()).flatten()?;
        return PACKETS.contains(&packets).then_some(Queue::Packets(packets));
    }
    let size: Bytes = text.parse().ok()?;
    QUEUES.contains(&size.0).then_some(Queue::Bytes(size.0))
}

fn states(text: &str) -> Option<LossStates> {
    let shares: Vec<Share> = text.split('+').map(Share::parse).collect::<Option<_>>()?;
    shares.try_into().ok().map(LossStates)
}

fn carrier(text: &str) -> Option<Carrier> {
    [Carrier::Auto, Carrier::Netem, Carrier::User].into_iter().find(|carrier| carrier.to_string() == text)
}

/// A file's name, or a list: nothing that a terminal would obey.
fn name(text: &str) -> Option<String> {
    let sound = (1..=LONGEST_NAME).contains(&text.len()) && !text.chars().any(char::is_control);
    sound.then(|| text.to_owned())
}

/// A plain decimal number, in thousandths.
fn thousandths(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = plain.then(|| text.parse().ok()).flatten()?;
    // Larger numbers become the largest, which no parameter takes.
    Some((number * 1000.0).round() as u32)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
