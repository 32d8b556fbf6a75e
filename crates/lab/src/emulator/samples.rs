//! Stores samples of the queue's length over time, without a lock. The thread that carries frames has real-time
//! priority, and must never wait for a reader.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

use landspeed_record::QueueSample;
use landspeed_record::units::{Bytes, Nanos};

/// The time between two samples.
pub(super) const EVERY: Nanos = Nanos::millis(100);
/// The number of samples that are kept. They cover 27 minutes of a link that is never idle. Runs of cottrell-2005 take
/// 16 minutes.
const SLOTS: usize = 16_384;

/// The state of the queue at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct QueueReading {
    /// The time on the monotonic clock.
    pub(super) at: Nanos,
    /// Number of bytes that wait.
    pub(super) waiting: u64,
    /// The largest number of bytes that waited since the previous sample.
    pub(super) most: u64,
    /// Number of segments that a full queue has dropped since the link was created.
    pub(super) drops: u64,
}

impl QueueReading {
    /// Returns the sample for the record of a run that began at `start`. `drops` is the number of segments that had
    /// been dropped by then.
    pub(super) fn since(&self, start: Nanos, drops: u64) -> QueueSample {
        QueueSample {
            at_ns: self.at - start,
            waiting_bytes: Bytes(self.waiting),
            drops: self.drops.saturating_sub(drops),
        }
    }
}

/// The most recent samples of one direction. One thread writes them, and any thread may read them.
#[derive(Debug)]
pub(super) struct QueueHistory {
    slots: Box<[[AtomicU64; 4]]>,
    /// The number of samples that the writer has begun to write; `written` is the number of finished ones.
    begun: AtomicU64,
    written: AtomicU64,
}

impl Default for QueueHistory {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| Default::default()).collect();
        QueueHistory { slots, begun: AtomicU64::new(0), written: AtomicU64::new(0) }
    }
}

impl QueueHistory {
    /// Adds a sample. If the ring is full, the new sample replaces the oldest one.
    pub(super) fn push(&self, sample: QueueReading) {
        let number = self.written.load(Relaxed);
        self.begun.store(number + 1, Relaxed);
        // A reader that sees any word of the new sample also sees the new value of `begun`.
        fence(Release);
        let words = [sample.at.0, sample.waiting, sample.most, sample.drops];
        for (slot, word) in self.slot(number).iter().zip(words) {
            slot.store(word, Relaxed);
        }
        self.written.store(number + 1, Release);
    }

    /// Returns the number of samples that were ever added.
    pub(super) fn count(&self) -> u64 {
        self.written.load(Acquire)
    }

    /// Returns the samples from number `first` on that are still stored. The first sample that was ever added has
    /// number 0.
    pub(super) fn from(&self, first: u64) -> Vec<QueueReading> {
        let end = self.count();
        let start = first.max(end.saturating_sub(SLOTS as u64));
        let found: Vec<(u64, QueueReading)> =
            (start..end).map(|number| (number, self.read(number))).collect();
        fence(Acquire);
        let begun = self.begun.load(Relaxed);
        // Drops the samples that may have been overwritten while they were read.
        let whole = found.into_iter().filter(|(number, _)| number + SLOTS as u64 >= begun);
        whole.map(|(_, sample)| sample).collect()
    }

    fn read(&self, number: u64) -> QueueReading {
        let [at, waiting, most, drops] = self.slot(number).each_ref().map(|word| word.load(Relaxed));
        QueueReading { at: Nanos(at), waiting, most, drops }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; 4] {
        &self.slots[(number % SLOTS as u64) as usize]
    }
}

/// Takes the due samples of the queue whenever a frame arrives. Between two frames the queue only drains, so its length
/// at any time between them can be computed afterwards.
#[derive(Debug, Default)]
pub(super) struct QueueSampler {
    next: Nanos,
    /// The largest number of bytes that waited since the last sample.
    most: u64,
}

impl QueueSampler {
    /// Adds the samples that are due by `now`, the arrival time of a frame that is not admitted yet. `waiting` returns
    /// the bytes that wait at a given time.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        samples: &QueueHistory,
        drops: u64,
        mut waiting: impl FnMut(Nanos) -> u64,
    ) {
        let last = Nanos(now.0 - now.0 % EVERY.0);
        if self.next == Nanos(0) {
            self.next = last + EVERY;
        }
        while self.next <= now {
            let found = waiting(self.next);
            samples.push(QueueReading { at: self.next, waiting: found, most: self.most.max(found), drops });
            self.most = found;
            // An empty queue stays empty until `now`, so one sample at the beginning and one at the end of this time
            // are enough.
            self.next = if found == 0 { last.max(self.next + EVERY) } else { self.next + EVERY };
        }
    }

    /// Records the bytes that wait after a frame was admitted. Returns the largest number since the last sample.
    pub(super) fn saw(&mut self, waiting: u64) -> u64 {
        self.most = self.most.max(waiting);
        self.most
    }

    /// Begins a run, which resets the largest number of bytes.
    pub(super) fn restart(&mut self) {
        self.most = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64) -> QueueReading {
        QueueReading { at: Nanos(n), waiting: 2 * n, most: 3 * n, drops: 4 * n }
    }

    #[test]
    fn the_ring_holds_the_last_and_reads_from_a_mark() {
        let samples = QueueHistory::default();
        assert!(samples.from(0).is_empty());
        (0..5).for_each(|n| samples.push(sample(n)));
        assert_eq!(samples.from(3), [sample(3), sample(4)]);
        let more = SLOTS as u64 + 10;
        (5..more).for_each(|n| samples.push(sample(n)));
        let all = samples.from(0);
        assert_eq!((all.len(), all[0], all[SLOTS - 1]), (SLOTS, sample(10), sample(more - 1)));
        assert!(samples.from(more).is_empty());
    }

    #[test]
    fn a_sample_that_is_read_during_a_write_is_whole() {
        let samples = QueueHistory::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|n| samples.push(sample(n))));
            for _ in 0..20 {
                let seen = samples.from(0);
                assert!(seen.iter().all(|s| *s == sample(s.at.0)), "a torn sample");
                assert!(seen.is_sorted_by_key(|s| s.at));
            }
        });
    }

    #[test]
    fn samples_are_a_tenth_of_a_second_apart_and_idle_times_have_two() {
        let samples = QueueHistory::default();
        let mut sampler = QueueSampler::default();
        // A frame of a megabyte at 50 ms, drained at a megabyte a second; nothing else until 60 s.
        let waiting = |at: Nanos| Nanos::millis(1050).saturating_sub(at).0 / 1000;
        sampler.look(Nanos::millis(50), &samples, 0, |_| 0);
        assert_eq!(sampler.saw(1_000_000), 1_000_000);
        sampler.look(Nanos::millis(60_050), &samples, 7, waiting);
        let seen: Vec<_> = samples.from(0).iter().map(|s| (s.at.0 / 1_000_000, s.waiting, s.most)).collect();
        assert_eq!(seen[..2], [(100, 950_000, 1_000_000), (200, 850_000, 950_000)]);
        assert_eq!(seen[9..], [(1000, 50_000, 150_000), (1100, 0, 50_000), (60_000, 0, 0)]);
        assert_eq!(samples.from(11)[0].since(Nanos::secs(50), 5).drops, 2);
        sampler.saw(9);
        sampler.restart();
        assert_eq!(sampler.saw(3), 3);
    }
}
