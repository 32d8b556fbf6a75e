//! Counters of the protocols that moved: /proc/net/snmp, /proc/net/netstat and /proc/net/snmp6 of the
//! calling thread's network namespace, under the kernel's own names (Documentation/networking/snmp_counter.rst):
//! "Tcp.RetransSegs", "TcpExt.TCPRcvCollapsed", "Ip6.InReceives".

use std::collections::BTreeMap;

use landspeed_record::{Amount, Misshapen, Observations, SnmpCounts};

use crate::figures::of;
use crate::{Error, Headline, Observer, Scene, Watch, procfile};

const SNMP: &str = "/proc/thread-self/net/snmp";
const NETSTAT: &str = "/proc/thread-self/net/netstat";
/// Absent where the kernel has no IPv6, which is no fault.
const SNMP6: &str = "/proc/thread-self/net/snmp6";

/// Levels among the counters: their difference says nothing.
const LEVELS: [&str; 7] = [
    "Ip.Forwarding",
    "Ip.DefaultTTL",
    "Tcp.RtoAlgorithm",
    "Tcp.RtoMin",
    "Tcp.RtoMax",
    "Tcp.MaxConn",
    "Tcp.CurrEstab",
];

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "retransmitted segments",
        about: "Tcp.RetransSegs",
        of: |seen| counter_of(seen, "Tcp.RetransSegs"),
    },
    Headline {
        name: "retransmission time-outs",
        about: "TcpExt.TCPTimeouts",
        of: |seen| counter_of(seen, "TcpExt.TCPTimeouts"),
    },
    Headline {
        name: "out-of-order segments",
        about: "TcpExt.TCPOFOQueue",
        of: |seen| counter_of(seen, "TcpExt.TCPOFOQueue"),
    },
    Headline {
        name: "receive queues collapsed",
        about: "TcpExt.TCPRcvCollapsed: segments merged to make room in a receive buffer",
        of: |seen| counter_of(seen, "TcpExt.TCPRcvCollapsed"),
    },
    Headline {
        name: "listen queue overflows",
        about: "TcpExt.ListenOverflows",
        of: |seen| counter_of(seen, "TcpExt.ListenOverflows"),
    },
    Headline {
        name: "UDP receive buffer errors",
        about: "Udp.RcvbufErrors: datagrams dropped for want of room at a socket",
        of: |seen| counter_of(seen, "Udp.RcvbufErrors"),
    },
];

/// A counter that is not listed did not move.
fn counter_of(seen: &Observations, name: &str) -> Result<Option<Amount>, Misshapen> {
    of(seen, |counts: &SnmpCounts| Some(counts.0.get(name).copied().unwrap_or(0)))
}

/// The row of the table.
pub(crate) struct Snmp;

impl Observer for Snmp {
    fn name(&self) -> &'static str {
        "snmp"
    }

    fn about(&self) -> &'static str {
        "counters of IP, ICMP, UDP, TCP and TCP's extensions that moved, in this network namespace"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "which flow moved a counter: they are the namespace's, the session's own connection included",
            "packets as on the wire: receive counters count them after GRO and IP's send counters before TSO; \
             of the segment counters only Tcp.OutSegs and Tcp.RetransSegs count every segment",
        ]
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        procfile::readable(SNMP).and_then(|()| procfile::readable(NETSTAT))
    }

    fn watch(&self, _link: &str) -> Box<dyn Watch> {
        Box::new(SnmpWatch { before: None })
    }
}

/// Value by "Group.Name".
type Counters = BTreeMap<String, u64>;

struct SnmpWatch {
    before: Option<Counters>,
}

impl Watch for SnmpWatch {
    fn open(&mut self, _scene: &Scene<'_>) -> Result<(), Error> {
        self.before = None;
        self.before = Some(read()?);
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        if let Some(before) = self.before.take() {
            seen.put(SnmpCounts(difference(&before, &read()?)));
        }
        Ok(())
    }
}

fn read() -> Result<Counters, Error> {
    let mut counters = parse_pairs(SNMP, &procfile::read(SNMP)?)?;
    counters.extend(parse_pairs(NETSTAT, &procfile::read(NETSTAT)?)?);
    if let Ok(text) = procfile::read(SNMP6) {
        counters.extend(parse_list(&text));
    }
    Ok(counters)
}

/// Two lines a group: "Tcp: Name Name ..." and "Tcp: 1 2 ...". A newer kernel's added columns come along.
fn parse_pairs(path: &str, text: &str) -> Result<Counters, Error> {
    let mut counters = Counters::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (group, names) =
            names.split_once(':').ok_or_else(|| Error::shape(path, "a line without a group"))?;
        let values = values.strip_prefix(group).and_then(|rest| rest.strip_prefix(':'));
        let values =
            values.ok_or_else(|| Error::shape(path, format!("the names of {group} have no values")))?;
        let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        // MaxConn is -1; levels and negative values are no counters.
        counters.extend(pairs.filter_map(|(name, value)| counter(format!("{group}.{name}"), value)));
    }
    Ok(counters)
}

/// One counter a line: "Ip6InReceives 12", "Icmp6OutType134 1", "UdpLite6InErrors 0".
fn parse_list(text: &str) -> Counters {
    let parse = |line: &str| {
        let (name, value) = line.split_once(|c: char| c.is_ascii_whitespace())?;
        let (group, rest) = name.split_at(name.find('6')? + 1);
        counter(format!("{group}.{rest}"), value.trim())
    };
    text.lines().filter_map(parse).collect()
}

fn counter(name: String, value: &str) -> Option<(String, u64)> {
    let value = value.parse().ok()?;
    (!LEVELS.contains(&name.as_str())).then_some((name, value))
}

/// Those that moved forward.
fn difference(before: &Counters, after: &Counters) -> Counters {
    let moved = |(name, now): (&String, &u64)| {
        let by = now.checked_sub(*before.get(name)?)?;
        (by > 0).then(|| (name.clone(), by))
    };
    after.iter().filter_map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn groups_and_names_are_joined_and_levels_left_out() {
        let text = "Tcp: RtoAlgorithm MaxConn RetransSegs CurrEstab InSegs\nTcp: 1 -1 5 7 9\n";
        let counters = parse_pairs(SNMP, text).unwrap();
        assert_eq!(counters, BTreeMap::from([("Tcp.RetransSegs".into(), 5), ("Tcp.InSegs".into(), 9)]));
        let list =
            parse_list("Ip6InReceives       \t3\nIcmp6OutType134 1\nUdpLite6InErrors 0\nnonsense\nIp6 \n");
        assert_eq!(
            list.keys().collect::<Vec<_>>(),
            ["Icmp6.OutType134", "Ip6.InReceives", "UdpLite6.InErrors"]
        );
    }

    #[test]
    fn only_what_moved_forward_is_reported() {
        let before = parse_pairs(SNMP, "A: x y z\nA: 1 5 3\n").unwrap();
        let after = parse_pairs(SNMP, "A: x y z new\nA: 4 2 3 9\n").unwrap();
        assert_eq!(difference(&before, &after), BTreeMap::from([("A.x".into(), 3)]));
    }

    #[test]
    fn hostile_files_are_refused_or_shortened() {
        for bad in ["Tcp A B\nTcp 1 2\n", "Tcp: A\nUdp: 1\n", "Tcp: A\n\n"] {
            assert!(parse_pairs(SNMP, bad).is_err(), "{bad:?}");
        }
        assert!(parse_pairs(SNMP, "Tcp: A B\n").unwrap().is_empty(), "names cut off from their values");
        assert_eq!(parse_pairs(SNMP, "T: A B\nT: 1\n").unwrap().len(), 1);
        assert!(parse_pairs(SNMP, "T: A\nT: 99999999999999999999\n").unwrap().is_empty());
    }

    #[test]
    fn a_datagram_over_loopback_moves_udps_counters() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut watch = Snmp.watch("lo");
        watch.open(&Scene::default()).unwrap();
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        assert!(seen.get::<SnmpCounts>().0["Udp.OutDatagrams"] >= 1, "{seen:?}");
    }
}
