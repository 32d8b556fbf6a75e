//! The link carried by the kernel: a bridge between its two ports, and an emulator where packets leave.

use std::sync::{Mutex, PoisonError};

use landspeed_netlink::{Error as NetlinkError, LinkChange, Netem, NetemLoss, Rtnl, in_throwaway};
use landspeed_record::DirectionStats;
use landspeed_units::Bytes;

use super::error::Error;
use super::loss::chain;
use super::plan::{LineSpeed, WayPlan};
use super::stats::Seen;

const BRIDGE: &str = "ls-netem";
/// Packets under way count against netem's limit; they are taken to be as long as Ethernet's.
const PACKET: u128 = 1500;

/// What every report over such a link must say.
const NOTE: &str = "carried by the kernel's netem: how late it is remains unmeasured, a superpacket is one packet to it, and \
                    losses and a full queue are one count (queue_drops)";

/// Emulators at work, until their network namespace goes.
#[derive(Debug)]
pub(super) struct Emulators {
    /// Of the ports' namespace.
    rtnl: Mutex<Rtnl>,
    /// Where packets leave: towards B, towards A.
    ports: [String; 2],
}

/// The direction as netem has it; else what netem cannot do. With `is_asked` it may differ in how packets
/// overtake each other.
pub(super) fn of(plan: &WayPlan, is_asked: bool) -> Result<Netem, String> {
    let way = &plan.way;
    let cannot = [
        (plan.queue.packets == u64::MAX, "its queue counts packets, not bytes: say queue=1000p"),
        (way.mark_above.is_some(), "it marks where it would drop, not above a bound (mark-above)"),
        (way.loss_nth.is_some() || way.drop_list.is_some(), "it loses by chance alone (loss-nth, drop-list)"),
        (way.drop_above.is_some(), "it drops no packet for its size (drop-above)"),
        (
            !way.reorder.is_zero() && !is_asked,
            "it sends packets ahead at once instead of holding some back (reorder): say link=netem",
        ),
    ];
    if let Some((_, why)) = cannot.iter().find(|(applies, _)| *applies) {
        return Err((*why).to_owned());
    }
    let LineSpeed::Rate(bps) = plan.speed else { return Err("it follows no trace".to_owned()) };
    let under_way = plan.most_bytes_within(plan.delay + way.jitter) / PACKET;
    let jitter = way.jitter.0 / 2;
    Ok(Netem {
        // From no jitter to all of it: half of it more or less than the middle.
        latency_ns: plan.delay.0 + jitter,
        jitter_ns: jitter,
        limit_packets: u32::try_from(u128::from(plan.queue.packets) + under_way).unwrap_or(u32::MAX),
        loss: loss(plan),
        duplicate: way.duplicate.as_f64(),
        reorder: way.reorder.as_f64(),
        rate_bytes_per_s: bps / 8,
        seed: plan.seed.wrapping_add(plan.number),
    })
}

fn loss(plan: &WayPlan) -> NetemLoss {
    match chain(&plan.way) {
        Some([enter, leave, good, bad]) => NetemLoss::GilbertElliott { enter, leave, good, bad },
        None => NetemLoss::Random(plan.way.loss.as_f64()),
    }
}

/// Whether this kernel has netem; else why not. Asks it, in a namespace that is gone before this returns.
pub(super) fn probe(netem: &Netem) -> Result<(), String> {
    match in_throwaway(|| Rtnl::open()?.replace_root_netem("lo", netem)) {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) if e.is_absent() => Err("this kernel has no netem (sch_netem)".to_owned()),
        Ok(Err(e)) => Err(format!("this kernel's netem refuses the link: {e}")),
        Ok(Ok(())) => Ok(()),
    }
}

impl Emulators {
    /// Joins two links of this thread's namespace; `netem` is what happens to what leaves the second, and the first.
    pub(super) fn start(netem: &[Netem; 2], [a, b]: [&str; 2]) -> Result<Self, Error> {
        let rtnl = Rtnl::open()?;
        rtnl.create_bridge(BRIDGE)?;
        let bridge = rtnl.index_of(BRIDGE)?;
        for (port, netem) in [(b, &netem[0]), (a, &netem[1])] {
            rtnl.replace_root_netem(port, netem)?;
            rtnl.set_link(port, LinkChange::Master(bridge))?;
        }
        rtnl.set_link(BRIDGE, LinkChange::Up(true))?;
        Ok(Emulators { rtnl: Mutex::new(rtnl), ports: [b.to_owned(), a.to_owned()] })
    }

    /// What each did; nothing where its port has gone.
    pub(super) fn seen(&self) -> [Seen; 2] {
        let rtnl = self.rtnl.lock().unwrap_or_else(PoisonError::into_inner);
        self.ports.each_ref().map(|port| Seen::counted(figures(&rtnl, port).unwrap_or_default()))
    }

    /// What a reader must know.
    pub(super) fn notes(&self) -> Vec<String> {
        vec![NOTE.to_owned()]
    }
}

fn figures(rtnl: &Rtnl, port: &str) -> Result<DirectionStats, NetlinkError> {
    let queues = rtnl.queue_stats(rtnl.index_of(port)?)?;
    let queue = queues.into_iter().find(|queue| queue.kind == "netem").unwrap_or_default();
    let drops = u64::from(queue.drops);
    Ok(DirectionStats {
        arrived_segments: queue.packets + drops,
        forwarded_segments: queue.packets,
        forwarded_bytes: Bytes(queue.bytes),
        queue_drops: drops,
        ..DirectionStats::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::WanSpec;
    use super::*;

    fn ask(spec: &str) -> Result<Netem, String> {
        of(&spec.parse::<WanSpec>().unwrap().plan().unwrap()[0], false)
    }

    #[test]
    fn what_netem_can_say_is_said() {
        let netem = ask("rate=1G,rtt=20ms,queue=1000p,jitter=2ms,duplicate=1%,loss=0.5%,seed=9").unwrap();
        assert_eq!((netem.latency_ns, netem.jitter_ns), (11_000_000, 1_000_000));
        // 12 ms at 1 Gb/s are 1,500,000 bytes: 1000 packets more than may wait.
        assert_eq!((netem.limit_packets, netem.rate_bytes_per_s, netem.seed), (2000, 125_000_000, 9));
        assert_eq!((netem.loss, netem.duplicate, netem.reorder), (NetemLoss::Random(0.005), 0.01, 0.0));
        let bursts = ask("queue=9p,loss=10%,loss-burst=8").unwrap().loss;
        let NetemLoss::GilbertElliott { enter, leave, good, bad } = bursts else { panic!("{bursts:?}") };
        assert!((enter - 0.125 / 9.0).abs() < 1e-9 && leave == 0.125 && good == 0.0 && bad == 1.0);
    }

    #[test]
    fn what_it_cannot_say_has_a_reason() {
        for (spec, why) in [
            ("", "queue=1000p"),
            ("queue=64K", "queue=1000p"),
            ("queue=9p,mark-above=3p", "mark-above"),
            ("queue=9p,drop-list=5", "drop-list"),
            ("queue=9p,loss-nth=5", "loss-nth"),
            ("queue=9p,drop-above=1400", "drop-above"),
            ("queue=9p,reorder=1%", "link=netem"),
        ] {
            assert!(ask(spec).unwrap_err().contains(why), "{spec}");
        }
        let plan = "queue=9p,reorder=1%".parse::<WanSpec>().unwrap().plan().unwrap();
        assert_eq!(of(&plan[0], true).unwrap().reorder, 0.01, "who asks for netem gets its way");
    }
}
