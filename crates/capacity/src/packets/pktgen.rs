//! The kernel's packet generator (Documentation/networking/pktgen.rst), where it is loaded. It is driven
//! by writing to files of /proc/net/pktgen, which every network namespace has for itself.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use landspeed_units::Bytes;

use super::rate::{Figures, beside_load};
use super::room::{NEAR, Room};
use super::{Plan, rate};
use crate::files::word;
use crate::{Budget, Error};

/// Of the calling thread's namespace; /proc/net is that of the process's first thread.
const FOLDER: &str = "/proc/thread-self/net/pktgen";

/// Packets of the run that tells how many fit the time.
const FIRST: u64 = 2_000;

/// Most of one run: pktgen cannot be bounded by time, and a run on a machine that stalls must end, too.
const MOST: u64 = 5_000_000;

pub(super) struct Pktgen {
    folder: PathBuf,
    core: u32,
}

impl Pktgen {
    /// The generator of this namespace; `None` where the kernel has none (module pktgen not loaded).
    pub(super) fn here(core: u32) -> Option<Self> {
        let pktgen = Pktgen { folder: FOLDER.into(), core };
        pktgen.folder.join(pktgen.thread()).exists().then_some(pktgen)
    }

    /// The rates of packets of one size into the far end, alone and beside a load.
    pub(super) fn figures(
        &self,
        room: &Room,
        size: Bytes,
        plan: &Plan<'_>,
        budget: &Budget<'_>,
    ) -> Result<Figures, Error> {
        self.prepare(room, size)?;
        let first = self.run(FIRST, budget)?;
        let alone = self.run(fitting(first, plan.time), budget)?;
        let loaded = match plan.loaded {
            false => None,
            true => {
                let time = plan.time.max(rate::LEAST_LOADED);
                Some(beside_load(self.core, || self.run(fitting(alone / 2.0, time), budget))?)
            }
        };
        Ok(Figures { alone, loaded })
    }

    fn thread(&self) -> String {
        format!("kpktgend_{}", self.core)
    }

    fn prepare(&self, room: &Room, size: Bytes) -> Result<(), Error> {
        let thread = self.thread();
        self.tell(&thread, "rem_device_all")?;
        self.tell(&thread, &format!("add_device {NEAR}"))?;
        // veth cannot send one buffer twice (no IFF_TX_SKB_SHARING).
        self.tell(NEAR, "clone_skb 0")?;
        self.tell(NEAR, &format!("pkt_size {}", size.0))?;
        self.tell(NEAR, "delay 0")?;
        self.tell(NEAR, "dst 192.0.2.2")?;
        self.tell(NEAR, &format!("dst_mac {}", room.far))
    }

    /// Packets per second of a run of `count`; returns when it is over.
    fn run(&self, count: u64, budget: &Budget<'_>) -> Result<f64, Error> {
        if budget.over() {
            return Err(Error::Late("run pktgen"));
        }
        self.tell(NEAR, &format!("count {count}"))?;
        self.tell("pgctrl", "start")?;
        let text = word(&self.folder.join(NEAR)).unwrap_or_default();
        rate_in(&text).ok_or_else(|| {
            Error::Unable(format!("pktgen shows no result: {}", text.lines().last().unwrap_or("")))
        })
    }

    fn tell(&self, file: &str, command: &str) -> Result<(), Error> {
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().append(true).open(self.folder.join(file))?;
            // One write a command: pktgen takes each write for a whole one.
            file.write_all(format!("{command}\n").as_bytes())
        };
        write().map_err(|error| Error::io("tell pktgen", format!("{file}: {command}"), error))
    }
}

/// So many packets as take about `time` at `rate`.
fn fitting(rate: f64, time: Duration) -> u64 {
    ((rate * time.as_secs_f64()) as u64).clamp(FIRST, MOST)
}

/// From "Result: OK: 4826(c4816+d9) usec, 1000 (60byte,0frags)": packets over microseconds. The rate that
/// the next line prints is rounded to whole packets and left out where the run was short.
fn rate_in(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Result: OK: "))?;
    let (micros, rest) = line.split_once('(')?;
    let packets: f64 = rest.split_once("usec, ")?.1.split_whitespace().next()?.parse().ok()?;
    let micros: f64 = micros.parse().ok()?;
    (micros > 0.0).then(|| packets * 1e6 / micros)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use landspeed_netlink::HardwareAddress;

    use super::*;

    /// Documentation/networking/pktgen.rst, "Viewing configs".
    const SHOWN: &str = "\
Params: count 100000  min_pkt_size: 60  max_pkt_size: 60
     frags: 0  delay: 0  clone_skb: 0  ifname: ls-near
Current:
     pkts-sofar: 1000  errors: 0
     started: 39664us  stopped: 44490us idle: 9us
Result: OK: 4826(c4816+d9) usec, 1000 (60byte,0frags)
  207182pps 99Mb/sec (99447360bps) errors: 0
";

    #[test]
    fn the_rate_is_packets_over_the_time_that_they_took() {
        assert_eq!(rate_in(SHOWN).unwrap().round(), 207_211.0);
        for bad in ["", "Result: Idle", "Result: OK: x(c1+d1) usec, 5 (60byte)", "Result: OK: 0(c) usec, 1 ("]
        {
            assert_eq!(rate_in(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_a_device_is_told_and_in_what_order() {
        let tree = tempfile::tempdir().unwrap();
        for file in ["pgctrl", "kpktgend_3"] {
            fs::write(tree.path().join(file), "").unwrap();
        }
        fs::write(tree.path().join(NEAR), SHOWN).unwrap();
        let pktgen = Pktgen { folder: tree.path().into(), core: 3 };
        let room = Room {
            index: 1,
            near: HardwareAddress(vec![2, 0, 0, 0, 0, 1]),
            far: HardwareAddress(vec![2, 0, 0, 0, 0, 2]),
        };
        let plan = Plan { core: 3, sizes: &[], time: Duration::from_millis(100), loaded: false };
        let budget = Budget::new(Duration::from_secs(9), &|| false);
        let figures = pktgen.figures(&room, Bytes(60), &plan, &budget).unwrap();
        assert_eq!(figures.alone.round(), 207_211.0);

        let told = |file: &str| fs::read_to_string(tree.path().join(file)).unwrap();
        assert_eq!(told("kpktgend_3"), "rem_device_all\nadd_device ls-near\n");
        assert_eq!(told("pgctrl"), "start\nstart\n");
        let device = told(NEAR);
        let device = device.strip_prefix(SHOWN).unwrap();
        assert_eq!(
            device.lines().collect::<Vec<_>>(),
            [
                "clone_skb 0",
                "pkt_size 60",
                "delay 0",
                "dst 192.0.2.2",
                "dst_mac 02:00:00:00:00:02",
                "count 2000",
                "count 20721"
            ]
        );
    }

    #[test]
    fn a_kernel_without_it_says_so() {
        assert!(Pktgen::here(u32::MAX).is_none());
    }
}
