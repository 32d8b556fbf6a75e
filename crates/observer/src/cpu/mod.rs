//! Measures processor time: the time of each core by class, and the run time of the workload's threads, of their
//! helpers, and of the kernel threads that process packets.
//!
//! # What is measured, and how exactly
//!
//! | figure | source | resolution |
//! |---|---|---|
//! | a thread's run time | its CPU clock (clock_gettime(2)) | exact, ns |
//! | helpers: the process's other threads, including ended ones | its CPU clock, minus the known threads | exact, ns |
//! | processes that this one started | their CPU clocks, RUSAGE_CHILDREN | ns, up to one tick late while they run |
//! | ksoftirqd/N, napi/* | their CPU clocks | ns, up to one tick late while they run |
//! | the threads of landspeed's own link | /proc/TID/schedstat | ns, up to one tick late while they run |
//! | idle | /proc/stat; with NO_HZ the kernel notes when a core goes idle and wakes | exact, shown in USER_HZ (10 ms) |
//! | user, system, irq, softirq, steal | /proc/stat | see below |
//!
//! # Why the kernel's accounting matters
//!
//! *Tick accounting* (CONFIG_TICK_CPU_ACCOUNTING, and CONFIG_VIRT_CPU_ACCOUNTING_GEN on cores that are not
//! `nohz_full`): in /proc/stat, each tick (4 ms at HZ=250) is charged to the task that runs at that moment. A window of
//! 300 ms has only 75 ticks. The run time of a *thread*, in contrast, is exact. It includes the softirqs that run in
//! the thread's context, as all softirqs of veth do; deferred softirqs run in ksoftirqd. So on virtual links the cost
//! is the time of the threads and of ksoftirqd: [`CpuAccounting::Tasks`]. With RPS, RFS or a real NIC the cost is
//! higher, because their softirqs are charged to the task that they interrupt, mostly the idle loop. With RPS, the
//! bytes per CPU-second therefore appeared 1.13 to 1.38 times as high (veth, no TSO, Linux 6.18, HZ=250, four pairs
//! each). The softnet observer reports when packets change cores.
//!
//! *Interrupt accounting* (CONFIG_IRQ_TIME_ACCOUNTING, and a clock that the kernel trusts): hard and soft interrupts
//! are measured and **subtracted** from the interrupted task's run time (`update_rq_clock_task`,
//! kernel/sched/cputime.c). The cost is the time of the threads plus the irq and softirq columns:
//! [`CpuAccounting::TasksAndIrq`]. The time of ksoftirqd is also in the softirq column, but counts only once. The run
//! time of threaded NAPI is added: the kernel charges these threads as system time of their core, not in the irq and
//! softirq columns. The function [`accounting`] chooses the method for a host.

mod accounting;
mod children;
pub(crate) mod clock;
mod helpers;
mod kthreads;
mod link;
pub(crate) mod stat;

#[cfg(doc)]
use landspeed_record::CpuAccounting;
use landspeed_record::units::{CpuNanos, Nanos};
use landspeed_record::{CpuUsage, FigureValue, Observations, WatchTarget};

pub(crate) use accounting::{accounting, interrupt_time_is_apart};
pub use helpers::leave_out_this_thread;

use crate::figures::headlines;
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject, procfile};
use clock::TaskClock;
use helpers::ThreadClaim;
use kthreads::{PacketThreadKind, PacketThreads};
use link::LinkTimes;
use stat::CoreTicks;

pub(crate) static CPU: Observer = Observer {
    name: "cpu",
    about: "processor time of each core by class, of the workload's threads, helpers and children, of ksoftirqd and NAPI \
     threads",
    cannot_see: &[
        "which program the time of a core's classes belongs to: /proc/stat counts the whole machine",
        "classes finer than a tick on a tick-accounting kernel: the tick is charged whole to what it meets",
        "softirqs that run on top of an idle core or of another program (RPS and RFS, a NIC's interrupt), other \
         than in the cores' idle time: the workload's threads are not charged for them",
        "work that kernel threads other than ksoftirqd and napi/* do for the flow (kworkers; io_uring's are counted: \
         they are threads of the process)",
        "children that no process waits for, once they have ended, and those that another process waits for",
        "what the hypervisor and the host below it spend on this machine's packets (vhost, the virtual switch)",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        cpu: CpuUsage => {
            "own processor time", "of the workload, its helpers and its children": Some(cpu.own());
            "kernel's packet threads", "processor time of ksoftirqd and of NAPI's threads, the machine's":
                Some(cpu.ksoftirqd_ns + cpu.napi_ns);
            "stolen", "share of all processors that the hypervisor took": Some(FigureValue::Share(cpu.steal_share()));
        }
    },
    can_run: || procfile::readable(stat::PATH),
    watch: |_| {
        let mut packet_threads = PacketThreads::find();
        windows(move |subject| CpuWindow::start(&mut packet_threads, subject))
    },
};

struct CpuWindow {
    cores: CoreTicks,
    threads: RunTimes,
    own: Option<HelperTimes>,
    softirqs: RunTimes,
    napi: RunTimes,
    link: Option<LinkTimes>,
    at: Nanos,
}

/// The run time of helper threads and child processes when a window opened.
struct HelperTimes {
    helpers: CpuNanos,
    children: CpuNanos,
    _workers: ThreadClaim,
}

impl HelperTimes {
    fn start(workers: &[i32]) -> Result<Self, Error> {
        let (_workers, children) = (ThreadClaim::of(workers), children::ran());
        Ok(HelperTimes { helpers: helpers::ran()?, children, _workers })
    }

    /// Returns the run times of helpers and of children since the window opened.
    fn since(&self) -> Result<(CpuNanos, CpuNanos), Error> {
        Ok((helpers::ran()? - self.helpers, children::ran() - self.children))
    }
}

/// The run time of some threads when a window opened.
struct RunTimes {
    read: Vec<(TaskClock, CpuNanos)>,
    /// The number of threads whose run time could not be read, because they had ended or belong to another process.
    unread: usize,
}

impl RunTimes {
    fn start(clocks: impl Iterator<Item = TaskClock>) -> Self {
        let (mut read, mut unread) = (Vec::new(), 0);
        for clock in clocks {
            match clock.read() {
                Ok(ran) => read.push((clock, ran)),
                Err(_) => unread += 1,
            }
        }
        RunTimes { read, unread }
    }

    /// Returns the total run time since the window opened, and the number of threads for which it is unknown.
    fn since(&self) -> (CpuNanos, usize) {
        let (mut total, mut unknown) = (CpuNanos(0), self.unread);
        for (clock, then) in &self.read {
            match clock.read() {
                Ok(now) => total += CpuNanos(now.0.saturating_sub(then.0)),
                Err(_) => unknown += 1,
            }
        }
        (total, unknown)
    }
}

impl CpuWindow {
    fn start(packet_threads: &mut PacketThreads, subject: &WatchSubject<'_>) -> Result<Self, Error> {
        packet_threads.refresh();
        let cores = stat::read()?;
        let softirqs = RunTimes::start(packet_threads.clocks(PacketThreadKind::Softirq));
        let napi = RunTimes::start(packet_threads.clocks(PacketThreadKind::Napi));
        let is_own = matches!(subject.target, WatchTarget::Workload | WatchTarget::Programs);
        let link = subject.link_threads.map(LinkTimes::start);
        let own = is_own.then(|| HelperTimes::start(subject.threads)).transpose()?;
        let threads = RunTimes::start(subject.threads.iter().map(|tid| TaskClock::thread(*tid)));
        Ok(CpuWindow { cores, softirqs, napi, link, own, threads, at: clock::now() })
    }
}

impl OpenWindow for CpuWindow {
    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        let end = clock::now();
        // The workload's threads are read first, because their time is the most important figure.
        let (workload_ns, threads_lost) = self.threads.since();
        let (helpers_ns, children_ns) =
            self.own.as_ref().map(HelperTimes::since).transpose()?.unwrap_or_default();
        let (ksoftirqd_ns, softirqs_lost) = self.softirqs.since();
        let (napi_ns, napi_lost) = self.napi.since();
        let link_ns = self.link.as_ref().and_then(LinkTimes::since);
        let cores = stat::difference(&self.cores, &stat::read()?);
        seen.put(CpuUsage {
            window_ns: end.saturating_sub(self.at),
            cores,
            workload_ns,
            helpers_ns,
            children_ns,
            ksoftirqd_ns,
            napi_ns,
            link_ns,
        });
        if self.link.is_some() && link_ns.is_none() {
            seen.unseen.push("cpu: run time of landspeed's own link: its threads cannot be read".into());
        }
        for (lost, which) in
            [(threads_lost, "the workload's threads"), (softirqs_lost + napi_lost, "the kernel's threads")]
        {
            if lost > 0 {
                seen.unseen
                    .push(format!("cpu: run time of {lost} of {which}: not running for the whole window"));
            }
        }
        if self.softirqs.read.is_empty() {
            seen.unseen.push(kthreads::NONE.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_thread() -> i32 {
        rustix::thread::gettid().as_raw_nonzero().get()
    }

    fn run(nanos: u64) {
        let clock = TaskClock::thread(own_thread());
        let end = clock.read().unwrap() + CpuNanos(nanos);
        while clock.read().unwrap() < end {}
    }

    #[test]
    fn a_busy_thread_is_seen_to_the_nanosecond_and_within_the_window() {
        let mut watch = CPU.watch("lo");
        watch.open(&WatchSubject { threads: &[own_thread()], ..WatchSubject::default() }).unwrap();
        run(20_000_000);
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        let cpu = seen.get::<CpuUsage>();
        assert!((20_000_000..=cpu.window_ns.0 + 1_000_000).contains(&cpu.workload_ns.0), "{cpu:?}");
        assert!(!cpu.cores.is_empty());
        // A second window starts from zero.
        watch.open(&WatchSubject { threads: &[own_thread()], ..WatchSubject::default() }).unwrap();
        let mut again = Observations::default();
        watch.close(&mut again).unwrap();
        assert!(again.get::<CpuUsage>().workload_ns < CpuNanos(20_000_000), "{again:?}");
    }

    #[test]
    fn a_thread_that_is_not_there_is_reported_not_ignored() {
        let mut watch = CPU.watch("lo");
        watch.open(&WatchSubject { threads: &[own_thread(), 1], ..WatchSubject::default() }).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        assert!(seen.unseen.iter().any(|line| line.contains("1 of the workload's threads")), "{seen:?}");
    }
}
