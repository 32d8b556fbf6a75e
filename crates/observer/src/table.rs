//! The registration table.

use crate::{
    Observer, cost::Cost, cpu::Cpu, flows::Flows, link::Link, path::Path, processes::Processes, qdisc::Qdisc,
    settings::Settings, snmp::Snmp, softnet::Softnet, tcp_info::TcpInfo, throttle::Throttle,
};

/// Every observer there is. They are opened in this order and closed in the reverse one, so that the
/// processor readings, last here, are taken closest around the window and the other observers' own
/// cost lies outside it.
pub static OBSERVERS: &[&dyn Observer] = &[&Throttle, &Link, &Softnet, &Snmp, &TcpInfo, &Cpu];

/// Observers that run only where they are asked for, because they cost something or answer questions
/// that only an explanation asks.
pub static ON_REQUEST: &[&dyn Observer] = &[&Cost, &Flows, &Processes, &Qdisc, &Settings, &Path];

/// The observer called `name`.
pub fn observer(name: &str) -> Option<&'static dyn Observer> {
    OBSERVERS.iter().chain(ON_REQUEST).copied().find(|observer| observer.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete_and_found_by_its_name() {
        for row in OBSERVERS.iter().chain(ON_REQUEST) {
            let name = row.name();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert!(!row.about().is_empty() && !row.about().contains('\n'), "{name}");
            assert!(!row.cannot_see().is_empty(), "{name} claims to see everything");
            assert_eq!(observer(name).map(|found| found.name()), Some(name));
        }
        assert!(observer("no-such").is_none());
    }

    #[test]
    fn the_processor_is_read_closest_to_the_window() {
        assert_eq!(OBSERVERS.last().map(|row| row.name()), Some("cpu"));
    }

    #[test]
    fn all_run_on_the_kernel_of_this_machine() {
        for row in OBSERVERS {
            assert_eq!(row.can_run(), Ok(()), "{}", row.name());
        }
    }
}
