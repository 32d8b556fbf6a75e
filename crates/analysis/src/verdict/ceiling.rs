//! Bounds the expected gain of a remedy by the next limit of the flow.

use landspeed_record::{Finding, Remedy};

use super::causes::relieves;
use super::judge::RelievedLimit;
use super::thresholds::{GAIN_HIGH, GAIN_LOW, LEAST_GAIN, LEAST_OPEN_GAIN, MOST_RATIO, PAYLOAD_OF_LINK};
use super::view::VerdictView;
use super::words::share;

/// A range of the expected goodput, as ratios to the present one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gain {
    low: f64,
    high: f64,
}

impl Gain {
    /// Returns the range around `ratio`, the gain that a cause's own figures promise.
    fn of(ratio: f64) -> Gain {
        Gain { low: ratio.powf(GAIN_LOW), high: ratio.powf(GAIN_HIGH) }
    }

    /// Returns the range that begins somewhat below `ratio` and has no end of its own.
    fn at_least(ratio: f64) -> Gain {
        Gain { high: f64::INFINITY, ..Gain::of(ratio) }
    }

    fn up_to(self, next: Gain) -> Gain {
        Gain { low: self.low.min(next.low).max(1.0), high: self.high.min(next.high) }
    }
}

/// Returns the finding with the expected gains of its remedies as ranges that end at the next limit.
pub(super) fn capped(view: &VerdictView<'_>, mut finding: Finding) -> Finding {
    let next = next_limits(view, relieves(finding.cause));
    for remedy in &mut finding.remedies {
        promise(remedy, &next);
    }
    finding
}

/// Replaces the gain that a cause's own figures promise by a range that ends at the next limit. Promises nothing if nothing
/// is left to win, or if no known limit ends the range. Of a gain that is open at its upper end, the lower end is promised
/// alone.
fn promise(remedy: &mut Remedy, next: &[Gain]) {
    let own = match (remedy.expected_ratio.take(), remedy.expected_low.take()) {
        (Some(ratio), _) => Gain::of(ratio),
        (None, Some(ratio)) => Gain::at_least(ratio),
        (None, None) => return,
    };
    let gain = next.iter().fold(own, |gain, next| gain.up_to(*next));
    if own.high.is_infinite() {
        let low = gain.low.min(MOST_RATIO);
        remedy.expected_low = (low >= LEAST_OPEN_GAIN).then_some(low);
        return;
    }
    let middle = (gain.low * gain.high).sqrt();
    if gain.high < LEAST_GAIN || middle > MOST_RATIO {
        return;
    }
    remedy.expected_ratio = Some(middle);
    (remedy.expected_low, remedy.expected_high) = (Some(gain.low), Some(gain.high));
}

/// Returns the limits that stay when a cause is gone, as ratios to the present goodput: the path, the slowest link, the
/// hosts' measured limits, and, unless the remedies relieve them, a shaper and the processor.
fn next_limits(view: &VerdictView<'_>, relieved: RelievedLimit) -> Vec<Gain> {
    let now = view.goodput.0;
    if now <= 0.0 {
        return Vec::new();
    }
    let over = |low: f64, high: f64| Gain { low: low / now, high: high / now };
    let path = view.path.as_ref().map(|path| over(path.level.low, path.level.high));
    let capacity =
        view.follow_ups.capacity.filter(|found| found.is_of_path && relieved != RelievedLimit::Path);
    let capacity = capacity.map(|found| over(PAYLOAD_OF_LINK * found.carried_bps.0, found.carried_bps.0));
    let shaper = view.shaped.as_ref().filter(|_| relieved != RelievedLimit::Path);
    let shaper = shaper.and_then(|shaped| shaped.queue.watch.rate_bps);
    let shaper = shaper.map(|rate| over(PAYLOAD_OF_LINK * rate.0, rate.0));
    let link = view.slowest_link().map(|(_, rate)| over(PAYLOAD_OF_LINK * rate.0, rate.0));
    let parts = view.headroom().map(|ratio| Gain { low: PAYLOAD_OF_LINK * ratio, high: ratio });
    let core = most_work(view).filter(|work| relieved != RelievedLimit::Processor && *work > 0.0);
    // A core whose work grows in proportion to the rate is full at 1 / work.
    let core = core.map(|work| Gain { low: 0.8 / work, high: 1.0 / work });
    [path, capacity, shaper, link, parts, core].into_iter().flatten().collect()
}

/// Returns the share of time that the flow's own work takes on the busiest thread or core.
fn most_work(view: &VerdictView<'_>) -> Option<f64> {
    let threads = view.ends().filter_map(|end| end.ran());
    let packets = view.cpu.cores.iter().map(|core| core.interrupts.min(view.packet_time()));
    threads.chain(packets).map(share).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_ends_at_the_next_limit() {
        let promised = |ratio, next: &[Gain]| {
            let mut remedy = Remedy { expected_ratio: Some(ratio), ..Remedy::default() };
            promise(&mut remedy, next);
            remedy.expected_low.zip(remedy.expected_high)
        };
        assert_eq!(promised(4.0, &[Gain { low: 1.9, high: 2.1 }]), Some((1.9, 2.1)));
        assert_eq!(promised(4.0, &[Gain { low: 0.9, high: 1.01 }]), None, "nothing is left to win");
        assert_eq!(promised(100.0, &[]), None, "no limit is known that would stop it");
        assert_eq!(promised(100.0, &[Gain { low: 4.5, high: 5.0 }]), Some((4.5, 5.0)));
        let open = |ratio, next: &[Gain]| {
            let mut remedy = Remedy { expected_low: Some(ratio), ..Remedy::default() };
            promise(&mut remedy, next);
            (remedy.expected_ratio, remedy.expected_low, remedy.expected_high)
        };
        assert_eq!(
            open(4.0, &[Gain { low: 1.9, high: 2.1 }]),
            (None, Some(1.9), None),
            "the next limit is near"
        );
        let (ratio, low, high) = open(4.0, &[Gain { low: 80.0, high: 100.0 }]);
        assert_eq!((ratio, high), (None, None));
        assert!(low.is_some_and(|low| (2.5..4.0).contains(&low)), "{low:?}");
        assert_eq!(open(4.0, &[Gain { low: 0.9, high: 1.01 }]), (None, None, None), "nothing is left to win");
        let (low, high) = promised(2.0, &[]).unwrap();
        assert!(low > 1.0 && low < 2.0 && high > 2.0 && high / low < 1.5);
    }
}
