//! Checks that a host has enough open files and local ports for many flows, before the first is opened.

use std::fs;
use std::net::SocketAddr;

use landspeed_transport::ports;
use rustix::process::{Resource, getrlimit};

use crate::Error;

/// Number of files that a trial opens in addition to its flows: signals, listeners, counters of /proc.
const BESIDE: u64 = 16;

/// Checks that this process may open a file for each of these flows.
///
/// # Errors
/// Returns [`Error::Files`] if the limit of open files is too low.
pub(crate) fn files(flows: u64) -> Result<(), Error> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    fits(flows, open, limit)
}

fn fits(flows: u64, open: u64, limit: u64) -> Result<(), Error> {
    let needed = flows.saturating_add(BESIDE);
    if needed <= limit.saturating_sub(open) {
        return Ok(());
    }
    let all = needed.saturating_add(open);
    let remedy = all.checked_next_power_of_two().unwrap_or(all);
    Err(Error::Files { wanted: counted(flows), needed, limit, open, remedy })
}

/// Checks that the kernel has a local port for each of these flows to `server`. Flows with chosen source ports need
/// none.
///
/// # Errors
/// Returns [`Error::Ports`] if too few local ports are free.
pub(crate) fn local_ports(flows: u64, server: SocketAddr) -> Result<(), Error> {
    let Some(range) = ports::local_range() else { return Ok(()) };
    let [first, last] = range.map(u64::from);
    let (all, held) = (last - first + 1, ports::held_towards(server, range));
    if flows <= all.saturating_sub(held) {
        return Ok(());
    }
    Err(Error::Ports { wanted: counted(flows), server, range, all, held })
}

fn counted(flows: u64) -> String {
    format!("{flows} connection{}", if flows == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_compared_with_the_need_of_flows() {
        assert!(fits(256, 40, 1024).is_ok() && fits(256, 40, u64::MAX).is_ok());
        let line = fits(256, 40, 256).expect_err("too few").to_string();
        assert_eq!(
            line,
            "256 connections need 272 open files, and this process may have 256, of which 40 are open: raise its limit \
             (ulimit -n 512, or LimitNOFILE= of its service)"
        );
        assert!(fits(1, 60, 64).is_err() && fits(u64::MAX, 1, 1024).is_err());
    }

    #[test]
    fn more_flows_than_local_ports_are_refused() {
        let server = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(local_ports(1, server).is_ok());
        let line = local_ports(70_000, server).expect_err("more than there are").to_string();
        assert!(
            line.starts_with("70000 connections to 127.0.0.1:9 need as many local ports")
                && line.contains("sysctl -w"),
            "{line}"
        );
    }
}
