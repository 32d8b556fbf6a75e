//! Benches of the cost of watching: the ratio of the bytes per second of processor time with an observer to those
//! without it, in interleaved trials. They are run by hand on an otherwise idle machine:
//!
//! ```text
//! make bench-watching
//! ```

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use landspeed_observer::{Watch, WatchSubject, observer};
use landspeed_record::{CpuUsage, Observations, PathTrace, WatchTarget};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::lab::{TestLab, Transfer};

/// The number of blocks. It makes a confidence interval of plus or minus two percent likely on a shared machine.
const BLOCKS: usize = 40;
/// The length of a trial. It is of the order of the 10 s for which `explain` watches, because the cost of opening a
/// window does not depend on its length.
const TRIAL: Duration = Duration::from_secs(4);

#[test]
#[ignore = "a bench of twenty minutes: says what tracing costs on this machine"]
fn tracing_costs_next_to_nothing() {
    with_and_without("path", WatchTarget::Workload);
}

#[test]
#[ignore = "a bench of twenty minutes: says what sampling costs on this machine"]
fn sampling_costs_little() {
    // All samples of the machine, since the ids of the transfer's threads are unknown here.
    with_and_without("cost", WatchTarget::Top);
}

fn with_and_without(name: &str, target: WatchTarget) {
    for offloads in ["off", "on"] {
        let Some(lab) = TestLab::new() else { return };
        for host in [&lab.a, &lab.b] {
            host.tool(&format!("ethtool -K LINK tx {offloads} sg {offloads} tso {offloads} gso {offloads}"));
            host.tool(&format!("ethtool -K LINK gro {offloads}"));
        }
        let found = compare(&lab, name, target);
        for (what, log_ratios) in [("bytes per CPU-second", &found.cost), ("rate", &found.rate)] {
            let found = landspeed_stats::estimate(log_ratios, 0.95);
            println!(
                "{name}, offloads {offloads}: {what} with over without {:.3} ({:.3} to {:.3})",
                found.ratio, found.low, found.high
            );
        }
        if !found.attached.is_empty() {
            let share = found.attached.iter().sum::<f64>() / found.attached.len() as f64;
            println!("programs were attached for {:.1} % of the time", share * 100.0);
        }
    }
}

/// The log ratios of the ABBA blocks, and the share of each watched trial during which programs were attached.
#[derive(Default)]
struct CostComparison {
    cost: Vec<f64>,
    rate: Vec<f64>,
    attached: Vec<f64>,
}

fn compare(lab: &TestLab, name: &str, target: WatchTarget) -> CostComparison {
    let transfer = Transfer::start_on(lab, 65536, Some(0));
    let row = observer(name).expect("it is in the table");
    let mut watches = [&lab.a, &lab.b].map(|host| host.run(|| row.watch(host.device())));
    std::thread::sleep(Duration::from_millis(500));
    let mut compared = CostComparison::default();
    for block in 0..BLOCKS {
        let first = block % 2 == 0;
        let (mut cost, mut rate) = (0.0, 0.0);
        for watched in [first, !first, !first, first] {
            let (for_cpu, for_time) = match watched {
                true => trial(&transfer, &mut watches, target, &mut compared.attached),
                false => trial(&transfer, &mut [], target, &mut compared.attached),
            };
            let half = if watched { 0.5 } else { -0.5 };
            cost += half * for_cpu.ln();
            rate += half * for_time.ln();
        }
        compared.cost.push(cost);
        compared.rate.push(rate);
    }
    compared
}

/// Returns the bytes per second of processor time, and the bytes per second, while the window was open. Work after it
/// closes, such as looking up symbols, does not disturb the flow and is not counted.
fn trial(
    transfer: &Transfer,
    watches: &mut [Box<dyn Watch>],
    target: WatchTarget,
    attached: &mut Vec<f64>,
) -> (f64, f64) {
    let mut softirqs = observer("cpu").expect("it is in the table").watch("lo");
    softirqs.open(&WatchSubject::default()).expect("open");
    let before = (Instant::now(), transfer.received(), processor_time());
    for (watch, socket) in watches.iter_mut().zip([&transfer.client, &transfer.server]) {
        let subject = WatchSubject { sockets: &[(0, socket.as_fd())], target, ..WatchSubject::default() };
        watch.open(&subject).expect("open");
    }
    std::thread::sleep(TRIAL);
    let (bytes, own) = (transfer.received() - before.1, processor_time() - before.2);
    let time = before.0.elapsed();
    let mut seen = Observations::default();
    softirqs.close(&mut seen).expect("close");
    let spent = own.as_nanos() as f64 + seen.get::<CpuUsage>().ksoftirqd_ns.0 as f64;
    for watch in watches {
        watch.close(&mut seen).expect("close");
        attached.extend(
            seen.get::<Option<PathTrace>>()
                .as_ref()
                .map(|trace| trace.attached_ns.0 as f64 / trace.window_ns.0 as f64),
        );
    }
    (bytes as f64 / spent, bytes as f64 / time.as_secs_f64())
}

/// Returns the processor time of all threads of this process, the observers' included; on veth, softirqs run in them
/// or in ksoftirqd.
fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).expect("below a second"))
}

/// Pins the calling thread to one processor. The results vary least if both ends run on the same one.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None::<Pid>, &set).expect("pin");
}
