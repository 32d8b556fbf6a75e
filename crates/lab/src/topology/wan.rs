//! The topology `lab:wan`: pairs of hosts, joined by a wide-area link that the module `emulator` emulates.

use crate::emulator::{Parameter, WanSpec, can_carry, parameters as parameters_of_link};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CrossTraffic, LineLoss};

use crate::topology::error::Error;
use crate::topology::lab::{self, LabPlan, parameters};
use crate::topology::path::PlannedPath;
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

const NAME: &str = "lab:wan";

const DRAWING: &str =
    "   netns ls-ID-a                      netns ls-ID-wan                      netns ls-ID-b
   +----------------------+          +------------------+          +----------------------+
   | ls-a  198.18.0.1/24  |== veth ==| ls-p0      ls-p1 |== veth ==| ls-b  198.18.0.2/24  |
   |       fd00:18::1/64  |          |   queue > rate > |          |       fd00:18::2/64  |
   +----------------------+          |   loss > delay   |          +----------------------+
                                     +------------------+
   pairs=2: also a2 and b2; a bridge on each side of the link joins the hosts of that side
";

#[derive(Debug)]
pub(crate) struct WanTopology;

impl Topology for WanTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: NAME,
            syntax: "lab:wan:KEY=VALUE,...",
            examples: &[
                "lab:wan",
                "lab:wan:rate=1G,rtt=20ms",
                "lab:wan:rate=100M,rtt=2ms,loss=0.01%,pairs=2",
                "lab:wan:rate=100M,rtt=40ms,second-rtt=160ms",
            ],
            line: "network namespaces on this machine, in pairs, joined by one link of set rate, round-trip time, queue and loss",
            drawing: DRAWING,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        let [way, link] = parameters_of_link();
        vec![
            ("Of each direction; prefixed with `back.` (`back.loss=1%`), of the way from B to A alone", way),
            ("Of the link as a whole", link),
        ]
    }

    fn accepts(&self, words: &[String]) -> bool {
        parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let spec = spec(words)?;
        let pairs = (1..=spec.pairs()).map(pair).collect();
        Ok(TopologyPlan::Lab(LabPlan::link(word(&spec), "wan", pairs, spec)))
    }

    /// Also checks the files that parameters name.
    fn check(&self, words: &[String]) -> Result<(), Error> {
        Ok(spec(words)?.check().map_err(crate::emulator::Error::from)?)
    }

    fn can_run(&self) -> Result<(), String> {
        lab::can_run()?;
        can_carry()
    }

    fn path(&self, words: &[String]) -> Result<Option<Box<dyn PlannedPath>>, Error> {
        Ok(Some(Box::new(spec(words)?)))
    }
}

/// The parameters that [`PlannedPath`] has methods for, and the seed.
const COMMON: [&str; 11] = [
    "rate",
    "rtt",
    "second-rtt",
    "queue",
    "seed",
    "loss",
    "loss-burst",
    "cross",
    "cross-on",
    "cross-off",
    "cross-short",
];

fn spec(words: &[String]) -> Result<WanSpec, Error> {
    let text = parameters(words, NAME).unwrap_or_default();
    Ok(text.parse().map_err(crate::emulator::Error::from)?)
}

fn word(spec: &WanSpec) -> String {
    format!("{NAME}:{spec}")
}

/// Returns the names of the hosts of a pair: a and b for number 1, a2 and b2 for number 2.
fn pair(number: u8) -> [String; 2] {
    let number = if number == 1 { String::new() } else { number.to_string() };
    ["a", "b"].map(|name| format!("{name}{number}"))
}

impl PlannedPath for WanSpec {
    fn rate(&self) -> Option<BitRate> {
        WanSpec::rate(self)
    }

    fn rtt(&self) -> Nanos {
        WanSpec::rtt(self)
    }

    fn second_rtt(&self) -> Option<Nanos> {
        WanSpec::second_rtt(self)
    }

    fn queue(&self) -> Option<Bytes> {
        WanSpec::queue(self)
    }

    fn loss(&self) -> Option<LineLoss> {
        WanSpec::loss(self)
    }

    fn cross(&self) -> Option<CrossTraffic> {
        WanSpec::cross(self)
    }

    fn others(&self) -> Vec<String> {
        let text = self.to_string();
        let names = text.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name);
        let is_other = |name: &&str| !COMMON.contains(&name.strip_prefix("back.").unwrap_or(name));
        let left_out = |name: &str| format!("{name}: leave {name} out");
        let back =
            self.disturbs_the_way_back().map(|name| format!("{name} on the way back: add back.{name}=0%"));
        names.filter(is_other).map(left_out).chain(back).collect()
    }

    fn losing_only(&self, packets: &[u64]) -> Vec<String> {
        vec![word(&WanSpec::losing_only(self, packets))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lists_the_parameters_that_the_simulator_lacks() {
        let path = |text: &str| WanTopology.path(&[text.to_owned()]).unwrap().unwrap();
        assert!(path("lab:wan:rate=1G,rtt=2ms,queue=64K,seed=3,loss=0%").others().is_empty());
        let expected = ["pairs: leave pairs out", "loss on the way back: add back.loss=0%"];
        assert_eq!(path("lab:wan:loss=1%,pairs=2").others(), expected);
        let lossy = path("lab:wan:loss=1%,loss-burst=4,cross=30%,back.loss=0%,back.cross=0%");
        assert!(lossy.others().is_empty(), "{:?}", lossy.others());
        assert_eq!(lossy.loss(), Some(LineLoss { share: 0.01, burst_packets: 4.0 }));
        let cross = lossy.cross().unwrap();
        assert_eq!((cross.load, cross.on_ns, cross.short), (0.3, Nanos::secs(1), 0.0));
        assert_eq!((path("lab:wan").loss(), path("lab:wan").cross()), (None, None));
        let two = path("lab:wan:rtt=40ms,second-rtt=160ms");
        assert_eq!((two.second_rtt(), two.others()), (Some(Nanos::millis(160)), Vec::new()));
        let losing = path("lab:wan:rate=1G,loss=1%").losing_only(&[5, 9]);
        assert_eq!(losing, ["lab:wan:rate=1G,rtt=20ms,queue=1bdp,drop-list=5+9,back.loss=1%"]);
        assert!(WanTopology.accepts(&losing) && !WanTopology.accepts(&["lab:wander".to_owned()]));
    }
}
