//! Reading the values of parameters.

use std::ops::RangeInclusive;

use landspeed_units::{BitRate, Bytes, Nanos, parse_duration};

use super::print::NONE;
use super::share::Share;
use super::spec::{Carrier, LossStates, Queue};

const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;
const LONGEST: Nanos = Nanos::secs(10);
pub(super) const BURSTS: RangeInclusive<u32> = 1_000..=100_000_000;
/// From the smallest packet that every IPv4 router passes (RFC 791) to the largest there is.
const SIZES: RangeInclusive<u64> = 68..=65_535;
/// 16 GiB, a million packets, or a hundred times the bandwidth-delay product: beyond any memory of today.
const QUEUES: RangeInclusive<u64> = 1..=1 << 34;
const PACKETS: RangeInclusive<u32> = 1..=1_000_000;
const BDPS: RangeInclusive<u32> = 1..=100_000;
/// Of a file's name, or a list: four of them, and the rest, must fit into what is written down of a lab (16 KiB), or
/// `landspeed lab down` would not find it.
pub(super) const LONGEST_NAME: usize = 2000;

/// `Some(None)` for "none".
pub(super) fn or_none<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { read(text).map(Some) }
}

/// As units read them, and as tc writes them: "100mbit".
pub(super) fn rate(text: &str) -> Option<u64> {
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

pub(super) fn time(text: &str) -> Option<Nanos> {
    parse_duration(text).ok().filter(|time| *time <= LONGEST)
}

pub(super) fn size(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|size: &Bytes| SIZES.contains(&size.0))
}

pub(super) fn queue(text: &str) -> Option<Queue> {
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

pub(super) fn states(text: &str) -> Option<LossStates> {
    let shares: Vec<Share> = text.split('+').map(Share::parse).collect::<Option<_>>()?;
    shares.try_into().ok().map(LossStates)
}

pub(super) fn carrier(text: &str) -> Option<Carrier> {
    [Carrier::Auto, Carrier::Netem, Carrier::User].into_iter().find(|carrier| carrier.to_string() == text)
}

/// A file's name, or a list: nothing that a terminal would obey.
pub(super) fn name(text: &str) -> Option<String> {
    let sound = (1..=LONGEST_NAME).contains(&text.len()) && !text.chars().any(char::is_control);
    sound.then(|| text.to_owned())
}

/// A plain decimal number, in thousandths.
pub(super) fn thousandths(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = plain.then(|| text.parse().ok()).flatten()?;
    // Larger numbers become the largest, which no parameter takes.
    Some((number * 1000.0).round() as u32)
}
