//! Chooses the topology that the words of a command line name.

use landspeed_record::Settings;
use landspeed_record::units::did_you_mean;

use crate::topology::TOPOLOGIES;
use crate::topology::error::Error;
use crate::topology::hosts::HostSet;
use crate::topology::path::PlannedPath;
use crate::topology::registry::Topology;

/// Returns the topology that these words of a command line name. Without words, it is a back-to-back lab.
pub fn find(words: &[String]) -> Result<&'static dyn Topology, Error> {
    let topology = TOPOLOGIES.iter().copied().find(|topology| topology.accepts(words)).ok_or_else(|| {
        let known: Vec<_> = TOPOLOGIES.iter().map(|t| t.about().syntax).collect();
        let given = words.join(" ").chars().take(80).collect::<String>();
        // Only the topology's name is compared, because parameters have their own errors.
        let name: Vec<&str> = given.splitn(3, ':').take(2).collect();
        let near = did_you_mean(&name.join(":"), TOPOLOGIES.iter().map(|t| t.about().name));
        Error::Hosts(format!(
            "'{}' names no hosts{near} (expected one of {})",
            given.escape_default(),
            known.join(", ")
        ))
    })?;
    topology.check(words)?;
    Ok(topology)
}

/// Returns the path that these words plan; `None` if landspeed does not emulate the path between the hosts.
pub fn path(words: &[String]) -> Result<Option<Box<dyn PlannedPath>>, Error> {
    find(words)?.path(words)
}

/// Returns the words of the same lab, with the parameters `set` added or replaced.
pub fn with_parameters(words: &[String], set: &Settings) -> Vec<String> {
    let [word] = words else { return words.to_vec() };
    if set.is_empty() {
        return words.to_vec();
    }
    // In "lab:wan:rate=1G,rtt=20ms", parameters follow the second colon.
    let (name, given) = match word.match_indices(':').nth(1) {
        Some((at, _)) => (&word[..at], &word[at + 1..]),
        None => (word.as_str(), ""),
    };
    let named = |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| set.contains_key(name));
    let kept = given.split(',').filter(|pair| !pair.is_empty() && !named(pair)).map(str::to_owned);
    let pairs: Vec<String> = kept.chain(set.iter().map(|(name, value)| format!("{name}={value}"))).collect();
    vec![format!("{name}:{}", pairs.join(","))]
}

/// Opens the topology that these words of a command line name.
pub fn open(words: &[String]) -> Result<Box<dyn HostSet>, Error> {
    let topology = find(words)?;
    topology.can_run().map_err(|why| Error::CannotRun { topology: topology.about().name, why })?;
    topology.open(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_no_topology_are_refused_with_a_list() {
        for words in ["lab:ring:4", "lab:", "lab:wander"] {
            let error = find(&[words.to_owned()]).err().expect("no hosts").to_string();
            assert!(error.contains(words) && error.contains("lab:switch:N"), "{error}");
        }
    }

    #[test]
    fn one_host_is_measured_from_this_machine() {
        for word in ["dtn1", "alice@dtn1", "netns:there", "landspeed://TOKEN@192.0.2.1:4711/#PIN"] {
            let words = [word.to_owned()];
            let plan = find(&words).and_then(|topology| topology.plan(&words)).expect("two hosts");
            let shown = word.replace("TOKEN@", "").replace("/#PIN", "");
            assert_eq!(plan.label(), format!("local {shown}"));
        }
        let alone = find(&["local".to_owned()]).err().expect("one host twice").to_string();
        assert!(alone.contains("local and local are one host"), "{alone}");
    }

    #[test]
    fn parameters_take_the_place_of_those_that_were_given() {
        let set = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        for (word, pairs, expected) in [
            ("lab:wan", &[("rtt", "5ms")][..], "lab:wan:rtt=5ms"),
            (
                "lab:wan:rate=1G,rtt=20ms",
                &[("rtt", "5ms"), ("loss", "1%")],
                "lab:wan:rate=1G,loss=1%,rtt=5ms",
            ),
            ("lab:wan:rate=1G", &[], "lab:wan:rate=1G"),
            ("lab:switch:4", &[("port", "1G")], "lab:switch:4,port=1G"),
            ("lab:switch:4,port=1G,trunk=2G", &[("trunk", "10G")], "lab:switch:4,port=1G,trunk=10G"),
        ] {
            assert_eq!(with_parameters(&[word.to_owned()], &set(pairs)), [expected]);
        }
    }
}
