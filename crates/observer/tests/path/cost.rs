//! What tracing costs: bytes per second of processor time with it over without, interleaved. A bench, run
//! by hand on a machine that does nothing else:
//!
//! ```text
//! cargo test -p landspeed-observer --test path -- --ignored --nocapture
//! ```

use std::os::fd::AsFd;
use std::time::Duration;

use landspeed_observer::{Scene, observer};
use landspeed_record::Observations;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::lab::{Lab, Transfer};
use crate::{close, watch};

const BLOCKS: usize = 20;
const TRIAL: Duration = Duration::from_millis(1000);

#[test]
#[ignore = "a bench of three minutes: says what tracing costs on this machine"]
fn tracing_costs_next_to_nothing() {
    for offloads in ["off", "on"] {
        let Some(lab) = Lab::new() else { return };
        for (host, link) in [(&lab.a, "va"), (&lab.b, "vb")] {
            host.tool(&format!(
                "ethtool -K {link} tx {offloads} sg {offloads} tso {offloads} gso {offloads}"
            ));
            host.tool(&format!("ethtool -K {link} gro {offloads}"));
        }
        let (log_ratios, attached) = compare(&lab);
        let found = landspeed_stats::estimate(&log_ratios, 0.95);
        println!(
            "offloads {offloads}: with over without {:.3} ({:.3} to {:.3}), attached for {:.1} % of the time",
            found.ratio,
            found.low,
            found.high,
            attached * 100.0
        );
    }
}

/// The log ratio of each ABBA block, and for what share of traced trials programs were attached.
fn compare(lab: &Lab) -> (Vec<f64>, f64) {
    let transfer = Transfer::start_on(lab, 65536, Some(0));
    let mut watches = [watch(&lab.a, "va"), watch(&lab.b, "vb")];
    std::thread::sleep(Duration::from_millis(500));
    let mut shares = Vec::new();
    let mut trial = |traced: bool| {
        let mut softirqs = observer("cpu").expect("it is in the table").watch("lo");
        softirqs.open(&Scene::default()).expect("open");
        let before = (transfer.received(), processor_time());
        if traced {
            for (watch, socket) in watches.iter_mut().zip([&transfer.client, &transfer.server]) {
                watch.open(&Scene { sockets: &[socket.as_fd()], ..Scene::default() }).expect("open");
            }
        }
        std::thread::sleep(TRIAL);
        if traced {
            let traces = watches.iter_mut().map(|watch| close(&mut **watch));
            shares.extend(traces.map(|trace| trace.attached_ns.0 as f64 / trace.window_ns.0 as f64));
        }
        let (bytes, own) = (transfer.received() - before.0, processor_time() - before.1);
        let mut seen = Observations::default();
        softirqs.close(&mut seen).expect("close");
        (bytes as f64 / (own.as_nanos() as f64 + seen.cpu.ksoftirqd_ns.0 as f64)).ln()
    };
    let log_ratios = (0..BLOCKS)
        .map(|block| {
            let first = block % 2 == 0;
            let of = [first, !first, !first, first].map(|traced| (traced, trial(traced)));
            let sum =
                |with: bool| of.iter().filter(|(traced, _)| *traced == with).map(|(_, x)| x).sum::<f64>();
            (sum(true) - sum(false)) / 2.0
        })
        .collect();
    (log_ratios, shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Of all threads of this process, the tracers' included; on veth softirqs run in them, or in ksoftirqd.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).expect("below a second"))
}

/// Keeps the calling thread on one processor: both ends on one vary least.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None::<Pid>, &set).expect("pin");
}
