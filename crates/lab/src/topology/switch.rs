//! The topology `lab:switch:N`: hosts on a bridge.

use crate::emulator::Parameter;
use landspeed_record::units::{BitRate, did_you_mean};

use crate::topology::error::Error;
use crate::topology::lab::{self, LabPlan, PortRates, parameters};
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

const NAME: &str = "lab:switch";
const SYNTAX: &str = "lab:switch:N,port=RATE,trunk=RATE";
const MOST: u8 = 33;
/// Range of a port's rate, in b/s. At lower rates, the token bucket would hold more than half a second of traffic. No
/// machine reaches higher rates.
const RATES: std::ops::RangeInclusive<f64> = 1e6..=1e11;
const PORT: &str = "port";
const TRUNK: &str = "trunk";

const DRAWING: &str =
    "   netns ls-ID-h0                     netns ls-ID-sw                     netns ls-ID-h1
   +----------------------+          +----------------+          +----------------------+
   | ls-h0  198.18.0.1/24 |== veth ==| ls-p0    ls-p1 |== veth ==| ls-h1  198.18.0.2/24 |
   |        fd00:18::1/64 |          |     ls-br      |          |        fd00:18::2/64 |
   +----------------------+          | ls-p2 ... p31  |          +----------------------+
                                     +----------------+
                                       || veth
                                     h2 198.18.0.3 ... h32 198.18.0.33
";

#[derive(Debug)]
pub(crate) struct SwitchTopology;

impl Topology for SwitchTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: NAME,
            syntax: SYNTAX,
            examples: &["lab:switch:4", "lab:switch:5,port=1G,trunk=10G"],
            line: "2 to 33 network namespaces on this machine, each by a veth pair on a bridge in a namespace of its own",
            drawing: DRAWING,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        const VALUES: &str = "a rate from 1M to 100G bits of frames a second: 1G, 2.5Gb/s, or none";
        let port = Parameter {
            name: PORT,
            values: VALUES,
            default: NONE,
            about: "how fast the port of every host but the last is, each way. A queue of 4 ms, at least 256 KiB, is in front \
                    of each way; what finds it full is dropped. Bursts of a millisecond, at least 72 KiB, pass at once",
        };
        let trunk = Parameter {
            name: TRUNK,
            values: VALUES,
            default: NONE,
            about: "the same of the last host's port, which all others share under `--fan`; only beside `port`",
        };
        vec![("Of the ports, behind the number of hosts", vec![port, trunk])]
    }

    fn accepts(&self, words: &[String]) -> bool {
        parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let text = parameters(words, NAME).unwrap_or_default();
        let (digits, given) =
            text.split_once(',').map_or((text, None), |(count, given)| (count, Some(given)));
        // parse() would also accept "+4".
        let digits = Some(digits).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let count = digits.and_then(|text| text.parse().ok()).filter(|count| (2..=MOST).contains(count));
        let count = count.ok_or_else(|| {
            lab::no_lab(words, "lab:switch:N or lab:switch:N,port=RATE,trunk=RATE with N from 2 to 33")
        })?;
        let rates = given.map(rates).transpose()?.unwrap_or_default();
        let hosts = (0..count).map(|n| format!("h{n}")).collect();
        Ok(TopologyPlan::Lab(LabPlan::bridge(label(count, rates), "sw", hosts, rates)))
    }

    fn can_run(&self) -> Result<(), String> {
        lab::can_run()
    }
}

/// The value of a rate for a port without a limit.
const NONE: &str = "none";

/// Parses the rates of ports, such as "port=1G,trunk=10G".
fn rates(text: &str) -> Result<PortRates, Error> {
    let [mut port, mut trunk] = [None, None];
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let place = match name {
            PORT => &mut port,
            TRUNK => &mut trunk,
            _ => {
                let near = did_you_mean(name, [PORT, TRUNK]);
                return Err(wrong(
                    pair,
                    &format!("no port of a switch has that{near}: give port=RATE and trunk=RATE"),
                ));
            }
        };
        if place.replace(rate(pair, value)?).is_some() {
            return Err(wrong(pair, &format!("{name} is given twice: leave one out")));
        }
    }
    let [port_bps, trunk_bps] = [port, trunk].map(Option::flatten);
    match (port_bps, trunk_bps) {
        (None, Some(_)) => {
            Err(wrong(text, "trunk is nothing without the other ports' rate: give port=RATE too"))
        }
        _ => Ok(PortRates { port_bps, trunk_bps }),
    }
}

/// Parses `value` as a rate in whole bits per second; `None` for "none". `pair` is for the error.
fn rate(pair: &str, value: &str) -> Result<Option<u64>, Error> {
    if value == NONE {
        return Ok(None);
    }
    let rate = value.parse::<BitRate>().ok().filter(|rate| RATES.contains(&rate.0));
    let rate = rate.ok_or_else(|| wrong(pair, "expected a rate from 1M to 100G, such as 1G, or none"))?;
    Ok(Some(rate.0.round() as u64))
}

fn wrong(what: &str, why: &str) -> Error {
    let what: String = what.chars().take(40).collect();
    Error::Hosts(format!("{NAME}: '{}': {why}", what.escape_default()))
}

/// Returns the words that name the lab. Equal labs have equal words.
fn label(count: u8, PortRates { port_bps, trunk_bps }: PortRates) -> String {
    let mut label = format!("{NAME}:{count}");
    for (name, bps) in [(PORT, port_bps), (TRUNK, trunk_bps)] {
        label.extend(bps.map(|bps| format!(",{name}={}", spelled(bps))));
    }
    label
}

/// Returns the shortest spelling of a rate, such as "1G" or "2500M", which parses to the same rate.
fn spelled(bps: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bps.is_multiple_of(*unit)).unwrap_or((1, ""));
    format!("{}{name}", bps / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_to_thirty_three_hosts_are_a_switch() {
        let plan = |text: &str| SwitchTopology.plan(&[text.to_owned()]);
        for text in ["lab:switch:2", "lab:switch:33"] {
            assert_eq!(plan(text).unwrap().label(), text);
        }
        for bad in ["lab:switch", "lab:switch:1", "lab:switch:34", "lab:switch:+4", "lab:switch:4x"] {
            let error = plan(bad).unwrap_err().to_string();
            assert!(error.contains(bad) && error.contains("2 to 33"), "{error}");
        }
    }

    #[test]
    fn ports_have_rates() {
        let label = |text: &str| SwitchTopology.plan(&[text.to_owned()]).map(|plan| plan.label());
        for (text, expected) in [
            ("lab:switch:3,port=1G", "lab:switch:3,port=1G"),
            ("lab:switch:3,trunk=10Gb/s,port=2.5G", "lab:switch:3,port=2500M,trunk=10G"),
            ("lab:switch:3,port=1000001", "lab:switch:3,port=1000001"),
            ("lab:switch:3,port=none", "lab:switch:3"),
        ] {
            assert_eq!(label(text).unwrap(), expected, "{text}");
            assert_eq!(label(expected).unwrap(), expected, "what is printed reads back");
        }
    }

    #[test]
    fn rates_that_no_port_has_are_refused_with_the_remedy() {
        for (text, words) in [
            ("lab:switch:4,port=0", "from 1M to 100G"),
            ("lab:switch:4,port=-1G", "from 1M to 100G"),
            ("lab:switch:4,port=999k", "from 1M to 100G"),
            ("lab:switch:4,port=101G", "from 1M to 100G"),
            ("lab:switch:4,port", "from 1M to 100G"),
            ("lab:switch:4,port=fast", "or none"),
            ("lab:switch:4,", "port=RATE"),
            ("lab:switch:4,prot=1G", "did you mean port?"),
            ("lab:switch:4,trunk=10G", "give port=RATE too"),
            ("lab:switch:4,port=none,trunk=10G", "give port=RATE too"),
            ("lab:switch:4,port=1G,port=2G", "port is given twice"),
            ("lab:switch:port=1G", "2 to 33"),
        ] {
            let error = SwitchTopology.plan(&[text.to_owned()]).unwrap_err().to_string();
            assert!(error.contains(words) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
