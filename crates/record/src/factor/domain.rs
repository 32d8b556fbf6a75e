//! Validation of values. Every value is checked here before it reaches a host, whatever its source.

use std::collections::BTreeSet;

use crate::units::{BitRate, Bytes, Share, parse_duration};

use crate::factor::Domain;

/// Longest value of a knob, in bytes. It is one page, the largest content of a file in sysfs, and no value needs more.
pub const MAX_VALUE_BYTES: usize = 4096;
/// Largest number of members in a joined value. It covers the queues of the largest NICs and the processors of the
/// largest hosts.
const MAX_MEMBERS: usize = 1024;
/// Highest processor number that is accepted: CONFIG_NR_CPUS of the largest distribution kernels, minus one.
pub const MAX_CPU: u32 = 8191;

impl Domain<'_> {
    /// Checks that `value` is in the domain and has its canonical spelling: no plus sign, no leading zero, no
    /// surrounding space.
    ///
    /// # Errors
    /// Returns a description of the values that are accepted.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let most = if let Domain::Text(most) = *self { most } else { MAX_VALUE_BYTES };
        if value.len() <= most && self.holds(value) { Ok(()) } else { Err(self.to_string()) }
    }

    /// Returns the canonical spelling of a value that a person wrote: for bytes, "64K" becomes "65536".
    ///
    /// # Errors
    /// Returns a description of the values that are accepted.
    pub fn parse(&self, text: &str) -> Result<String, String> {
        let read = match *self {
            Domain::Bytes(..) => text.parse().ok().map(|Bytes(bytes)| bytes.to_string()),
            Domain::Sizes(low, high, _) => {
                let size = |size: &str| Domain::Bytes(low, high).parse(size).ok();
                text.split(',').map(size).collect::<Option<Vec<_>>>().map(|sizes| sizes.join(","))
            }
            Domain::Time(..) => parse_duration(text).ok().map(|time| time.exact()),
            Domain::Rate(..) => text.parse().ok().map(|BitRate(bits)| format!("{bits:.0}")),
            Domain::Share(..) => Share::parse(text).map(|share| share.to_string()),
            _ => Some(text.to_owned()),
        };
        let canonical = read.ok_or_else(|| self.to_string())?;
        self.check(&canonical).map(|()| canonical)
    }

    /// Returns true if two values mean the same setting. The kernel may print a value in another spelling than the
    /// written one. For example, it prints "on" once for each member, or once for all members.
    pub fn same(&self, a: &str, b: &str) -> bool {
        let inner = match self {
            Domain::Each(inner) => inner,
            Domain::NameList => {
                let names =
                    |text: &'_ str| text.split_ascii_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
                return names(a) == names(b);
            }
            _ => return a.split_ascii_whitespace().eq(b.split_ascii_whitespace()),
        };
        let members = a.split(';').count().max(b.split(';').count());
        match (split(a, members), split(b, members)) {
            (Some(a), Some(b)) => a.iter().zip(b).all(|(a, b)| inner.same(a, b)),
            _ => false,
        }
    }

    fn holds(&self, value: &str) -> bool {
        match *self {
            Domain::Switch => matches!(value, "on" | "off"),
            Domain::OneOf(words) => words.contains(&value),
            Domain::Words(words) => words.iter().any(|word| word == value),
            Domain::Names(names) => names().contains(&value),
            Domain::Sizes(low, high, most) => {
                value.split(',').count() <= most
                    && value.split(',').all(|size| Domain::Int(low, high).holds(size))
            }
            Domain::Time(low, high) => {
                parse_duration(value).is_ok_and(|time| (low..=high).contains(&time) && time.exact() == value)
            }
            Domain::Text(_) => true,
            Domain::Share(low, high) => Share::parse(value)
                .is_some_and(|share| (low..=high).contains(&share.as_f64()) && share.to_string() == value),
            Domain::Int(low, high) | Domain::Bytes(low, high) | Domain::Rate(low, high) => {
                whole(value).is_some_and(|n| (low..=high).contains(&n))
            }
            Domain::Signed(low, high) => {
                let (negative, digits) = value.strip_prefix('-').map_or((false, value), |rest| (true, rest));
                let number = whole(digits).and_then(|n| i64::try_from(n).ok());
                let number = number.map(|n| if negative { -n } else { n });
                number.is_some_and(|n| (low..=high).contains(&n) && !(negative && n == 0))
            }
            Domain::Ints(count, low, high) => {
                let mut seen = 0;
                let all =
                    value.split(' ').inspect(|_| seen += 1).all(|part| Domain::Int(low, high).holds(part));
                all && seen == count
            }
            Domain::Name => is_name(value),
            Domain::NameList => value.split(' ').all(is_name),
            Domain::CpuList => parse_cpus(value).is_some(),
            Domain::Each(inner) => {
                value.split(';').count() <= MAX_MEMBERS && value.split(';').all(|part| inner.holds(part))
            }
        }
    }
}

impl std::fmt::Display for Domain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Domain::Switch => f.write_str("on or off"),
            Domain::OneOf(words) => f.write_str(&words.join(", ")),
            Domain::Words(words) => f.write_str(&words.join(", ")),
            Domain::Names(names) => f.write_str(&names().join(", ")),
            Domain::Bytes(low, high) => write!(f, "a size from {} to {}", Bytes(low), Bytes(high)),
            Domain::Sizes(low, high, most) => {
                write!(f, "up to {most} sizes from {} to {}, separated by commas", Bytes(low), Bytes(high))
            }
            Domain::Time(low, high) => write!(f, "a time from {low} to {high}"),
            Domain::Rate(low, high) => {
                write!(f, "a rate from {} to {}", BitRate(low as f64), BitRate(high as f64))
            }
            Domain::Share(low, high) => {
                let [low, high] = [low, high].map(|share| Share::new(share).unwrap_or_default());
                write!(f, "a share from {low} to {high}")
            }
            Domain::Text(most) => write!(f, "text of at most {most} bytes"),
            Domain::Int(low, high) => write!(f, "a whole number from {low} to {high}"),
            Domain::Signed(low, high) => write!(f, "a whole number from {low} to {high}"),
            Domain::Ints(count, low, high) => {
                write!(f, "{count} whole numbers from {low} to {high}, separated by one space")
            }
            Domain::Name => f.write_str("a name of a-z, 0-9, '_' and '-', at most 15 long"),
            Domain::NameList => f.write_str("names of a-z, 0-9, '_' and '-', separated by one space"),
            Domain::CpuList => f.write_str("a list of processors such as 0-3,8, or none"),
            Domain::Each(inner) => write!(f, "{inner}; or one such value a member, joined by ';'"),
        }
    }
}

/// Parses a whole number in its shortest decimal spelling. Returns `None` for any other text.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let shortest = text == "0" || !text.starts_with('0');
    if digits && shortest { text.parse().ok() } else { None }
}

fn is_name(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=15).contains(&text.len()) && text.bytes().all(letter) && !text.starts_with('-')
}

/// Parses a list of processors in the kernel's format: ascending ranges, or "none" for the empty set. Returns `None`
/// for malformed text and for a number above [`MAX_CPU`].
pub fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    if text == "none" {
        return Some(Vec::new());
    }
    let mut cpus: Vec<u32> = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (cpu(first)?, cpu(last)?);
        let ascending = first <= last && cpus.last().is_none_or(|before| *before < first);
        if !ascending || (range.contains('-') && first == last) {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn cpu(text: &str) -> Option<u32> {
    whole(text).and_then(|n| u32::try_from(n).ok()).filter(|n| *n <= MAX_CPU)
}

/// Formats ascending processor numbers as the kernel does. This is the inverse of [`parse_cpus`].
pub fn print_cpus(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    if ranges.is_empty() {
        return "none".into();
    }
    let range = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Joins the values of all members with ';', or returns a single value if all are equal. Returns `None` if there are
/// no members.
pub fn join(values: &[String]) -> Option<String> {
    let first = values.first()?;
    if values.iter().all(|v| v == first) { Some(first.clone()) } else { Some(values.join(";")) }
}

/// Splits a joined value into one value per member: the inverse of [`join`]. A single value counts for all members.
/// Returns `None` if the number of values is neither 1 nor `members`.
pub fn split(value: &str, members: usize) -> Option<Vec<&str>> {
    let parts: Vec<&str> = value.split(';').collect();
    match parts.len() {
        1 => Some(vec![value; members]),
        n if n == members => Some(parts),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::units::Nanos;

    use super::*;

    #[test]
    fn takes_what_it_says() {
        let good: &[(Domain, &[&str])] = &[
            (Domain::Switch, &["on", "off"]),
            (Domain::Int(1280, 65_535), &["1280", "9000", "65535"]),
            (Domain::Signed(-31, 31), &["-31", "0", "31"]),
            (Domain::Ints(3, 0, 100), &["0 50 100"]),
            (Domain::Name, &["cubic", "fq_codel", "bbr3"]),
            (Domain::NameList, &["cubic", "reno bbr cubic"]),
            (Domain::CpuList, &["0", "0-3,8", "none", "1,3,5-6"]),
            (Domain::Each(&Domain::Switch), &["on", "on;off;on"]),
            (Domain::Sizes(1, 1024, 3), &["1", "1,64,1024"]),
            (Domain::Time(Nanos::millis(1), Nanos::secs(60)), &["1ms", "10s", "1500us"]),
        ];
        for (domain, values) in good {
            for value in *values {
                assert_eq!(domain.check(value), Ok(()), "{domain:?} {value}");
            }
        }
    }

    #[test]
    fn refuses_everything_else() {
        let bad: &[(Domain, &[&str])] = &[
            (Domain::Switch, &["", "ON", "1", "on ", "on;off", "on\n"]),
            (
                Domain::Int(1280, 65_535),
                &["1279", "65536", "+1300", "01300", "1300 ", "1e4", "99999999999999999999"],
            ),
            (Domain::Signed(-31, 31), &["-0", "--1", "-32", "32", "-", ""]),
            (
                Domain::Ints(3, 0, 100),
                &["0 50", "0  50 100", "0 50 100 0", "0\t50 100", "0 50 101", " 0 50 100"],
            ),
            (Domain::Name, &["", "-rf", "../x", "a/b", "a b", "cubic\0", "ABC", "sixteen_letters_", "ü"]),
            (Domain::NameList, &["", "reno  bbr", " reno", "reno,bbr", "reno -rf"]),
            (Domain::CpuList, &["", "3-1", "0,0", "0-0", "0,", "-1", "0-99999", "a", "00", "0 1"]),
            (Domain::Each(&Domain::Switch), &["", "on;", ";", "on;1"]),
            (Domain::Sizes(1, 1024, 3), &["", "1,", "0", "1K", "1,2,3,4"]),
            (Domain::Time(Nanos::millis(1), Nanos::secs(60)), &["", "1", "10000ms", "999us", "61s", "1m"]),
        ];
        for (domain, values) in bad {
            for value in *values {
                assert!(domain.check(value).is_err(), "{domain:?} {value:?}");
            }
        }
        let long = vec!["on"; MAX_MEMBERS + 1].join(";");
        assert!(Domain::Each(&Domain::Switch).check(&long).is_err());
    }

    #[test]
    fn values_that_people_write_have_one_spelling() {
        let time = Domain::Time(Nanos::millis(1), Nanos::secs(3600));
        for (domain, text, canonical) in [
            (Domain::Bytes(1, 1 << 20), "64K", Some("65536")),
            (Domain::Bytes(1, 1 << 20), "2M", None),
            (Domain::Sizes(1, 1 << 20, 2), "1,64K", Some("1,65536")),
            (time, "1.5", Some("1500ms")),
            (time, "5m", Some("300s")),
            (time, "soon", None),
            (Domain::Rate(0, 1 << 53), "2.5G", Some("2500000000")),
            (Domain::Share(0.0, 0.5), "0.001", Some("0.1%")),
            (Domain::Share(0.0, 0.5), "0.10%", Some("0.1%")),
            (Domain::Share(0.0, 0.5), "51%", None),
            (Domain::Switch, "yes", None),
        ] {
            assert_eq!(domain.parse(text).ok().as_deref(), canonical, "{text}");
        }
    }

    #[test]
    fn spelling_does_not_matter_and_meaning_does() {
        assert!(Domain::Ints(3, 0, 9).same("1\t2\t3", "1 2 3"));
        assert!(!Domain::Ints(3, 0, 9).same("1 2 3", "1 2 4"));
        let each = Domain::Each(&Domain::CpuList);
        assert!(each.same("0-3", "0-3;0-3"));
        assert!(!each.same("0-3;0", "0-3"));
        assert!(!each.same("0;0;0", "0;0"));
        assert!(Domain::Name.same("cubic", "cubic"));
        assert!(Domain::NameList.same("reno cubic", "cubic reno"));
        assert!(!Domain::NameList.same("reno cubic", "reno"));
    }

    #[test]
    fn processors_and_members_survive_the_way_there_and_back() {
        for text in ["none", "0", "0-3,8", "1,3,5-6"] {
            assert_eq!(print_cpus(&parse_cpus(text).unwrap()), text);
        }
        let values = ["3".to_owned(), "0".to_owned(), "3".to_owned()];
        assert_eq!(split(&join(&values).unwrap(), 3).unwrap(), values);
        assert_eq!(split("3", 2), Some(vec!["3", "3"]));
        assert_eq!(split("3;0", 3), None);
    }
}
