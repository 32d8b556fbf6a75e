//! Reads statistics of qdiscs over a window: bytes and packets sent, drops, overlimits and backlog.
//!
//! The counters are read over rtnetlink at both ends of the window. The backlog is also read at each sample.

use std::collections::BTreeMap;

use landspeed_kernel::netlink::{QueueStats, Rtnl};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Observations, QdiscWatch, WatchTarget};

use crate::figures::{headlines, total};
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject};

pub(crate) static QDISC: Observer = Observer {
    name: "qdisc",
    about: "queueing disciplines and htb classes: bytes, drops, overlimits, backlog and rate",
    cannot_see: &[
        "which flow a packet belongs to: the counters are the queue's, other traffic included",
        "a backlog between two samples",
        "packets of links without a queue (noqueue), and packets that go around it",
        "policers of filters (tc-police, on ingress above all) and limits in XDP, BPF or the NIC itself",
        "rates of kinds other than tbf and htb; an htb class shows its ceiling",
        "queues of other hosts and of other network namespaces",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        queues: Vec<QdiscWatch> => {
            "sent", "bytes that left the link, by its busiest queue":
                queues.iter().map(|queue| queue.sent_bytes).max();
            "drops", "packets, of all queues and classes": Some(total(queues.iter().map(|queue| queue.drops)));
            "overlimits", "times that a queue held packets back":
                Some(total(queues.iter().map(|queue| queue.overlimits)));
            "largest backlog", "bytes, of the fullest queue at a sample":
                queues.iter().map(|queue| queue.most_waiting_bytes).max();
        }
    },
    can_run: || Rtnl::open().map(drop).map_err(|error| error.to_string()),
    watch: |link| {
        let link = link.to_owned();
        windows(move |subject| QdiscWindow::new(&link, subject))
    },
};

/// The key of a qdisc or class: the index of its link, its handle, the handle of its parent, and true for a class. A
/// qdisc that is deleted and created again may have the same key.
type QueueKey = (u32, u32, u32, bool);

struct QdiscWindow {
    rtnl: Rtnl,
    /// The index of the link; 0 means all links.
    index: u32,
    before: BTreeMap<QueueKey, QueueStats>,
    most_waiting: BTreeMap<QueueKey, u32>,
}

fn key(queue: &QueueStats) -> QueueKey {
    (queue.index, queue.handle, queue.parent, queue.is_class)
}

impl QdiscWindow {
    fn new(link: &str, subject: &WatchSubject<'_>) -> Result<Self, Error> {
        let rtnl = Rtnl::open()?;
        // The workload's packets use one link, which is known. The links of other programs' flows are unknown, so all
        // links are watched.
        let index = match subject.target {
            WatchTarget::Workload => rtnl.index_of(link)?,
            _ => 0,
        };
        let mut open = QdiscWindow { rtnl, index, before: BTreeMap::new(), most_waiting: BTreeMap::new() };
        open.before = open.look()?.into_iter().map(|queue| (key(&queue), queue)).collect();
        Ok(open)
    }

    fn look(&mut self) -> Result<Vec<QueueStats>, Error> {
        let now = self.rtnl.queue_stats(self.index)?;
        for queue in &now {
            let most = self.most_waiting.entry(key(queue)).or_default();
            *most = queue.backlog_bytes.max(*most);
        }
        Ok(now)
    }

    fn watch(&self, names: &BTreeMap<u32, String>, now: &QueueStats) -> QdiscWatch {
        // If the byte counter decreased or the kind changed, the queue was created again within the window, so its
        // counts start from zero.
        let before =
            self.before.get(&key(now)).filter(|before| before.bytes <= now.bytes && before.kind == now.kind);
        let before = before.cloned().unwrap_or_default();
        QdiscWatch {
            link: names.get(&now.index).cloned().unwrap_or_default(),
            kind: now.kind.clone(),
            handle: handle(now.handle),
            sent_bytes: Bytes(now.bytes - before.bytes),
            sent_packets: now.packets.saturating_sub(before.packets),
            drops: now.drops.wrapping_sub(before.drops).into(),
            overlimits: now.overlimits.wrapping_sub(before.overlimits).into(),
            most_waiting_bytes: Bytes(self.most_waiting.get(&key(now)).copied().unwrap_or(0).into()),
            rate_bps: now.rate_bytes_per_s.map(|rate| BitRate(rate as f64 * 8.0)),
        }
    }
}

/// Returns the handle in the form that tc prints, such as "1:" or "1:10".
fn handle(handle: u32) -> String {
    match (handle >> 16, handle & 0xffff) {
        (major, 0) => format!("{major:x}:"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

impl OpenWindow for QdiscWindow {
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        self.look().map(drop)
    }

    fn close(mut self, seen: &mut Observations) -> Result<(), Error> {
        let now = self.look()?;
        let names = self.rtnl.links()?.into_iter().map(|link| (link.index, link.name)).collect();
        seen.put(now.iter().map(|queue| self.watch(&names, queue)).collect::<Vec<_>>());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_printed_as_tc_prints_them() {
        assert_eq!(handle(0x0001_0000), "1:");
        assert_eq!(handle(0x0001_0010), "1:10");
        assert_eq!(handle(0x8001_0000), "8001:");
        assert_eq!(handle(0), "0:");
    }

    #[test]
    fn a_queue_that_was_made_anew_starts_from_nothing() {
        let queue = |bytes, drops| QueueStats { kind: "tbf".into(), bytes, drops, ..QueueStats::default() };
        let before = BTreeMap::from([(key(&queue(0, 0)), queue(1000, u32::MAX))]);
        let open =
            QdiscWindow { rtnl: Rtnl::open().unwrap(), index: 0, before, most_waiting: BTreeMap::new() };
        let seen = |now| open.watch(&BTreeMap::new(), &now);
        assert_eq!((seen(queue(900, 5)).sent_bytes, seen(queue(900, 5)).drops), (Bytes(900), 5));
        let on = seen(queue(1500, 2));
        assert_eq!((on.sent_bytes, on.drops), (Bytes(500), 3), "32 bits went round");
    }
}
