//! Reads delivery traces in Mahimahi's format. Each line is a moment, in milliseconds since the start, at which 1500
//! bytes may leave. After the last line the trace starts again. The code calls one pass over the trace a turn.
//!
//! Moments are used as in Mahimahi (src/frontend/link_queue.cc): small packets share one, large packets need several,
//! and an unused moment is lost. One value differs: Mahimahi sends 1504 bytes at a time, because its TUN device adds 4
//! bytes to each packet.

use std::sync::Arc;

use landspeed_record::units::Nanos;

use super::error::WanSpecError;
use super::numbers::NumberRules;
use super::value::is_rate;

/// Bytes of IP packets that may leave at each moment.
const CHUNK: u64 = 1500;
const MILLI: u64 = 1_000_000;
const MOMENTS: NumberRules = NumberRules {
    key: "trace",
    // About a minute of a trace at 1 Gb/s, or an hour at 10 Mb/s.
    largest: 32 << 20,
    // Times of at most 49 days, so that no sum of them overflows.
    follows: |before, moment| (before..=u32::MAX.into()).contains(&moment),
    expected: "whole milliseconds, not before the line above",
};

/// A delivery trace: the moments at which bytes may leave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeliveryTrace {
    /// The times at which 1500 bytes may leave, in milliseconds since the start of a pass over the trace, in ascending
    /// order (equal times are possible); at least one.
    moments: Vec<u64>,
    /// The duration of a pass over the trace in milliseconds: the last of `moments`, above 0.
    period: u64,
}

impl DeliveryTrace {
    /// Reads a trace from a file.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be read or if the trace has no valid rate. If a line is not
    /// valid, the error names the line too.
    pub(super) fn load(path: &str) -> Result<Self, WanSpecError> {
        let moments = MOMENTS.read(path)?;
        let trace = DeliveryTrace { period: moments.last().copied().unwrap_or(0), moments };
        if trace.period == 0 {
            return Err(MOMENTS.wrong(path, "must last longer than 0 ms"));
        }
        if !is_rate(trace.mean_bps()) {
            let why = format!("lets {} bit/s pass: expected 8k to 100G", trace.mean_bps());
            return Err(MOMENTS.wrong(path, why));
        }
        Ok(trace)
    }

    /// Returns the mean rate over a whole pass, in bits a second.
    pub(super) fn mean_bps(&self) -> u64 {
        self.moments.len() as u64 * CHUNK * 8 * 1000 / self.period
    }

    /// Returns the largest number of bytes that may leave within any interval of this length.
    pub(super) fn most_bytes_within(&self, time: Nanos) -> u64 {
        let millis = time.0 / MILLI + 1;
        let (turns, rest) = (millis / self.period, millis % self.period);
        let count = self.moments.len();
        let at = |n: usize| self.moments[n % count] + self.period * (n / count) as u64;
        let (mut end, mut most) = (0, 0);
        for start in 0..count {
            while end < start + count && at(end) <= at(start) + rest {
                end += 1;
            }
            most = most.max(end - start);
        }
        (turns * count as u64 + most as u64) * CHUNK
    }
}

/// A line that follows a trace. The trace begins when the first packet arrives.
#[derive(Debug, Clone)]
pub(super) struct TraceFollower {
    trace: Arc<DeliveryTrace>,
    /// The time at which the trace began; `None` before the first packet.
    began: Option<Nanos>,
    /// The number of the current moment, counted from 0 over all passes. `left` is the number of bytes that may still
    /// leave at this moment.
    moment: u64,
    left: u64,
}

impl TraceFollower {
    pub(super) fn new(trace: Arc<DeliveryTrace>) -> Self {
        TraceFollower { trace, began: None, moment: 0, left: CHUNK }
    }

    /// Adds a packet of `size` bytes that arrives at `now` to the end of the queue. Returns when its last byte leaves.
    pub(super) fn occupy(&mut self, now: Nanos, size: u64) -> Nanos {
        let began = *self.began.get_or_insert(now);
        self.skip_to(now - began);
        let mut size = size;
        while size > self.left {
            size -= self.left;
            (self.moment, self.left) = (self.moment + 1, CHUNK);
        }
        self.left -= size;
        began + self.time_of(self.moment)
    }

    /// Skips the moments before `time`, because no packet waited at them. `time` counts from the beginning of the
    /// trace.
    fn skip_to(&mut self, time: Nanos) {
        if self.time_of(self.moment) >= time {
            return;
        }
        let period = self.trace.period * MILLI;
        // If one pass ends and the next one begins at `time`, then `time` counts to the first one, whose last moments
        // come first.
        let turn = time.0.saturating_sub(1) / period;
        let within = time.0 - turn * period;
        let passed = self.trace.moments.partition_point(|moment| moment * MILLI < within);
        self.moment = turn * self.trace.moments.len() as u64 + passed as u64;
        self.left = CHUNK;
    }

    fn time_of(&self, moment: u64) -> Nanos {
        let count = self.trace.moments.len() as u64;
        let turn = moment / count * self.trace.period;
        Nanos((turn + self.trace.moments[(moment % count) as usize]) * MILLI)
    }
}

#[cfg(test)]
mod tests {
    use super::super::numbers::tests::file;
    use super::*;

    fn trace(text: &str) -> Arc<DeliveryTrace> {
        Arc::new(DeliveryTrace::load(file(text).to_str().unwrap()).unwrap())
    }

    fn refused(text: &str) -> String {
        DeliveryTrace::load(file(text).to_str().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn packets_leave_at_the_moments_of_the_trace() {
        let mut line = TraceFollower::new(trace("1\n1\n4\n10\n"));
        let start = Nanos::secs(5);
        let at = |line: &mut TraceFollower, ms: u64, size| {
            (line.occupy(start + Nanos::millis(ms), size) - start).0 / MILLI
        };
        assert_eq!(at(&mut line, 0, 1500), 1);
        assert_eq!(at(&mut line, 0, 700), 1);
        assert_eq!(at(&mut line, 0, 800), 1, "small ones share a moment");
        assert_eq!(at(&mut line, 0, 3000), 10, "large ones take several");
        assert_eq!(at(&mut line, 0, 40), 11, "and it starts again");
        assert_eq!(at(&mut line, 12, 1500), 14, "delivery opportunities without a packet are lost");
        assert_eq!(at(&mut line, 99, 1), 100);
        assert_eq!(at(&mut line, 1_000_000, 1), 1_000_000, "a moment that comes with the packet is its own");
        assert_eq!(at(&mut line, 1_000_000, 1500), 1_000_001);
    }

    #[test]
    fn a_trace_carries_its_mean_rate() {
        // 12 Mb/s: a packet each millisecond.
        let one = trace("1\n");
        assert_eq!(one.mean_bps(), 12_000_000);
        let mut line = TraceFollower::new(Arc::clone(&one));
        let last = (0..1000).map(|_| line.occupy(Nanos(0), 1500)).last();
        assert_eq!(last, Some(Nanos::secs(1)));
        assert_eq!(one.most_bytes_within(Nanos::millis(10)), 12 * 1500);
        // 20 packets together, then none for 100 ms.
        let burst = trace(&format!("{}100\n", "5\n".repeat(20)));
        assert_eq!(burst.most_bytes_within(Nanos(0)), 20 * 1500);
        assert_eq!(burst.most_bytes_within(Nanos::millis(99)), 41 * 1500);
    }

    #[test]
    fn hostile_traces_are_refused_with_their_line() {
        assert!(refused("1\n2\n1\n").contains("line 3: '1'"));
        assert!(refused("1\n4294967296\n").contains("line 2"));
        for text in ["", "0\n", "0\n0\n"] {
            assert!(refused(text).contains("longer than 0 ms"), "{text:?}");
        }
        assert!(refused("4294967295\n").contains("0 bit/s"));
        assert!(refused(&"1\n".repeat(10_000)).contains("bit/s"), "120 Gb/s");
    }
}
