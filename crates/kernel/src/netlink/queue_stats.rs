//! Statistics of queueing disciplines: counters, backlog and configured rate.

use crate::netlink::attr::{Attrs, u32_at, u64_at};
use crate::netlink::error::{Error, FailureContext, RequestFailure};
use crate::netlink::qdisc::{HEADER, TCA_KIND, TCA_OPTIONS, header};
use crate::netlink::rtnl::Rtnl;

const TCA_STATS2: u16 = 7;
/// `TCA_STATS_*` of linux/gen_stats.h.
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_PKT64: u16 = 8;

/// A queueing discipline or one of its classes, with its counters since its creation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueStats {
    pub index: u32,
    /// Kind: "tbf", "fq_codel", "noqueue".
    pub kind: String,
    /// Handle, with the major number in the upper 16 bits and a class's minor number in the lower; 0 for a qdisc that
    /// the kernel installed by default.
    pub handle: u32,
    /// Handle of the parent; `u32::MAX` for the root.
    pub parent: u32,
    /// True for a class. The counters of a qdisc include the traffic of its classes.
    pub is_class: bool,
    pub bytes: u64,
    /// Number of packets sent. Each segment of a superpacket counts as one packet.
    pub packets: u64,
    pub backlog_bytes: u32,
    pub drops: u32,
    /// Number of times that sending was delayed because the configured rate was used up.
    pub overlimits: u32,
    /// Highest rate in bytes per second: the rate of a token bucket or the ceiling of an htb class; `None` for other
    /// kinds.
    pub rate_bytes_per_s: Option<u64>,
}

impl QueueStats {
    fn parse(message: &[u8], is_class: bool) -> Result<Self, RequestFailure> {
        let short = || RequestFailure::Malformed("a qdisc message cut short".into());
        let word = |at: usize| u32_at(message, at).ok_or_else(short);
        let attrs = Attrs::after(message, HEADER);
        let kind = attrs.string(TCA_KIND).ok_or_else(short)?;
        let stats = attrs.nested(TCA_STATS2).unwrap_or(Attrs(&[]));
        let basic = stats.get(STATS_BASIC).unwrap_or_default();
        let queue = |n: usize| stats.get(STATS_QUEUE).and_then(|bytes| u32_at(bytes, n * 4)).unwrap_or(0);
        // The 64-bit counter of packets. The kernel sends it only if the count does not fit the 32 bits of the basic
        // counter.
        let packets64 = stats.get(STATS_PKT64).and_then(|bytes| u64_at(bytes, 0));
        Ok(QueueStats {
            index: word(4)?,
            handle: word(8)?,
            parent: word(12)?,
            is_class,
            rate_bytes_per_s: attrs.nested(TCA_OPTIONS).and_then(|options| rate(&kind, options)),
            kind,
            bytes: u64_at(basic, 0).unwrap_or(0),
            packets: packets64.unwrap_or_else(|| u32_at(basic, 8).unwrap_or(0).into()),
            backlog_bytes: queue(1),
            drops: queue(2),
            overlimits: queue(4),
        })
    }
}

/// Returns the configured rate of a qdisc or class of this kind, in bytes per second; `None` for a kind without a rate.
/// The rate is taken from the 64-bit attribute if the kernel sent it, otherwise from the struct tc_ratespec in the
/// parameters.
fn rate(kind: &str, options: Attrs<'_>) -> Option<u64> {
    /// Offset of `rate` in struct tc_ratespec.
    const IN_SPEC: usize = 8;
    let (parameters, spec_at, rate64) = match kind {
        // TCA_TBF_PARMS (1): struct tc_tbf_qopt starts with the rate's struct tc_ratespec. TCA_TBF_RATE64 (4).
        "tbf" => (1, 0, 4),
        // TCA_HTB_PARMS (1): struct tc_htb_opt has the rate's struct tc_ratespec, then the ceiling's. TCA_HTB_CEIL64
        // (7).
        "htb" => (1, 12, 7),
        _ => return None,
    };
    let wide = options.get(rate64).and_then(|bytes| u64_at(bytes, 0));
    wide.or_else(|| u32_at(options.get(parameters)?, spec_at + IN_SPEC).map(u64::from))
}

impl Rtnl {
    /// Returns the statistics of all qdiscs of one link, and of the classes of its htb qdiscs. With `index` 0, returns
    /// those of all links.
    pub fn queue_stats(&self, index: u32) -> Result<Vec<QueueStats>, Error> {
        let mut all = self.queues(libc::RTM_GETQDISC, index)?;
        // Kernels before 4.20 do not filter by link.
        all.retain(|queue| index == 0 || queue.index == index);
        let mut classful: Vec<u32> = all.iter().filter(|q| q.kind == "htb").map(|q| q.index).collect();
        classful.dedup();
        for index in classful {
            all.extend(self.queues(libc::RTM_GETTCLASS, index)?);
        }
        Ok(all)
    }

    fn queues(&self, message: u16, index: u32) -> Result<Vec<QueueStats>, Error> {
        let is_class = message == libc::RTM_GETTCLASS;
        let answers = self.channel.dump(message, &header(index, 0, 0));
        let all = answers.and_then(|all| all.iter().map(|m| QueueStats::parse(m, is_class)).collect());
        all.during(|| match index {
            0 => "list qdiscs".into(),
            index => format!("list {} of link number {index}", if is_class { "classes" } else { "qdiscs" }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attr::{MessageBody, words};

    #[test]
    fn counters_are_read_and_the_wide_ones_win() {
        let basic = [&u64::MAX.to_ne_bytes()[..], &words(&[7, 0])].concat();
        let stats =
            MessageBody::default().attr(STATS_BASIC, &basic).attr(STATS_QUEUE, &words(&[1, 2, 3, 4, 5]));
        let message = |stats: MessageBody| {
            header(9, 0, 0).string(TCA_KIND, "tbf").attr(TCA_STATS2, stats.bytes()).bytes().to_vec()
        };
        let queue = QueueStats::parse(&message(stats.clone()), false).unwrap();
        assert_eq!((queue.index, queue.bytes, queue.packets), (9, u64::MAX, 7));
        assert_eq!((queue.backlog_bytes, queue.drops, queue.overlimits), (2, 3, 5));
        let wide = stats.attr(STATS_PKT64, &(1u64 << 40).to_ne_bytes());
        assert_eq!(QueueStats::parse(&message(wide), false).unwrap().packets, 1 << 40);
    }

    #[test]
    fn the_rate_is_where_each_kind_keeps_it() {
        let spec = words(&[0, 0, 1000, 0, 0, 2000]);
        let options = MessageBody::default().attr(1, &spec);
        assert_eq!(rate("tbf", Attrs(options.bytes())), Some(1000));
        assert_eq!(rate("htb", Attrs(options.bytes())), Some(2000));
        assert_eq!(rate("fq_codel", Attrs(options.bytes())), None);
        let wide = options.attr(4, &(1u64 << 33).to_ne_bytes());
        assert_eq!(rate("tbf", Attrs(wide.bytes())), Some(1 << 33));
        assert_eq!(rate("tbf", Attrs(&[])), None);
    }
}
