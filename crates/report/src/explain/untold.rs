//! The suspects of a staircase whose limits are not known: they are neither named nor acquitted.

use landspeed_record::{ExplainReport, HostLimits};

use super::words::host;

/// A part of a host that may hold a flow, and a function that returns true if its limit is not known.
type UntoldSuspect = (&'static str, fn(&HostLimits) -> bool);

/// The suspects of feng-2003 section 3.5.2 whose limits some machines do not report: a virtual adapter has no speed of
/// its own and no bus.
const SUSPECTS: [UntoldSuspect; 3] = [
    ("memory", |limits| limits.memory.is_empty()),
    ("link", |limits| limits.link_bps.is_none()),
    ("bus", |limits| limits.pcie.is_none()),
];

/// Returns a line with the suspects that are missing from the staircase; `None` if none is.
pub(super) fn line(report: &ExplainReport) -> Option<String> {
    let named = report.hosts.iter().enumerate();
    let hosts: Vec<(String, &HostLimits)> =
        named.filter_map(|(index, of)| Some((host(&of.name, index), of.limits.as_ref()?))).collect();
    let missing: Vec<String> = SUSPECTS
        .iter()
        .filter_map(|(part, is_untold)| {
            let of = hosts.iter().filter(|(_, limits)| is_untold(limits)).map(|(name, _)| name.as_str());
            let of: Vec<&str> = of.collect();
            let names = if of.len() == 2 { "both hosts".to_owned() } else { of.join(" and ") };
            (!of.is_empty()).then(|| format!("{part} of {names}"))
        })
        .collect();
    (!missing.is_empty()).then(|| format!("limit not known: {}", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::BitRate;
    use landspeed_record::{ExplainedHost, MemoryBandwidth, MemoryKernel, PcieLink};

    use super::*;

    fn with(name: &str, limits: Option<HostLimits>) -> ExplainedHost {
        ExplainedHost { name: name.to_owned(), limits, ..ExplainedHost::default() }
    }

    fn line_of(hosts: Vec<ExplainedHost>) -> Option<String> {
        line(&ExplainReport { hosts, ..ExplainReport::default() })
    }

    #[test]
    fn suspects_without_a_limit_are_named() {
        let rate = BitRate(1e11);
        let memory =
            MemoryBandwidth { kernel: MemoryKernel::Copy, threads: 1, best_bps: rate, median_bps: rate };
        let virtual_link = HostLimits { memory: vec![memory], ..HostLimits::default() };
        let whole = HostLimits {
            link_bps: Some(BitRate(1e10)),
            pcie: Some(PcieLink::default()),
            ..virtual_link.clone()
        };
        let both = vec![with("A", Some(virtual_link.clone())), with("B", Some(virtual_link.clone()))];
        assert_eq!(line_of(both).as_deref(), Some("limit not known: link of both hosts, bus of both hosts"));
        let one = vec![with("A", Some(virtual_link)), with("B", Some(whole.clone()))];
        assert_eq!(line_of(one).as_deref(), Some("limit not known: link of host A, bus of host A"));
        assert_eq!(line_of(vec![with("A", Some(whole)), with("B", None)]), None);
    }
}
