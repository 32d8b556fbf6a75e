//! Counts the samples of a window by stack.

use std::collections::{BTreeSet, HashMap};

use perf_event::data::Record;

use crate::procfile;

/// The largest number of addresses in all stacks together. They take 64 MiB. The limit prevents that a window of
/// minutes on a hundred busy processors exhausts the host's memory. Samples that do not fit count as lost.
const MOST_ADDRESSES: usize = 8 << 20;

/// The largest number of processes outside the scope whose samples are counted by process.
const MOST_NAMES: usize = 4096;

/// The lowest marker in a call chain (PERF_CONTEXT_MAX). All lower values are addresses.
const FIRST_MARKER: u64 = -4095_i64 as u64;
pub(super) const KERNEL: u64 = -128_i64 as u64;
pub(super) const USER: u64 = -512_i64 as u64;

/// A sample: the thread and the call stack that ran on one processor.
pub(super) struct ProcessorSample<'a> {
    /// The process id in the PID namespace of landspeed; 0 for the idle task and for processes outside this namespace.
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) core: u32,
    /// The call chain: addresses from the innermost function outwards, after markers (`PERF_CONTEXT_*`) of kernel and
    /// user code.
    pub(super) chain: &'a [u64],
}

impl<'a> ProcessorSample<'a> {
    /// Returns the addresses that follow `marker`, innermost first. The result is empty for [`KERNEL`] if user code
    /// ran, and for [`USER`] in kernel threads.
    fn part(&self, marker: u64) -> &'a [u64] {
        let Some(at) = self.chain.iter().position(|address| *address == marker) else { return &[] };
        let after = &self.chain[at + 1..];
        let end = after.iter().position(|address| *address >= FIRST_MARKER).unwrap_or(after.len());
        &after[..end]
    }
}

/// The owner of a sample's processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SampleOwner {
    /// A thread within the scope; the sample counts.
    Watched,
    /// The thread that reads the samples, if the scope is the whole machine.
    Own,
    /// A thread outside the scope. The stack is kept only because it may be that of a softirq.
    Others,
}

/// A stack: its owner, and its kernel and user addresses, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CallStack {
    pub(super) owner: SampleOwner,
    /// The process that the user addresses belong to.
    pub(super) pid: i32,
    pub(super) kernel: Box<[u64]>,
    pub(super) user: Box<[u64]>,
}

/// A BPF program or trampoline that was loaded or unloaded in the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadedCode {
    /// The address of the code's first byte.
    pub(super) start: u64,
    pub(super) length: u32,
    pub(super) name: String,
}

/// The threads whose samples count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SampleScope {
    /// Only these threads.
    Tasks(BTreeSet<i32>),
    /// All threads of these processes, including threads that are started in the window.
    Processes(BTreeSet<i32>),
    Machine,
}

impl SampleScope {
    /// Returns true if only the samples of the workload's own threads count, and not those of whole processes or of the
    /// machine.
    pub(super) fn is_own(&self) -> bool {
        matches!(self, SampleScope::Tasks(_))
    }

    /// Returns the name that records use.
    pub(super) fn name(&self) -> &'static str {
        match self {
            SampleScope::Tasks(_) => "tasks",
            SampleScope::Processes(_) => "process",
            SampleScope::Machine => "machine",
        }
    }
}

/// The counts of all samples of a window.
#[derive(Debug)]
pub(super) struct StackCounts {
    /// The threads whose samples count.
    pub(super) scope: SampleScope,
    /// The number of samples by stack.
    pub(super) stacks: HashMap<CallStack, u64>,
    /// The number of samples that the kernel lost or that did not fit into the limit [`MOST_ADDRESSES`].
    pub(super) lost: u64,
    /// The number of times that the kernel throttled sampling.
    pub(super) throttled: u64,
    /// The BPF programs and trampolines that were loaded or unloaded in the window.
    pub(super) loaded: Vec<LoadedCode>,
    /// The number of samples outside the scope by core and process id, without the idle task.
    pub(super) others: HashMap<(u32, i32), u64>,
    /// The names of the processes outside the scope, each read at its first sample.
    pub(super) names: HashMap<i32, String>,
    reader: i32,
    addresses: usize,
}

impl StackCounts {
    /// Returns counts of zero. `reader` is the id of the thread that will read the samples.
    pub(super) fn new(scope: SampleScope, reader: i32) -> Self {
        StackCounts {
            scope,
            stacks: HashMap::new(),
            lost: 0,
            throttled: 0,
            loaded: Vec::new(),
            others: HashMap::new(),
            names: HashMap::new(),
            reader,
            addresses: 0,
        }
    }

    pub(super) fn add(&mut self, record: Record<'_>) {
        match record {
            Record::Sample(sample) => self.sample(&ProcessorSample {
                pid: sample.pid().unwrap_or(0).cast_signed(),
                tid: sample.tid().unwrap_or(0).cast_signed(),
                core: sample.cpu().unwrap_or(0),
                chain: sample.callchain().unwrap_or_default(),
            }),
            Record::Lost(of) => self.lost += of.lost,
            Record::LostSamples(of) => self.lost += of.lost,
            Record::Throttle(_) => self.throttled += 1,
            // A BPF program or trampoline was loaded or unloaded. Its name has the form
            // "bpf_prog_6deef7357e7b4530_name".
            Record::KSymbol(code) => {
                let name = code.name.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                self.loaded.push(LoadedCode { start: code.addr, length: code.len, name });
            }
            _ => {}
        }
    }

    pub(super) fn sample(&mut self, sample: &ProcessorSample<'_>) {
        let owner = match &self.scope {
            SampleScope::Tasks(tids) if tids.contains(&sample.tid) => SampleOwner::Watched,
            SampleScope::Processes(pids) if pids.contains(&sample.pid) => SampleOwner::Watched,
            SampleScope::Tasks(_) | SampleScope::Processes(_) => SampleOwner::Others,
            SampleScope::Machine if sample.tid == self.reader => SampleOwner::Own,
            SampleScope::Machine => SampleOwner::Watched,
        };
        if owner == SampleOwner::Others && sample.pid > 0 {
            self.other(sample);
        }
        // Of samples outside the scope, only the kernel addresses are kept.
        let (user, pid) =
            if owner == SampleOwner::Others { (&[][..], 0) } else { (sample.part(USER), sample.pid) };
        if owner == SampleOwner::Others && sample.part(KERNEL).is_empty() {
            return;
        }
        let length = sample.part(KERNEL).len() + user.len();
        if self.addresses + length > MOST_ADDRESSES {
            self.lost += 1;
            return;
        }
        let stack = CallStack { owner, pid, kernel: sample.part(KERNEL).into(), user: user.into() };
        let samples = self.stacks.entry(stack).or_insert_with(|| {
            self.addresses += length;
            0
        });
        *samples += 1;
    }

    fn other(&mut self, sample: &ProcessorSample<'_>) {
        if self.names.len() < MOST_NAMES {
            let name = || procfile::word(format!("/proc/{}/comm", sample.pid)).unwrap_or_default();
            self.names.entry(sample.pid).or_insert_with(name);
        }
        if self.names.contains_key(&sample.pid) {
            *self.others.entry((sample.core, sample.pid)).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a sample of thread `tid` of process 1.
    fn sample_of(tid: i32, chain: &[u64]) -> ProcessorSample<'_> {
        ProcessorSample { pid: 1, tid, core: 0, chain }
    }

    #[test]
    fn a_sample_is_split_at_its_markers() {
        let both = sample_of(9, &[KERNEL, 0xf001, 0xf002, USER, 0x401, 0x402]);
        assert_eq!((both.part(KERNEL), both.part(USER)), (&[0xf001, 0xf002][..], &[0x401, 0x402][..]));
        let user = sample_of(9, &[USER, 0x401]);
        assert_eq!((user.part(KERNEL), user.part(USER)), (&[][..], &[0x401][..]));
    }

    #[test]
    fn only_the_scopes_threads_count_and_equal_stacks_are_one() {
        let mut tally = StackCounts::new(SampleScope::Tasks(BTreeSet::from([7])), 8);
        let chain = [KERNEL, 1, 2, USER, 3];
        for tid in [7, 7, 8, 9] {
            tally.sample(&sample_of(tid, &chain));
        }
        tally.sample(&sample_of(9, &[USER, 3]));
        let count =
            |owner| -> Vec<_> { tally.stacks.iter().filter(|(stack, _)| stack.owner == owner).collect() };
        let watched =
            CallStack { owner: SampleOwner::Watched, pid: 1, kernel: [1, 2].into(), user: [3].into() };
        assert_eq!(count(SampleOwner::Watched), [(&watched, &2)]);
        let others = CallStack { owner: SampleOwner::Others, pid: 0, kernel: [1, 2].into(), user: [].into() };
        assert_eq!(count(SampleOwner::Others), [(&others, &2)], "their user code is left out");
    }

    #[test]
    fn all_threads_of_a_process_count_and_no_other() {
        let mut tally = StackCounts::new(SampleScope::Processes([1].into()), 8);
        for tid in [7, 9] {
            tally.sample(&sample_of(tid, &[KERNEL, 1]));
        }
        assert!(tally.stacks.keys().all(|stack| stack.owner == SampleOwner::Watched));
        let mut other = StackCounts::new(SampleScope::Processes([2].into()), 8);
        other.sample(&sample_of(7, &[KERNEL, 1]));
        assert!(other.stacks.keys().all(|stack| stack.owner == SampleOwner::Others));
        assert_eq!((other.others[&(0, 1)], other.names.len()), (1, 1), "process 1 is named");
    }

    #[test]
    fn the_whole_machine_counts_and_the_readers_own_time_is_marked() {
        let mut tally = StackCounts::new(SampleScope::Machine, 8);
        for tid in [7, 8] {
            tally.sample(&sample_of(tid, &[USER, 3]));
        }
        let mut owner: Vec<_> = tally.stacks.keys().map(|stack| stack.owner == SampleOwner::Own).collect();
        owner.sort_unstable();
        assert_eq!(owner, [false, true]);
    }

    #[test]
    fn memory_is_bounded_and_lost_samples_are_reported() {
        let mut tally = StackCounts::new(SampleScope::Machine, 8);
        tally.addresses = MOST_ADDRESSES;
        tally.sample(&sample_of(7, &[KERNEL, 1]));
        assert_eq!((tally.lost, tally.stacks.len()), (1, 0));
    }
}
