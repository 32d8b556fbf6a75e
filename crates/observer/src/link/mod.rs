//! Counters of the link that the workload's packets take.
//!
//! Read from /proc/thread-self/net/dev: one read, and the kernel shows the namespace of the *reading
//! thread*. /sys/class/net shows the namespace that sysfs was mounted in, which is another one after
//! setns(2), and /proc/net is that of the process's first thread. rtnetlink's stats64 has the same
//! numbers (both are `dev_get_stats`) at the price of a socket.

use std::collections::BTreeMap;

use landspeed_record::{LinkCounters, Observations};
use landspeed_units::{Bytes, Nanos};

use crate::cpu::clock;
use crate::figures::of;
use crate::{Error, Headline, Observer, Scene, Watch, procfile};

const PATH: &str = "/proc/thread-self/net/dev";

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "received",
        about: "bytes",
        of: |seen| of(seen, |links: &Vec<LinkCounters>| links.first().map(|link| link.rx_bytes)),
    },
    Headline {
        name: "sent",
        about: "bytes",
        of: |seen| of(seen, |links: &Vec<LinkCounters>| links.first().map(|link| link.tx_bytes)),
    },
    Headline {
        name: "receive drops",
        about: "packets that the kernel or the driver dropped",
        of: |seen| of(seen, |links: &Vec<LinkCounters>| links.first().map(|link| link.rx_dropped)),
    },
    Headline {
        name: "transmit drops",
        about: "packets that the kernel or the driver dropped",
        of: |seen| of(seen, |links: &Vec<LinkCounters>| links.first().map(|link| link.tx_dropped)),
    },
    Headline {
        name: "errors",
        about: "in both directions",
        of: |seen| {
            of(seen, |links: &Vec<LinkCounters>| {
                links.first().map(|link| link.rx_errors.saturating_add(link.tx_errors))
            })
        },
    },
];

/// The row of the table.
pub(crate) struct Link;

impl Observer for Link {
    fn name(&self) -> &'static str {
        "link"
    }

    fn about(&self) -> &'static str {
        "bytes, packets, drops and errors of the link"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "which flow a packet belongs to: the counters are the link's, other traffic included",
            "the same thing on every driver: a packet is counted after GRO and before TSO on some, as on the wire \
             on others; veth counts what is handed over, up to 64 KiB (or gso_max_size) a packet",
            "what a NIC drops without telling the kernel: such drops are in ethtool's statistics only",
        ]
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        procfile::readable(PATH)
    }

    fn watch(&self, link: &str) -> Box<dyn Watch> {
        Box::new(LinkWatch { link: link.to_owned(), before: None })
    }
}

/// The 16 columns of one link.
type Columns = [u64; 16];

/// What they held when.
struct Reading {
    columns: Columns,
    at: Nanos,
}

struct LinkWatch {
    link: String,
    before: Option<Reading>,
}

impl LinkWatch {
    fn read(&self) -> Result<Reading, Error> {
        let (text, at) = (procfile::read(PATH)?, clock::now());
        let columns = parse(&text)?.remove(self.link.as_str()).ok_or_else(|| Error::Gone {
            object: format!("link '{}'", self.link.escape_default()),
            why: format!("{PATH} does not list it; the watcher runs in the namespace of its thread"),
        })?;
        Ok(Reading { columns, at })
    }
}

impl Watch for LinkWatch {
    fn open(&mut self, _scene: &Scene<'_>) -> Result<(), Error> {
        self.before = None;
        self.before = Some(self.read()?);
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        if let Some(before) = self.before.take() {
            seen.put(vec![difference(&self.link, &before, &self.read()?)]);
        }
        Ok(())
    }
}

/// All links. A name holds neither ':' nor white space (`dev_valid_name`).
fn parse(text: &str) -> Result<BTreeMap<String, Columns>, Error> {
    let mut links = BTreeMap::new();
    for (name, columns) in text.lines().skip(2).filter_map(|line| line.split_once(':')) {
        let mut counters = [0; 16];
        let mut given = columns.split_ascii_whitespace();
        for counter in &mut counters {
            let column = given.next().and_then(|text| text.parse().ok());
            *counter = column.ok_or_else(|| Error::shape(PATH, "a line without 16 numbers"))?;
        }
        links.insert(name.trim().to_owned(), counters);
    }
    Ok(links)
}

/// A counter that ran backwards (the link was made anew, or its driver reset) counts as zero.
fn difference(link: &str, before: &Reading, after: &Reading) -> LinkCounters {
    let moved = |column: usize| after.columns[column].saturating_sub(before.columns[column]);
    LinkCounters {
        link: link.to_owned(),
        window_ns: after.at.saturating_sub(before.at),
        rx_bytes: Bytes(moved(0)),
        rx_packets: moved(1),
        rx_errors: moved(2),
        rx_dropped: moved(3),
        tx_bytes: Bytes(moved(8)),
        tx_packets: moved(9),
        tx_errors: moved(10),
        tx_dropped: moved(11),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const HEAD: &str = "Inter-|   Receive  | Transmit\n face |bytes packets|bytes\n";

    #[test]
    fn columns_are_found_by_the_links_name() {
        let text = format!(
            "{HEAD}    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nveth@x:18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        let links = parse(&text).unwrap();
        let [none, lo] = [[0; 16], links["lo"]].map(|columns| Reading { columns, at: Nanos(0) });
        let seen = difference("lo", &none, &lo);
        assert_eq!((seen.rx_bytes, seen.rx_packets, seen.rx_errors, seen.rx_dropped), (Bytes(1), 2, 3, 4));
        assert_eq!((seen.tx_bytes, seen.tx_packets, seen.tx_errors, seen.tx_dropped), (Bytes(9), 10, 11, 12));
        assert_eq!(links["veth@x"][0], u64::MAX);
        assert_eq!(difference("lo", &lo, &none).rx_bytes, Bytes(0));
    }

    #[test]
    fn hostile_lines_are_refused() {
        for line in ["eth0: 1 2 3\n", "eth0: a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", "eth0:\n"] {
            assert!(parse(&format!("{HEAD}{line}")).is_err(), "{line:?}");
        }
        for empty in ["", "a\nb\n", "no colon at all\n\n\n\n"] {
            assert!(parse(empty).unwrap().is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn loopback_counts_what_is_sent_over_it() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut watch = Link.watch("lo");
        let start = clock::now();
        watch.open(&Scene::default()).unwrap();
        socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        let counted = &seen.get::<Vec<LinkCounters>>()[0];
        let window = counted.window_ns;
        assert!(window > Nanos(0) && window <= clock::now().saturating_sub(start), "{window}");
        assert!(counted.tx_bytes.0 >= 1028 && counted.rx_packets >= 1, "{seen:?}");
    }

    #[test]
    fn a_link_that_is_not_there_is_named() {
        let error = Link.watch("no-such0").open(&Scene::default()).unwrap_err();
        assert!(error.to_string().contains("no-such0"), "{error}");
    }
}
