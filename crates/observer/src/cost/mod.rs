//! Measures processor time by layer of the network stack, from about a thousand samples per second of each busy
//! processor.
//!
//! # How
//!
//! The kernel samples every processor (perf_event_open(2)), triggered by the processor's cycle counter if it can be
//! used, otherwise by the software clock. Each sample is a call stack. A thread reads the samples whenever a ring
//! buffer is half full, and counts equal stacks. After the window has closed, kernel addresses are looked up in
//! /proc/kallsyms and user addresses in the programs' symbol tables. The rules in `classes.txt` then assign one class
//! to each sample.
//!
//! # Whose time
//!
//! In a trial, only the samples of the workload's threads count (scope "tasks"). For other programs' flows, the samples
//! of the processes that the target names or that own the flows count ("process"). If no process is known, all samples
//! except those of the idle loop count ("machine").
//!
//! A softirq that runs on top of a counted thread is part of the thread's stack and counts. On virtual links nearly all
//! softirqs run there. Samples of other network softirqs, also in ksoftirqd, are counted separately by class. They
//! belong to all flows of the machine, so a flow is charged for a part of them, in proportion to its share of the
//! links' bytes (`share_of_links` in `analysis::fit`). In a lab, whose hosts are namespaces of one machine, and over
//! loopback, these softirqs may process packets of either host. In these cases no flow is charged for them, and a note
//! gives their number. All other samples are listed by program and core.
//!
//! # What the timer cannot see
//!
//! The software clock is a timer interrupt, which is delayed while interrupts are off. Work in this time is sampled
//! where interrupts are turned on again, mostly in `_raw_spin_unlock_irqrestore` and at the end of a context switch.
//! The rules name these functions and attribute their samples to the caller, which had turned interrupts off. A note
//! gives the number of these samples. Stolen time is not sampled; it is a separate figure.

mod ability;
mod classify;
mod event;
mod kallsyms;
mod profile;
mod rules;
mod sampler;
mod tally;
mod usersyms;

use std::collections::BTreeSet;
use std::time::Instant;

use landspeed_record::{CostProfile, CpuUsage, Observations, WatchTarget};

use crate::cpu::stat::{self, CoreTicks};
use crate::figures::headlines;
use crate::sockets::processes_of;
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject, host};
use event::SampleEvent;
use kallsyms::Kallsyms;
use profile::ProfileWindow;
use sampler::CostSampler;
use tally::SampleScope;

fn largest(cost: &CostProfile) -> String {
    let largest = cost.classes.iter().max_by_key(|class| class.samples);
    let share = |samples: u64| samples as f64 / cost.samples.max(1) as f64 * 100.0;
    largest.map_or_else(String::new, |class| format!("{}, {:.0} %", class.class.name(), share(class.samples)))
}

/// The observer "cost", which samples the processor time by layer.
pub static COST: Observer = Observer {
    name: "cost",
    about: "processor time by layer: copies, checksums, TCP, IP, driver, softirq, memory, locks, scheduling and others",
    cannot_see: &[
        "the order of things, and anything rarer than a sample: about one in a thousand of a second's time",
        "who caused work done with interrupts off, finer than by its caller, where only a timer can sample",
        "whose packets ksoftirqd and softirqs on top of other tasks carried: a flow is charged with its share of the \
         links' bytes, and in a lab a note counts them",
        "inlined functions: they are their callers; callers of user code built without frame pointers",
        "its own cost, which is in no class: a sample is taken with interrupts off, some ten microseconds a \
         thousand times a second and host",
        "time that the hypervisor gave to other guests: steal_share, from /proc/stat, says how much",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        cost: Option<CostProfile> => {
            "samples", "of processors that were busy": cost.as_ref().map(|cost| cost.samples);
            "largest layer", "with its share of the samples": cost.as_ref().map(largest);
            "samples lost", "the kernel could not deliver them": cost.as_ref().map(|cost| cost.lost);
        }
    },
    can_run: ability::can_sample,
    watch: |link| {
        let event = SampleEvent::probe(0);
        // Other hosts of the experiment may run on this machine.
        let shares_machine = link == "lo" || !host::probe().initial_netns;
        windows(move |subject| {
            let cores = stat::read()?;
            let sampler = CostSampler::start(event, scope(subject))?;
            Ok(CostWindow { event, cores, sampler, shares_machine, opened: Instant::now() })
        })
    },
};

struct CostWindow {
    event: SampleEvent,
    /// The ticks of each core in /proc/stat when the window opened. They are used to compute the stolen time.
    cores: CoreTicks,
    sampler: CostSampler,
    /// True if other hosts of a lab may run on this machine.
    shares_machine: bool,
    opened: Instant,
}

/// Returns the threads or processes whose samples count, or the whole machine if none is known.
fn scope(subject: &WatchSubject<'_>) -> SampleScope {
    let processes = match subject.target {
        WatchTarget::Workload if !subject.threads.is_empty() => {
            return SampleScope::Tasks(BTreeSet::from_iter(subject.threads.iter().copied()));
        }
        WatchTarget::Workload | WatchTarget::Programs => BTreeSet::new(),
        _ => processes_of(subject).unwrap_or_default(),
    };
    match processes.is_empty() {
        true => SampleScope::Machine,
        false => SampleScope::Processes(processes.into_iter().map(u32::cast_signed).collect()),
    }
}

impl OpenWindow for CostWindow {
    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        self.sampler.pause()?;
        let length = self.opened.elapsed().into();
        // Sampling has ended, so the following steps may take long.
        let cores = stat::difference(&self.cores, &stat::read()?);
        let steal_share = CpuUsage { cores, ..CpuUsage::default() }.steal_share();
        let tally = self.sampler.finish()?;
        let kernel = Kallsyms::read(&tally.loaded)?;
        let shares_machine = self.shares_machine;
        let window = ProfileWindow { event: self.event, length, steal_share, shares_machine };
        seen.put(Some(profile::profile(&tally, window, &kernel)));
        Ok(())
    }
}
