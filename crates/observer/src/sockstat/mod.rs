//! The kernel's counts of sockets and of the memory in their buffers, from /proc/net/sockstat and sockstat6.
//!
//! `inuse` counts sockets of this network namespace. `orphan`, `tw`, `alloc` and `mem` (in pages) count those of the
//! whole machine (`sockstat_seq_show` in net/ipv4/proc.c). The sysctls net.ipv4.tcp_mem and udp_mem limit `mem`.

use std::collections::BTreeMap;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Observations, detail};
use serde::{Deserialize, Serialize};

use crate::figures::headlines;
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, procfile};

const PATHS: [&str; 2] = ["/proc/net/sockstat", "/proc/net/sockstat6"];

/// The counts by protocol and name, such as "TCP mem" or "TCP6 inuse".
type SocketCounts = BTreeMap<String, u64>;

/// The counts when the window opened, and the maximum of each until it closed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(crate) struct SockStat {
    /// The counts when the window opened.
    opened: SocketCounts,
    /// The maximum of each count from the opening to the close of the window.
    most: SocketCounts,
    /// Size of a page in bytes. The counts called "mem" are in pages.
    page_bytes: Bytes,
}

detail!("sockstat" => SockStat);

impl SockStat {
    fn memory(&self, name: &str) -> Option<Bytes> {
        Some(Bytes(self.most.get(name)?.saturating_mul(self.page_bytes.0)))
    }
}

pub(crate) static SOCKSTAT: Observer = Observer {
    name: "sockstat",
    about: "sockets, and the memory that the kernel accounts to their buffers",
    cannot_see: &[
        "whose memory it is: the kernel keeps one account for all namespaces of the machine",
        "the sockets themselves and what waits in a device: buffers alone are accounted",
    ],
    runs: RunPolicy::OnRequest,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        stat: SockStat => {
            "tcp sockets", "in use here, at most": stat.most.get("TCP inuse").copied();
            "tcp orphans", "without a process on this machine, at most": stat.most.get("TCP orphan").copied();
            "time-wait", "on this machine, at most": stat.most.get("TCP tw").copied();
            "tcp memory", "in buffers of this machine, at most (net.ipv4.tcp_mem)": stat.memory("TCP mem");
            "udp memory", "in buffers of this machine, at most (net.ipv4.udp_mem)": stat.memory("UDP mem");
        }
    },
    can_run: || procfile::readable(PATHS[0]),
    watch: |_| {
        windows(|_| {
            let opened = read()?;
            let page_bytes = Bytes(rustix::param::page_size() as u64);
            Ok(SockStat { most: opened.clone(), opened, page_bytes })
        })
    },
};

impl OpenWindow for SockStat {
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        for (name, count) in read()? {
            let most = self.most.entry(name).or_default();
            *most = count.max(*most);
        }
        Ok(())
    }

    fn close(mut self, seen: &mut Observations) -> Result<(), Error> {
        self.sample(Nanos(0))?;
        seen.put(self);
        Ok(())
    }
}

/// Reads the counts of IPv4 and IPv6. The file of IPv6 may be absent.
fn read() -> Result<SocketCounts, Error> {
    let mut counts = parse(&procfile::read(PATHS[0])?);
    counts.extend(procfile::read(PATHS[1]).map(|text| parse(&text)).unwrap_or_default());
    Ok(counts)
}

/// Parses lines such as "TCP: inuse 5 mem 1", which has the counts "TCP inuse" and "TCP mem".
fn parse(text: &str) -> SocketCounts {
    let of_line = |line: &str| {
        let (protocol, counts) = line.split_once(':')?;
        let words: Vec<&str> = counts.split_whitespace().collect();
        let pairs = words
            .chunks_exact(2)
            .filter_map(|pair| Some((format!("{protocol} {}", pair[0]), pair[1].parse().ok()?)));
        Some(pairs.collect::<Vec<_>>())
    };
    text.lines().filter_map(of_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_name_of_their_protocol() {
        let counts =
            parse("sockets: used 9\nTCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1\nFRAG: inuse 0 memory 0\n");
        assert_eq!((counts["sockets used"], counts["TCP tw"], counts["TCP mem"]), (9, 2, 1));
        assert!(read().expect("proc").contains_key("TCP inuse"));
    }
}
