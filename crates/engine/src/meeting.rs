//! How two hosts meet: A opens flows to B, or else B to A, or else this machine relays them
//! (docs/decisions/0080-how-ends-meet.md).

use landspeed_agent::session::LineSink;

use crate::addresses::{AddressCandidate, MOST, address_candidates, check};
use crate::pair::{DataPath, PathOptions};
use crate::{Error, Host};

/// What to try if host A cannot reach host B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meeting {
    /// Nothing: only A opens flows.
    #[default]
    Forward,
    /// B opens the flows.
    EitherWay,
    /// B opens the flows. If B cannot reach A either, this machine relays the data. Only for copies.
    Relayed,
}

impl DataPath {
    /// Finds the data path between two hosts. Notifies the user if this machine relays the data.
    ///
    /// # Errors
    /// Returns an error if a session fails, or if the hosts cannot meet in a way that `options` permit.
    pub(crate) fn find(hosts: [&Host; 2], ends: [usize; 2], options: &PathOptions) -> Result<Self, Error> {
        match DataPath::prove(hosts, ends, options) {
            Err(error @ (Error::NoPath { .. } | Error::NoAddress { .. })) => match options.meeting {
                Meeting::Forward => Err(error),
                Meeting::EitherWay => Err(Error::NotDirect { source: Box::new(error) }),
                Meeting::Relayed => {
                    say_relayed(hosts, &options.notices);
                    Ok(DataPath::relayed(hosts, ends, options))
                }
            },
            other => other,
        }
    }
}

/// Notifies the user of what a relay costs.
fn say_relayed([a, b]: [&Host; 2], notices: &LineSink) {
    let (a, b) = (&a.name, &b.name);
    notices.say(&format!(
        "neither {a} nor {b} reaches the other: data pass through this machine, encrypted, no faster than its sessions with \
         both; --direct refuses this and says what was tried"
    ));
}

/// Returns the addresses at which two hosts may meet, in the order in which to try them: those of B, then those of A if
/// B may open the flows.
///
/// # Errors
/// Returns the error about B's addresses if there is no address to try.
pub(crate) fn candidates([a, b]: [&Host; 2], options: &PathOptions) -> Result<Vec<AddressCandidate>, Error> {
    let of_b = check(a, b, options).map(|()| address_candidates(&a.facts, &b.facts, options));
    if options.meeting == Meeting::Forward {
        return of_b;
    }
    let back = PathOptions { address: None, hints: options.hints_of_a.clone(), ..options.clone() };
    let of_a = check(b, a, &back).map(|()| address_candidates(&b.facts, &a.facts, &back));
    match (of_b, of_a) {
        (Err(error), Err(_)) => Err(error),
        (of_b, of_a) => Ok(joined(of_b.unwrap_or_default(), of_a.unwrap_or_default())),
    }
}

/// Joins the addresses of both hosts into one list that has the length limit of a single host's list.
fn joined(of_b: Vec<AddressCandidate>, of_a: Vec<AddressCandidate>) -> Vec<AddressCandidate> {
    let turned = of_a.into_iter().map(AddressCandidate::turned);
    of_b.into_iter().take(MOST / 2).chain(turned.take(MOST / 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_are_tried_last_and_all_within_the_limit() {
        let many = vec![AddressCandidate::loopback(); MOST];
        let all = joined(many.clone(), many);
        assert_eq!(all.len(), MOST);
        assert!(all.is_sorted_by_key(|candidate| candidate.is_turned) && all[MOST - 1].is_turned);
        assert!(!all[0].is_turned);
    }
}
