//! Reads the protocol counters that increased within a window, from /proc/net/snmp, /proc/net/netstat, /proc/net/snmp6
//! and /proc/net/stat/nf_conntrack of the calling thread's network namespace. The names are the kernel's
//! (Documentation/networking/snmp_counter.rst): "Tcp.RetransSegs", "TcpExt.TCPRcvCollapsed", "Ip6.InReceives".

use std::collections::BTreeMap;

use landspeed_record::SnmpCounts;

use crate::figures::headlines;
use crate::window::difference;
use crate::{Error, Observer, RunPolicy, procfile};

const SNMP4: &str = "/proc/thread-self/net/snmp";
const NETSTAT: &str = "/proc/thread-self/net/netstat";
/// The file with the counters of IPv6. It is absent if the kernel has no IPv6, which is not an error.
const SNMP6: &str = "/proc/thread-self/net/snmp6";
/// The file with the counters of connection tracking. It is absent if the kernel tracks no connections.
const CONNTRACK: &str = "/proc/thread-self/net/stat/nf_conntrack";

/// The names of entries that are settings or current values, not counters. Their growth means nothing.
const LEVELS: [&str; 7] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
];

/// Returns the increase of the counter `name`; zero if it is not in `counts`, which has only counters that increased.
fn moved(counts: &SnmpCounts, name: &str) -> Option<u64> {
    Some(counts.0.get(name).copied().unwrap_or(0))
}

pub(crate) static SNMP: Observer = Observer {
    name: "snmp",
    about: "counters of IP, ICMP, UDP, TCP and TCP's extensions that moved, in this network namespace",
    cannot_see: &[
        "which flow moved a counter: they are the namespace's, the session's own connection included",
        "packets as on the wire: receive counters count them after GRO and IP's send counters before TSO; \
         of the segment counters only Tcp.OutSegs and Tcp.RetransSegs count every segment",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        counts: SnmpCounts => {
            "retransmitted segments", "Tcp.RetransSegs": moved(counts, "Tcp.RetransSegs");
            "retransmission time-outs", "TcpExt.TCPTimeouts": moved(counts, "TcpExt.TCPTimeouts");
            "out-of-order segments", "TcpExt.TCPOFOQueue": moved(counts, "TcpExt.TCPOFOQueue");
            "receive queues collapsed", "TcpExt.TCPRcvCollapsed: segments merged to make room in a receive buffer":
                moved(counts, "TcpExt.TCPRcvCollapsed");
            "SYNs sent again", "TcpExt.TCPSynRetrans: SYNs and their answers": moved(counts, "TcpExt.TCPSynRetrans");
            "listen queue overflows", "TcpExt.ListenOverflows": moved(counts, "TcpExt.ListenOverflows");
            "connections that tracking dropped", "Conntrack.drop and Conntrack.insert_failed, of /proc/net/stat/nf_conntrack":
                Some(moved(counts, "Conntrack.drop")?.saturating_add(moved(counts, "Conntrack.insert_failed")?));
            "UDP receive buffer errors", "Udp.RcvbufErrors: datagrams dropped for want of room at a socket":
                moved(counts, "Udp.RcvbufErrors");
        }
    },
    can_run: || procfile::readable(SNMP4).and_then(|()| procfile::readable(NETSTAT)),
    watch: |_| difference(read, |before, after, seen| seen.put(SnmpCounts(moved_by(before, after)))),
};

/// The values of counters by their names in the form "Group.Name".
type SnmpCounters = BTreeMap<String, u64>;

fn read() -> Result<SnmpCounters, Error> {
    let mut counters = parse_pairs(SNMP4, &procfile::read(SNMP4)?)?;
    counters.extend(parse_pairs(NETSTAT, &procfile::read(NETSTAT)?)?);
    if let Ok(text) = procfile::read(SNMP6) {
        counters.extend(parse_list(&text));
    }
    if let Ok(text) = procfile::read(CONNTRACK) {
        counters.extend(parse_columns(&text));
    }
    Ok(counters)
}

/// Parses a file with two lines for each group: "Tcp: Name Name ..." and "Tcp: 1 2 ...". Columns that a newer kernel
/// adds are included.
fn parse_pairs(path: &str, text: &str) -> Result<SnmpCounters, Error> {
    let mut counters = SnmpCounters::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (group, names) =
            names.split_once(':').ok_or_else(|| Error::shape(path, "a line without a group"))?;
        let values = values.strip_prefix(group).and_then(|rest| rest.strip_prefix(':'));
        let values =
            values.ok_or_else(|| Error::shape(path, format!("the names of {group} have no values")))?;
        let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        // Current values and negative values, such as MaxConn with -1, are not counters.
        counters.extend(pairs.filter_map(|(name, value)| counter(format!("{group}.{name}"), value)));
    }
    Ok(counters)
}

/// Parses a file with one counter in each line: "Ip6InReceives 12", "Icmp6OutType134 1", "UdpLite6InErrors 0".
fn parse_list(text: &str) -> SnmpCounters {
    let parse = |line: &str| {
        let (name, value) = line.split_once(|c: char| c.is_ascii_whitespace())?;
        let (group, rest) = name.split_at(name.find('6')? + 1);
        counter(format!("{group}.{rest}"), value.trim())
    };
    text.lines().filter_map(parse).collect()
}

/// Parses a file with a line of names and a line of hexadecimal numbers for each processor, such as "entries
/// insert_failed drop" and "0000000a 00000000 00000002". Returns the sums over processors.
fn parse_columns(text: &str) -> SnmpCounters {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let mut counters = SnmpCounters::new();
    for line in lines {
        let values = line.split_ascii_whitespace().map(|value| u64::from_str_radix(value, 16));
        // The number of entries is a current value, not a counter, and is the same on each line.
        for (name, value) in names.iter().zip(values).filter(|(name, _)| **name != "entries") {
            let sum = counters.entry(format!("Conntrack.{name}")).or_default();
            *sum = sum.saturating_add(value.unwrap_or(0));
        }
    }
    counters
}

fn counter(name: String, value: &str) -> Option<(String, u64)> {
    let value = value.parse().ok()?;
    (!LEVELS.contains(&name.as_str())).then_some((name, value))
}

/// Returns the increase of each counter that increased.
fn moved_by(before: &SnmpCounters, after: &SnmpCounters) -> SnmpCounters {
    let moved = |(name, now): (&String, &u64)| {
        let by = now.checked_sub(*before.get(name)?)?;
        (by > 0).then(|| (name.clone(), by))
    };
    after.iter().filter_map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_names_are_joined_and_levels_left_out() {
        let text = "Tcp: RtoAlgorithm MaxConn RetransSegs CurrEstab InSegs\nTcp: 1 -1 5 7 9\n";
        let counters = parse_pairs(SNMP4, text).unwrap();
        assert_eq!(counters, BTreeMap::from([("Tcp.RetransSegs".into(), 5), ("Tcp.InSegs".into(), 9)]));
        let list =
            parse_list("Ip6InReceives       \t3\nIcmp6OutType134 1\nUdpLite6InErrors 0\nnonsense\nIp6 \n");
        assert_eq!(
            list.keys().collect::<Vec<_>>(),
            ["Icmp6.OutType134", "Ip6.InReceives", "UdpLite6.InErrors"]
        );
    }

    #[test]
    fn connection_tracking_counts_are_summed_over_processors() {
        let text = "entries  clashres insert_failed drop\n0000000a 00000000 00000001 00000010\n0000000a 00000000 00000000 00000002\n";
        let counters = parse_columns(text);
        assert_eq!((counters["Conntrack.drop"], counters["Conntrack.insert_failed"]), (18, 1));
        assert!(!counters.contains_key("Conntrack.entries"));
        assert!(parse_columns("").is_empty() && parse_columns("drop\nxyz\n")["Conntrack.drop"] == 0);
    }

    #[test]
    fn only_counters_that_grew_are_reported() {
        let before = parse_pairs(SNMP4, "A: x y z\nA: 1 5 3\n").unwrap();
        let after = parse_pairs(SNMP4, "A: x y z new\nA: 4 2 3 9\n").unwrap();
        assert_eq!(moved_by(&before, &after), BTreeMap::from([("A.x".into(), 3)]));
    }

    #[test]
    fn hostile_files_are_refused_or_shortened() {
        for bad in ["Tcp A B\nTcp 1 2\n", "Tcp: A\nUdp: 1\n", "Tcp: A\n\n"] {
            assert!(parse_pairs(SNMP4, bad).is_err(), "{bad:?}");
        }
        assert!(parse_pairs(SNMP4, "Tcp: A B\n").unwrap().is_empty(), "names cut off from their values");
        assert_eq!(parse_pairs(SNMP4, "T: A B\nT: 1\n").unwrap().len(), 1);
        assert!(parse_pairs(SNMP4, "T: A\nT: 99999999999999999999\n").unwrap().is_empty());
    }
}
