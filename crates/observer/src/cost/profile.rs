//! Computes the profile of a window from its counted stacks.

use std::collections::{BTreeMap, HashMap};

use landspeed_record::units::Nanos;
use landspeed_record::{ClassSamples, CostClass, CostProfile, ProgramSamples, StackSamples, SymbolSamples};

use super::classify::{NOWHERE, SampleClassification, judge};
use super::event::{PERIOD, SampleEvent};
use super::kallsyms::{Kallsyms, KernelFunction};
use super::rules::RULES;
use super::tally::{CallStack, SampleOwner, StackCounts};
use super::usersyms::UserSymbols;
use crate::procfile;

/// The largest number of stacks in a profile. Over ten seconds at 1 kHz, the most frequent stacks up to this number
/// have at least nine of ten samples.
const MOST_STACKS: usize = 400;

/// The largest number of entries of a profile's list of programs outside the scope. An entry is a pair of a program and
/// a core.
const MOST_PROGRAMS: usize = 64;

/// A note on the cost of sampling for the sampled flows. tests/path/cost.rs measured it in interleaved trials, with the
/// samplers of both hosts of a lab on two shared processors.
const OWN_COST: &str = "sampling costs something itself, in no class: bytes per CPU-second with it over without were \
                        0.93 [0.90, 0.96] in a lab without offloads, 0.98 [0.94, 1.01] with them";

/// The properties of a window other than its samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProfileWindow {
    /// The event that triggered the samples.
    pub(super) event: SampleEvent,
    /// The time for which the window was open.
    pub(super) length: Nanos,
    /// Stolen time as a share of all processor time in the window, from 0 to 1.
    pub(super) steal_share: f64,
    /// True if other hosts of a lab may run on this machine.
    pub(super) shares_machine: bool,
}

/// Returns the profile of a window with the counted stacks `tally`.
pub(super) fn profile(tally: &StackCounts, window: ProfileWindow, kernel: &Kallsyms) -> CostProfile {
    let mut sums = ProfileSums::default();
    let user_symbols = UserSymbols::of(tally.stacks.keys());
    for (stack, samples) in &tally.stacks {
        sums.add(stack, *samples, kernel, &user_symbols);
    }
    let mut notes = notes(tally, window, &sums);
    notes.extend(user_symbols.notes());
    let (stacks, left_out) = most(sums.stacks.into_iter(), MOST_STACKS);
    if left_out > 0 {
        notes.push(format!("stacks: the rarest are left out, {left_out} of {} samples", sums.samples));
    }
    let (unclassified, _) = most(sums.unknown.into_iter(), usize::MAX);
    CostProfile {
        event: window.event.name().into(),
        scope: tally.scope.name().into(),
        window_ns: window.length,
        period_ns: PERIOD,
        samples: sums.samples,
        kernel_samples: sums.kernel,
        lost: tally.lost,
        steal_share: window.steal_share,
        classes: by_class(&sums.classes),
        softirq: if window.shares_machine { Vec::new() } else { by_class(&sums.softirq) },
        others: others(tally, window.shares_machine),
        unclassified: unclassified
            .into_iter()
            .map(|(symbol, samples)| SymbolSamples { symbol, samples })
            .collect(),
        stacks: stacks
            .into_iter()
            .map(|((stack, class), samples)| StackSamples { stack, class, samples })
            .collect(),
        notes,
    }
}

fn by_class(classes: &BTreeMap<CostClass, u64>) -> Vec<ClassSamples> {
    classes.iter().map(|(class, samples)| ClassSamples { class: *class, samples: *samples }).collect()
}

/// Returns the samples of programs outside the scope, by program and core. Leaves out the kernel threads that process
/// packets and, in a trial on a lab, landspeed's own processes, because they are the other ends of the flows.
fn others(tally: &StackCounts, shares_machine: bool) -> Vec<ProgramSamples> {
    let own = procfile::word("/proc/self/comm").unwrap_or_default();
    let is_other = |name: &str| {
        let carries = name.starts_with("ksoftirqd/") || name.starts_with("napi/");
        !(carries || shares_machine && tally.scope.is_own() && name == own)
    };
    let of = |((core, pid), samples): (&(u32, i32), &u64)| {
        let name = tally.names.get(pid).filter(|name| is_other(name))?;
        let (core, pid) = (*core, pid.cast_unsigned());
        Some(ProgramSamples { name: name.clone(), pid, core, samples: *samples })
    };
    let mut programs: Vec<ProgramSamples> = tally.others.iter().filter_map(of).collect();
    programs.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| (a.core, a.pid).cmp(&(b.core, b.pid))));
    programs.truncate(MOST_PROGRAMS);
    programs
}

#[derive(Debug, Default)]
struct ProfileSums {
    samples: u64,
    kernel: u64,
    classes: BTreeMap<CostClass, u64>,
    /// Samples of network softirqs outside the scope, by class.
    softirq: BTreeMap<CostClass, u64>,
    unknown: HashMap<String, u64>,
    stacks: HashMap<(String, CostClass), u64>,
    /// Samples that were taken in a function that turned interrupts on again, and were attributed to its caller.
    moved: u64,
    /// Samples outside the scope in ksoftirqd.
    ksoftirqd: u64,
    /// Samples outside the scope of network softirqs that ran on top of other tasks.
    elsewhere: u64,
}

impl ProfileSums {
    fn add(&mut self, stack: &CallStack, samples: u64, kernel: &Kallsyms, user_symbols: &UserSymbols) {
        let frames = frames(&stack.kernel, kernel);
        if stack.owner == SampleOwner::Others {
            return self.others(&frames, samples);
        }
        let class = match (stack.owner, frames.is_empty()) {
            (SampleOwner::Own, _) => CostClass::Observer,
            (_, true) => CostClass::Application,
            _ => match judge(&RULES, &frames) {
                SampleClassification::Idle => return,
                SampleClassification::Class { class, moved } => {
                    self.moved += if moved { samples } else { 0 };
                    class
                }
                SampleClassification::Unknown(symbol) => {
                    *self.unknown.entry(symbol.to_owned()).or_default() += samples;
                    CostClass::Other
                }
            },
        };
        self.samples += samples;
        self.kernel += if frames.is_empty() { 0 } else { samples };
        *self.classes.entry(class).or_default() += samples;
        let folded = folded(&frames, user_symbols.names(stack));
        *self.stacks.entry((folded, class)).or_default() += samples;
    }

    fn others(&mut self, frames: &[Option<KernelFunction<'_>>], samples: u64) {
        let inside = |name: &str| frames.iter().flatten().any(|function| function.name == name);
        let packets = inside("net_rx_action") || inside("net_tx_action");
        if inside("run_ksoftirqd") {
            self.ksoftirqd += samples;
        } else if packets {
            self.elsewhere += samples;
        }
        if packets && let SampleClassification::Class { class, .. } = judge(&RULES, frames) {
            *self.softirq.entry(class).or_default() += samples;
        }
    }
}

/// Returns the functions at the kernel addresses of a stack. All addresses except the innermost are return addresses. A
/// return address may be one byte past the end of the calling function, so one is subtracted.
fn frames<'a>(addresses: &[u64], kernel: &'a Kallsyms) -> Vec<Option<KernelFunction<'a>>> {
    let at = |(depth, address): (usize, &u64)| kernel.function(address.saturating_sub(u64::from(depth > 0)));
    addresses.iter().enumerate().map(at).collect()
}

/// Returns a stack in the folded form of flame graphs: function names joined by ";", outermost function first. Kernel
/// functions have the suffix "_[k]".
fn folded<'a>(kernel: &[Option<KernelFunction<'_>>], user: impl Iterator<Item = &'a str>) -> String {
    let kernel =
        kernel.iter().map(|frame| format!("{}_[k]", frame.map_or(NOWHERE, |function| function.name)));
    let mut frames: Vec<_> = kernel.chain(user.map(str::to_owned)).collect();
    frames.reverse();
    frames.join(";")
}

/// Returns the `most` rows with the most samples, in descending order of samples and then by key. Also returns the
/// number of samples in the other rows.
fn most<K: Ord>(rows: impl Iterator<Item = (K, u64)>, most: usize) -> (Vec<(K, u64)>, u64) {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest = rows.iter().skip(most).map(|(_, samples)| samples).sum();
    rows.truncate(most);
    (rows, rest)
}

fn notes(tally: &StackCounts, window: ProfileWindow, sums: &ProfileSums) -> Vec<String> {
    let mut notes = Vec::new();
    if window.event == SampleEvent::CpuClock {
        notes.push(format!(
            "cpu-clock: a timer samples, which waits while interrupts are off; what ran then is sampled where they are \
             turned on again and counted for the caller, who had them off: {} of {} samples",
            sums.moved, sums.samples
        ));
    }
    if window.shares_machine && sums.ksoftirqd + sums.elsewhere > 0 {
        notes.push(format!(
            "scope: network softirqs outside of the watched threads are not counted, as whose they are is not \
             known: {} samples in ksoftirqd, {} on top of other tasks",
            sums.ksoftirqd, sums.elsewhere
        ));
    }
    notes.push(OWN_COST.into());
    if tally.throttled > 0 {
        notes.push(format!(
            "the kernel held sampling back {} times (kernel.perf_cpu_time_max_percent)",
            tally.throttled
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::tally::{KERNEL, ProcessorSample, SampleScope, USER};
    use super::*;

    const SYMBOLS: &str = "ffff0000 T tcp_sendmsg\nffff1000 T _raw_spin_unlock_irqrestore\n\
        ffff2000 T no_such_function\nffff3000 T default_idle\nffff4000 T run_ksoftirqd\n\
        ffff5000 T net_rx_action\nffff6000 T tcp_ack\nffff7000 T the_end\n";
    /// Returns the counts of `samples`, each of which is a thread id and a chain of addresses.
    fn tally(scope: SampleScope, samples: &[(i32, &[u64])]) -> StackCounts {
        let mut tally = StackCounts::new(scope, 99);
        for (tid, chain) in samples {
            tally.sample(&ProcessorSample { pid: 0, tid: *tid, core: 0, chain });
        }
        tally
    }

    fn in_window(shares_machine: bool) -> ProfileWindow {
        let (event, length) = (SampleEvent::CpuClock, Nanos::secs(1));
        ProfileWindow { event, length, steal_share: 0.25, shares_machine }
    }

    fn seen(scope: SampleScope, samples: &[(i32, &[u64])]) -> CostProfile {
        let window = in_window(true);
        profile(&tally(scope, samples), window, &Kallsyms::parse(SYMBOLS.as_bytes()).unwrap())
    }

    fn samples_of(profile: &CostProfile, class: CostClass) -> u64 {
        profile.classes.iter().filter(|row| row.class == class).map(|row| row.samples).sum()
    }

    #[test]
    fn every_busy_sample_has_one_class_and_the_idle_loop_none() {
        let seen = seen(
            SampleScope::Machine,
            &[
                (7, &[KERNEL, 0xffff_0010, USER, 0x10]),
                (7, &[KERNEL, 0xffff_1010, 0xffff_6020, USER, 0x10]),
                (7, &[KERNEL, 0xffff_2010, 0xffff_0020]),
                (7, &[USER, 0x10]),
                (0, &[KERNEL, 0xffff_3010]),
                (99, &[KERNEL, 0xffff_0010]),
            ],
        );
        assert_eq!((seen.samples, seen.kernel_samples, seen.steal_share), (5, 4, 0.25));
        assert_eq!(seen.classes.iter().map(|row| row.samples).sum::<u64>(), 5);
        assert_eq!(samples_of(&seen, CostClass::Tcp), 2);
        assert_eq!(samples_of(&seen, CostClass::Application), 1);
        assert_eq!(samples_of(&seen, CostClass::Observer), 1, "the reader's own");
        assert_eq!(seen.unclassified, [SymbolSamples { symbol: "no_such_function".into(), samples: 1 }]);
        assert!(seen.notes[0].contains("1 of 5 samples"), "{:?}", seen.notes);
    }

    #[test]
    fn stacks_are_folded_from_the_outermost() {
        let seen = seen(SampleScope::Machine, &[(7, &[KERNEL, 0xffff_6010, 0xffff_1000, USER, 0x10])]);
        // If a return address is the first byte of a function, it belongs to the preceding function, whose last
        // instruction is the call.
        let stack = "[unknown];tcp_sendmsg_[k];tcp_ack_[k]".to_owned();
        assert_eq!(seen.stacks, [StackSamples { stack, class: CostClass::Tcp, samples: 1 }]);
    }

    #[test]
    fn softirqs_outside_of_the_workload_are_noted_not_counted() {
        let other: &[u64] = &[KERNEL, 0xffff_6010, 0xffff_5010];
        let carried: &[u64] = &[KERNEL, 0xffff_5010, 0xffff_4010];
        let scope = SampleScope::Tasks(std::collections::BTreeSet::from([7]));
        let seen = seen(scope, &[(7, &[KERNEL, 0xffff_0010]), (8, other), (8, other), (15, carried)]);
        assert_eq!((seen.samples, seen.scope.as_str()), (1, "tasks"));
        let note = seen.notes.iter().find(|note| note.starts_with("scope")).unwrap();
        assert!(note.contains("1 samples in ksoftirqd, 2 on top of other tasks"), "{note}");
    }

    #[test]
    fn softirqs_and_programs_outside_of_the_flow_are_kept_apart() {
        let mut tally = StackCounts::new(SampleScope::Processes([7].into()), 99);
        let carried: &[u64] = &[KERNEL, 0xffff_6010, 0xffff_5010];
        let own = std::process::id().cast_signed();
        for (pid, core, chain) in
            [(7, 0, carried), (0, 1, carried), (own, 1, &[USER, 0x10]), (own, 1, carried)]
        {
            tally.sample(&ProcessorSample { pid, tid: pid, core, chain });
        }
        let kernel = Kallsyms::parse(SYMBOLS.as_bytes()).unwrap();
        let seen = profile(&tally, in_window(false), &kernel);
        assert_eq!(seen.samples, 1, "those of process 7");
        assert_eq!(seen.softirq, [ClassSamples { class: CostClass::Tcp, samples: 2 }]);
        let [other] = seen.others.as_slice() else { panic!("{:?}", seen.others) };
        assert_eq!((other.pid, other.core, other.samples), (own.cast_unsigned(), 1, 2));
        assert!(!other.name.is_empty() && !seen.notes.iter().any(|note| note.starts_with("scope")));
    }

    #[test]
    fn the_rarest_are_left_out_aloud() {
        let (kept, rest) = most([("a", 1), ("b", 5), ("c", 1), ("d", 2)].into_iter(), 2);
        assert_eq!((kept, rest), (vec![("b", 5), ("d", 2)], 2));
    }
}
