//! Parses and prints the values of parameters.

use std::fmt;
use std::ops::RangeInclusive;

use landspeed_record::units::{BitRate, Bytes, Nanos, parse_duration};

use super::numbers::DROPS;
use super::spec::{DropList, LossStates, QueueSpec};
use landspeed_record::units::Share;

const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;
const LONGEST: Nanos = Nanos::secs(10);
pub(super) const BURSTS: RangeInclusive<u32> = 1_000..=100_000_000;
/// Sizes of IP packets in bytes: from the largest that every IPv4 router forwards without fragmentation (RFC 791) to
/// the largest possible.
const SIZES: RangeInclusive<u64> = 68..=65_535;
/// The range of a queue's size in bytes. The next two constants are the ranges in packets and in thousandths of the
/// bandwidth-delay product. The upper ends are 16 GiB, a million packets, and a hundred times the product.
const QUEUES: RangeInclusive<u64> = 1..=1 << 34;
const PACKETS: RangeInclusive<u32> = 1..=1_000_000;
const BDPS: RangeInclusive<u32> = 1..=100_000;
/// The largest length of a list or of a file's name, in bytes. The description of a lab may contain four such texts,
/// and must fit into the file of 16 KiB that `landspeed lab down` reads.
pub(super) const LONGEST_TEXT: usize = 2000;

/// The value that turns a parameter off.
pub(super) const NONE: &str = "none";

/// Parses `text`: returns `Some(None)` for the word "none", `Some(Some(value))` for what `read` accepts, and `None` for
/// anything else.
pub(super) fn or_none<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    if text == NONE { Some(None) } else { read(text).map(Some) }
}

/// Parses a rate in bit/s, in landspeed's notation ("2.5Gb/s") or in tc's ("100mbit").
pub(super) fn rate(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let short = ["bit/s", "bit", "bps"].iter().find_map(|suffix| text.strip_suffix(suffix)).unwrap_or(&text);
    let rate: BitRate = short.parse().ok()?;
    let whole = rate.0.round() as u64;
    is_rate(whole).then_some(whole)
}

pub(super) fn is_rate(bps: u64) -> bool {
    RATES.contains(&bps)
}

pub(super) fn time(text: &str) -> Option<Nanos> {
    parse_duration(text).ok().filter(|time| *time <= LONGEST)
}

pub(super) fn size(text: &str) -> Option<Bytes> {
    text.parse().ok().filter(|size: &Bytes| SIZES.contains(&size.0))
}

pub(super) fn queue(text: &str) -> Option<QueueSpec> {
    if let Some(factor) = text.strip_suffix("bdp") {
        return thousandths(factor).filter(|factor| BDPS.contains(factor)).map(QueueSpec::Bdp);
    }
    if text.ends_with('s') {
        return time(text).filter(|time| *time > Nanos(0)).map(QueueSpec::Time);
    }
    if let Some(packets) = text.strip_suffix('p') {
        let plain = packets.bytes().all(|b| b.is_ascii_digit());
        let packets = plain.then(|| packets.parse().ok()).flatten()?;
        return PACKETS.contains(&packets).then_some(QueueSpec::Packets(packets));
    }
    let size: Bytes = text.parse().ok()?;
    QUEUES.contains(&size.0).then_some(QueueSpec::Bytes(size.0))
}

pub(super) fn states(text: &str) -> Option<LossStates> {
    let shares: Vec<Share> = text.split('+').map(Share::parse).collect::<Option<_>>()?;
    shares.try_into().ok().map(LossStates)
}

/// Parses a file's name. Control characters are refused, because a terminal would interpret them.
pub(super) fn file(text: &str) -> Option<String> {
    let is_sound = (1..=LONGEST_TEXT).contains(&text.len()) && !text.chars().any(char::is_control);
    is_sound.then(|| text.to_owned())
}

/// Parses ascending numbers from 1, joined by '+', or else the name of a file with such numbers. "none" is the empty
/// list.
pub(super) fn drop_list(text: &str) -> Option<DropList> {
    if text == NONE {
        return Some(DropList::Numbers(Vec::new()));
    }
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'+') {
        return file(text).map(DropList::File);
    }
    let short = Some(text).filter(|text| text.len() <= LONGEST_TEXT)?;
    DROPS.parse(short.split('+')).ok().map(DropList::Numbers)
}

/// Parses a plain decimal number, and returns it in thousandths.
pub(super) fn thousandths(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number: f64 = plain.then(|| text.parse().ok()).flatten()?;
    // The cast saturates: larger numbers become the largest u32, which no parameter accepts.
    Some((number * 1000.0).round() as u32)
}

impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueSpec::Bytes(bytes) => {
                f.write_str(&whole(*bytes, &[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")], ""))
            }
            QueueSpec::Packets(packets) => write!(f, "{packets}p"),
            QueueSpec::Time(time) => f.write_str(&time.exact()),
            QueueSpec::Bdp(thousandths) => write!(f, "{}bdp", f64::from(*thousandths) / 1000.0),
        }
    }
}

impl fmt::Display for LossStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [enter, leave, good, bad] = self.0;
        write!(f, "{enter}+{leave}+{good}+{bad}")
    }
}

pub(super) fn show_rate(bps: u64) -> String {
    whole(bps, &[(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")], "")
}

pub(super) fn show_time(time: Nanos) -> String {
    whole(time.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// Prints the value in the largest unit that divides it without a remainder, so that it parses to the same value.
fn whole(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", value / size),
        None => format!("{value}{smallest}"),
    }
}

/// Prints a list; `None` if it is empty.
pub(super) fn show_drop_list(list: &DropList) -> Option<String> {
    match list {
        DropList::Numbers(numbers) if numbers.is_empty() => None,
        DropList::Numbers(numbers) => Some(numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("+")),
        DropList::File(file) => Some(file.clone()),
    }
}
