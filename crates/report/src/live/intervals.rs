//! One line for each interval of a stream during its measurement.

use std::collections::BTreeMap;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Side, TcpProgress, TrialProgress};

use crate::safe;

/// Lines on the intervals of a stream, or of one stream for each of several pairs of hosts.
#[derive(Debug, Default)]
pub struct IntervalLines {
    /// Names of the two hosts of each pair, in the order of the pairs' numbers.
    names: Vec<[String; 2]>,
    last: BTreeMap<(usize, Side), TrialProgress>,
    /// Retransmitted segments in earlier lines, by pair and sending end.
    reported: BTreeMap<(usize, Side), u64>,
    headed: bool,
}

impl IntervalLines {
    pub fn of(names: Vec<[String; 2]>) -> IntervalLines {
        IntervalLines { names, ..IntervalLines::default() }
    }

    /// Takes the progress of one end of a pair and returns the new lines, none if no data arrived at that end. The
    /// receiving end reports what arrived, the other end the state of its TCP.
    pub fn take(&mut self, pair: usize, side: Side, now: TrialProgress) -> Vec<String> {
        let before = self.last.insert((pair, side), now).unwrap_or_default();
        if now.received_bytes.0 == 0 {
            return Vec::new();
        }
        let sender = side.other();
        let tcp = self.last.get(&(pair, sender)).and_then(|other| other.tcp);
        let figures = tcp.map(|tcp| self.figures(pair, sender, tcp)).unwrap_or_default();
        let rate = rate(&before, &now);
        let time = format!("{:.1}-{:.1} s", before.at_ns.as_secs_f64(), now.at_ns.as_secs_f64());
        let line = format!("{time:>14}  {rate:>12}{figures}{}", self.way(pair, side));
        let head = format!(
            "{:>14}  {:>12}  {:>11}  {:>9}  {:>9}",
            "interval", "goodput", "retransmits", "RTT", "window"
        );
        let is_first = !std::mem::replace(&mut self.headed, true);
        is_first.then_some(head).into_iter().chain([line]).collect()
    }

    fn figures(&mut self, pair: usize, sender: Side, tcp: TcpProgress) -> String {
        let reported = self.reported.insert((pair, sender), tcp.retransmits).unwrap_or_default();
        let again = tcp.retransmits.saturating_sub(reported);
        format!("  {again:>11}  {:>9}  {:>9}", tcp.rtt_ns.to_string(), tcp.window_bytes.to_string())
    }

    /// Returns the direction of data to the end `to`. It is empty if there is one pair and data moves in one direction
    /// only.
    fn way(&self, pair: usize, to: Side) -> String {
        let both = self.last.get(&(pair, to.other())).is_some_and(|other| other.received_bytes.0 > 0);
        let Some([a, b]) = self.names.get(pair).filter(|_| both || self.names.len() > 1) else {
            return String::new();
        };
        let [from, to] = if to == Side::B { [a, b] } else { [b, a] };
        safe(&format!("  {from} -> {to}"))
    }

    /// Returns the goodput so far, with a line for each direction, or an empty text if nothing arrived.
    pub fn unfinished(&self) -> String {
        let lines =
            self.last.iter().filter(|(_, so_far)| so_far.received_bytes.0 > 0).map(|((pair, side), now)| {
                let (time, rate) = (now.at_ns.as_secs_f64(), rate(&TrialProgress::default(), now));
                format!("unfinished: {rate} over {time:.1} s{}", self.way(*pair, *side))
            });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn rate(before: &TrialProgress, now: &TrialProgress) -> String {
    let time: Nanos = now.at_ns.saturating_sub(before.at_ns);
    let bits = now.received_bytes.0.saturating_sub(before.received_bytes.0) as f64 * 8.0;
    BitRate(bits / time.as_secs_f64().max(1e-9)).to_string()
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;

    fn progress(at: u64, received: u64, tcp: Option<(u64, u64)>) -> TrialProgress {
        let tcp = tcp.map(|(retransmits, window)| TcpProgress {
            retransmits,
            rtt_ns: Nanos::millis(20),
            window_bytes: Bytes(window),
        });
        TrialProgress { at_ns: Nanos::secs(at), received_bytes: Bytes(received), tcp }
    }

    #[test]
    fn each_interval_is_a_line_of_its_own_differences() {
        let mut seen = IntervalLines::of(vec![["a".into(), "b".into()]]);
        assert!(seen.take(0, Side::A, progress(1, 0, Some((3, 10_000)))).is_empty(), "it sends");
        let first = seen.take(0, Side::B, progress(1, 125_000_000, None));
        assert_eq!(first.len(), 2, "{first:?}");
        assert!(first[1].contains("0.0-1.0 s") && first[1].contains("1 Gb/s"), "{first:?}");
        assert_eq!(first[1].split_whitespace().nth(4), Some("3"), "{first:?}");
        seen.take(0, Side::A, progress(2, 0, Some((4, 10_000))));
        let second = seen.take(0, Side::B, progress(2, 375_000_000, None));
        assert!(second.len() == 1 && second[0].contains("2 Gb/s"), "{second:?}");
        assert_eq!(second[0].split_whitespace().nth(4), Some("1"), "{second:?}");
        assert!(second[0].chars().count() <= 80 && !second[0].contains("->"), "{second:?}");
        assert!(seen.unfinished().contains("1.50 Gb/s over 2.0 s"), "{}", seen.unfinished());
        let back = seen.take(0, Side::A, progress(3, 1_000, None));
        assert!(back[0].ends_with("  b -> a"), "both ways: {back:?}");
    }
}
