//! Reads the counters of the link that the workload's packets should use according to the route, and the traffic of all
//! links. The traffic shows which link the packets really used.
//!
//! The source is /proc/thread-self/net/dev, which needs only one read and shows the network namespace of the *reading
//! thread*. /sys/class/net shows the namespace in which sysfs was mounted, which may be another one after setns(2).
//! /proc/net shows the namespace of the process's first thread.
//!
//! The file has fewer counters than the stats64 of rtnetlink, which needs a socket. The file adds rx_missed_errors
//! (packets for which the NIC had no free buffer) to rx_dropped, and combines errors of length, overrun, CRC and
//! framing in one number (`dev_seq_printf_stats`, net/core/net-procfs.c). Changes of the carrier are read over rtnetlink.

use std::collections::BTreeMap;

use landspeed_kernel::netlink::Rtnl;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{LinkCounters, LinkTraffic};

use crate::cpu::clock;
use crate::figures::headlines;
use crate::window::difference;
use crate::{Error, Observer, RunPolicy, procfile};

const PATH: &str = "/proc/thread-self/net/dev";

pub(crate) static LINK: Observer = Observer {
    name: "link",
    about: "bytes, packets, drops and errors of the link",
    cannot_see: &[
        "which flow a packet belongs to: the counters are the link's, other traffic included",
        "the same thing on every driver: a packet is counted after GRO and before TSO on some, as on the wire \
         on others; veth counts what is handed over, up to 64 KiB (or gso_max_size) a packet",
        "what a NIC drops without telling the kernel: such drops are in ethtool's statistics only",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        links: Vec<LinkCounters> => {
            "received", "bytes": links.first().map(|link| link.rx_bytes);
            "sent", "bytes": links.first().map(|link| link.tx_bytes);
            "receive drops", "packets that the kernel or the driver dropped":
                links.first().map(|link| link.rx_dropped);
            "transmit drops", "packets that the kernel or the driver dropped":
                links.first().map(|link| link.tx_dropped);
            "errors", "in both directions": links.first().map(|link| link.rx_errors.saturating_add(link.tx_errors));
        }
    },
    can_run: || procfile::readable(PATH),
    watch: |link| {
        let link = link.to_owned();
        difference(
            move || read(&link),
            |before, after, seen| {
                seen.put(vec![moved(before, after)]);
                seen.put(traffic(before, after));
            },
        )
    },
};

/// The 16 columns of the link, the traffic of all links, and the time at which they were read.
struct LinkReading {
    link: String,
    columns: [u64; 16],
    carrier_changes: u64,
    /// The bytes received and sent by every link of the namespace.
    bytes: BTreeMap<String, [u64; 2]>,
    at: Nanos,
}

/// The largest number of links whose traffic is reported, those with the most traffic first. It is enough for the link
/// of a path and all links below it in a stack.
const MOST_LINKS: usize = 16;

fn read(link: &str) -> Result<LinkReading, Error> {
    let (text, at) = (procfile::read(PATH)?, clock::now());
    let columns = parse(&text, link)?.ok_or_else(|| Error::Gone {
        object: format!("link '{}'", link.escape_default()),
        why: format!("{PATH} does not list it; the watcher runs in the namespace of its thread"),
    })?;
    let carrier_changes = carrier_changes(link);
    Ok(LinkReading { link: link.to_owned(), columns, carrier_changes, bytes: bytes(&text), at })
}

/// Returns how often the link's carrier came or went; zero where the kernel does not answer.
fn carrier_changes(link: &str) -> u64 {
    Rtnl::open().and_then(|rtnl| rtnl.link(link)).map_or(0, |link| link.carrier_changes.into())
}

/// Returns the 16 columns of `link`; `None` if it is not listed. A link's name has neither ':' nor white space
/// (`dev_valid_name`).
fn parse(text: &str, link: &str) -> Result<Option<[u64; 16]>, Error> {
    let mut lines = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let Some((_, columns)) = lines.find(|(name, _)| name.trim() == link) else { return Ok(None) };
    let numbers: Option<Vec<u64>> =
        columns.split_ascii_whitespace().take(16).map(|text| text.parse().ok()).collect();
    let columns = numbers.and_then(|numbers| numbers.first_chunk().copied());
    columns.map(Some).ok_or_else(|| Error::shape(PATH, "a line without 16 numbers"))
}

fn bytes(text: &str) -> BTreeMap<String, [u64; 2]> {
    let lines = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let of = |columns: &str| {
        let mut columns = columns.split_ascii_whitespace();
        Some([columns.next()?.parse().ok()?, columns.nth(7)?.parse().ok()?])
    };
    lines.filter_map(|(name, columns)| Some((name.trim().to_owned(), of(columns)?))).collect()
}

/// Returns the traffic of each link between the readings, most traffic first. Leaves out links without traffic, and
/// links beyond [`MOST_LINKS`].
fn traffic(before: &LinkReading, after: &LinkReading) -> Vec<LinkTraffic> {
    let moved = |(link, now): (&String, &[u64; 2])| {
        let was = before.bytes.get(link)?;
        let [rx_bytes, tx_bytes] = [0, 1].map(|way| Bytes(now[way].saturating_sub(was[way])));
        Some(LinkTraffic { link: link.clone(), rx_bytes, tx_bytes })
    };
    let mut all: Vec<LinkTraffic> = after.bytes.iter().filter_map(moved).collect();
    all.retain(|link| link.rx_bytes.0 > 0 || link.tx_bytes.0 > 0);
    all.sort_by_key(|link| std::cmp::Reverse(link.rx_bytes.max(link.tx_bytes)));
    all.truncate(MOST_LINKS);
    all
}

/// Returns the growth of the link's counters between the readings. A counter that decreased, because the link was
/// created again or its driver was reset, counts as zero.
fn moved(before: &LinkReading, after: &LinkReading) -> LinkCounters {
    let moved = |column: usize| after.columns[column].saturating_sub(before.columns[column]);
    LinkCounters {
        link: after.link.clone(),
        window_ns: after.at.saturating_sub(before.at),
        rx_bytes: Bytes(moved(0)),
        rx_packets: moved(1),
        rx_errors: moved(2),
        rx_dropped: moved(3),
        tx_bytes: Bytes(moved(8)),
        tx_packets: moved(9),
        tx_errors: moved(10),
        tx_dropped: moved(11),
        carrier_changes: after.carrier_changes.saturating_sub(before.carrier_changes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Inter-|   Receive  | Transmit\n face |bytes packets|bytes\n";

    #[test]
    fn columns_are_found_by_the_links_name() {
        let text = format!(
            "{HEAD}    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nveth@x:18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        let lo = parse(&text, "lo").unwrap().unwrap();
        let [none, lo] = [[0; 16], lo].map(|columns| LinkReading {
            link: "lo".into(),
            columns,
            carrier_changes: 0,
            bytes: BTreeMap::new(),
            at: Nanos(0),
        });
        let seen = moved(&none, &lo);
        assert_eq!((seen.rx_bytes, seen.rx_packets, seen.rx_errors, seen.rx_dropped), (Bytes(1), 2, 3, 4));
        assert_eq!((seen.tx_bytes, seen.tx_packets, seen.tx_errors, seen.tx_dropped), (Bytes(9), 10, 11, 12));
        assert_eq!(parse(&text, "veth@x").unwrap().unwrap()[0], u64::MAX);
        assert_eq!(moved(&lo, &none).rx_bytes, Bytes(0));
        assert_eq!(parse(&text, "veth").unwrap(), None);
    }

    #[test]
    fn every_link_with_traffic_is_reported() {
        let reading = |text: &str| LinkReading {
            link: "a".into(),
            columns: [0; 16],
            carrier_changes: 0,
            bytes: bytes(&format!("{HEAD}{text}")),
            at: Nanos(0),
        };
        let before = reading(" a: 5 0 0 0 0 0 0 0 7 0\n b: 1 0 0 0 0 0 0 0 1 0\nidle:9 0 0 0 0 0 0 0 9 0\n");
        let after = reading(
            " a: 6 0 0 0 0 0 0 0 9 0\n b: 1 0 0 0 0 0 0 0 31 0\nidle:9 0 0 0 0 0 0 0 9 0\nnew: 4 0 0 0 0 0 0 0 4 0\nbad\n",
        );
        let links: Vec<_> = traffic(&before, &after)
            .into_iter()
            .map(|link| (link.link, link.rx_bytes.0, link.tx_bytes.0))
            .collect();
        assert_eq!(links, [("b".to_owned(), 0, 30), ("a".to_owned(), 1, 2)]);
    }

    #[test]
    fn hostile_lines_are_refused() {
        for line in ["eth0: 1 2 3\n", "eth0: a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "eth0:\n"] {
            assert!(parse(&format!("{HEAD}{line}"), "eth0").is_err(), "{line:?}");
        }
        for empty in ["", "a\nb\n", "no colon at all\n\n\n\n"] {
            assert_eq!(parse(empty, "eth0").unwrap(), None, "{empty:?}");
        }
    }
}
