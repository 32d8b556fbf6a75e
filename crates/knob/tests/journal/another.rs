//! Other values for knobs.

use landspeed_knob::Domain;

/// Returns a value of the domain other than `now`, if one is easy to choose.
pub(crate) fn another(domain: &Domain, now: &str) -> Option<String> {
    let first = now.split(';').next()?;
    match domain {
        Domain::Switch => Some(if first == "on" { "off" } else { "on" }.into()),
        Domain::OneOf(words) => words.iter().find(|w| **w != first).map(|w| (*w).to_owned()),
        Domain::Int(low, high) => {
            let now: u64 = first.parse().ok()?;
            [now / 2, now + 1, now * 2]
                .into_iter()
                .find(|n| *n != now && (low..=high).contains(&n))
                .map(|n| n.to_string())
        }
        Domain::Signed(_, high) => (first != high.to_string()).then(|| high.to_string()),
        Domain::Ints(..) => {
            let numbers: Option<Vec<u64>> = now.split(' ').map(|n| n.parse().ok()).collect();
            Some(numbers?.iter().map(|n| (n / 2).max(1).to_string()).collect::<Vec<_>>().join(" "))
        }
        Domain::Name => Some(if first == "reno" { "cubic" } else { "reno" }.into()),
        Domain::NameList => Some(if first == "none" { "cubic" } else { "none" }.into()),
        Domain::CpuList => Some(if first == "0" { "none" } else { "0" }.into()),
        Domain::Each(inner) => another(inner, first),
        // Domains of flows and workloads.
        _ => None,
    }
}
