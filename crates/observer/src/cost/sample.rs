//! Records of the ring, taken apart: "PERF_RECORD_*" of perf_event_open(2).

/// A record that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// What a processor was doing.
    Sample(Sample<'a>),
    /// Records that the kernel had no room for.
    Lost(u64),
    /// The kernel held sampling back, as it took too much of the processor's time.
    Throttled,
    /// A BPF program or trampoline came or went.
    Symbol {
        /// Its first byte.
        start: u64,
        /// Its length in bytes.
        length: u32,
        /// "bpf_prog_6deef7357e7b4530_name".
        name: &'a [u64],
    },
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    /// Process, in this process's PID namespace; 0 for the idle task and for processes outside.
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// Addresses from the innermost outwards, with markers (`PERF_CONTEXT_*`) between them.
    chain: &'a [u64],
}

/// Addresses from here on are markers (PERF_CONTEXT_MAX).
const FIRST_MARKER: u64 = -4095_i64 as u64;
pub(super) const KERNEL: u64 = -128_i64 as u64;
pub(super) const USER: u64 = -512_i64 as u64;

const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const KSYMBOL: u32 = 17;

impl<'a> Record<'a> {
    /// The record in `words`, whose first is the header.
    pub(super) fn parse(words: &'a [u64]) -> Self {
        let Some((header, body)) = words.split_first() else { return Record::Other };
        match (halves(*header).0, body) {
            (SAMPLE, [ids, count, chain @ ..]) => {
                let (pid, tid) = halves(*ids);
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(chain.len());
                Record::Sample(Sample {
                    pid: pid.cast_signed(),
                    tid: tid.cast_signed(),
                    chain: &chain[..count],
                })
            }
            (LOST, [_, lost, ..]) | (LOST_SAMPLES, [lost, ..]) => Record::Lost(*lost),
            (THROTTLE, _) => Record::Throttled,
            (KSYMBOL, [start, length, name @ ..]) => {
                Record::Symbol { start: *start, length: halves(*length).0, name }
            }
            _ => Record::Other,
        }
    }
}

impl<'a> Sample<'a> {
    /// Kernel addresses, innermost first; empty where user code ran.
    pub(super) fn kernel(&self) -> &'a [u64] {
        self.part(KERNEL)
    }

    /// User addresses, innermost first; empty for kernel threads.
    pub(super) fn user(&self) -> &'a [u64] {
        self.part(USER)
    }

    fn part(&self, marker: u64) -> &'a [u64] {
        let Some(at) = self.chain.iter().position(|address| *address == marker) else { return &[] };
        let after = &self.chain[at + 1..];
        let end = after.iter().position(|address| *address >= FIRST_MARKER).unwrap_or(after.len());
        &after[..end]
    }
}

/// The text in `words`, which a NUL ends.
pub(super) fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The two 32-bit fields that share a word, in memory's order.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The record of a sample of thread `tid` of process 1.
    pub(in super::super) fn sample_of(tid: u32, chain: &[u64]) -> Vec<u64> {
        [&[word(SAMPLE, 0), word(1, tid), chain.len() as u64], chain].concat()
    }

    fn word(first: u32, second: u32) -> u64 {
        let (first, second) = (first.to_ne_bytes(), second.to_ne_bytes());
        u64::from_ne_bytes([first, second].concat().try_into().unwrap())
    }

    #[test]
    fn a_sample_is_split_at_its_markers() {
        let words = [word(SAMPLE, 0), word(7, 9), 6, KERNEL, 0xf001, 0xf002, USER, 0x401, 0x402];
        let Record::Sample(sample) = Record::parse(&words) else { panic!() };
        assert_eq!((sample.pid, sample.tid), (7, 9));
        assert_eq!(sample.kernel(), [0xf001, 0xf002]);
        assert_eq!(sample.user(), [0x401, 0x402]);
    }

    #[test]
    fn user_code_and_kernel_threads_have_one_part() {
        let user = [word(SAMPLE, 0), word(7, 9), 2, USER, 0x401];
        let Record::Sample(sample) = Record::parse(&user) else { panic!() };
        assert_eq!((sample.kernel(), sample.user()), (&[][..], &[0x401][..]));
        let kernel = [word(SAMPLE, 0), word(0, 0), 2, KERNEL, 0xf001];
        let Record::Sample(sample) = Record::parse(&kernel) else { panic!() };
        assert_eq!((sample.kernel(), sample.user()), (&[0xf001][..], &[][..]));
    }

    #[test]
    fn losses_and_programs_are_told() {
        assert_eq!(Record::parse(&[word(LOST, 0), 77, 12]), Record::Lost(12));
        assert_eq!(Record::parse(&[word(LOST_SAMPLES, 0), 12]), Record::Lost(12));
        assert_eq!(Record::parse(&[word(THROTTLE, 0), 1, 2, 3]), Record::Throttled);
        let name = u64::from_ne_bytes(*b"bpf_x\0\0\0");
        let words = [word(KSYMBOL, 0), 0xf000, word(64, 0), name];
        let Record::Symbol { start, length, name } = Record::parse(&words) else { panic!() };
        assert_eq!((start, length, text(name).as_str()), (0xf000, 64, "bpf_x"));
    }

    #[test]
    fn short_and_lying_records_are_survived() {
        assert_eq!(Record::parse(&[]), Record::Other);
        assert_eq!(Record::parse(&[word(SAMPLE, 0)]), Record::Other);
        assert_eq!(Record::parse(&[word(LOST, 0), 1]), Record::Other);
        let lying = [word(SAMPLE, 0), 0, u64::MAX, KERNEL, 5];
        let Record::Sample(sample) = Record::parse(&lying) else { panic!() };
        assert_eq!(sample.kernel(), [5]);
    }
}
