//! Published response functions: the mean window, in segments, of a flow that loses the share `p` of its
//! packets.
//!
//! They hold where losses come at equal distances, one in `1/p` packets, and the window is no longer than
//! the path takes. Windows grow by segments acknowledged, not by acknowledgements, as Linux has it: delayed
//! acknowledgements change nothing. Under random loss Reno's window is larger by 7 % (1.31 instead of
//! 1.22; Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997).

mod measure;

use landspeed_units::Nanos;

pub use measure::{MeasuredWindow, measure};

/// Reno: `sqrt(3 / 2p)` (Mathis et al., equation 3 with one segment an acknowledgement).
pub fn reno(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

/// HighSpeed: `0.12 / p^0.835` (RFC 3649, section 5, equation 1 with the default parameters), Reno's below
/// a window of 38.
pub fn highspeed(p: f64) -> f64 {
    const LOW_WINDOW: f64 = 38.0;
    const HIGH_WINDOW: f64 = 83_000.0;
    const LOW_P: f64 = 1e-3;
    const HIGH_P: f64 = 1e-7;
    if p >= LOW_P {
        return reno(p);
    }
    let slope = (HIGH_WINDOW / LOW_WINDOW).ln() / (HIGH_P / LOW_P).ln();
    LOW_WINDOW * (p / LOW_P).powf(slope)
}

/// Scalable, the window at a loss: `(a / b) / p` with a = 0.01, b = 1/8 (Kelly, CCR 33(2), 2003, section 3),
/// which is where `1/p` packets add what the loss takes.
pub fn scalable_at_loss(p: f64) -> f64 {
    0.08 / p
}

/// Scalable's mean window: from 7/8 of the window at the loss it takes `ln(8/7) / ln(1.01)` = 13.4 round
/// trips for `1/p` packets, however large the window is.
pub fn scalable(p: f64) -> f64 {
    1.0 / p / ((8.0_f64 / 7.0).ln() / 1.01_f64.ln())
}

/// BIC, by the steps of its paper (Xu, Harfoush, Rhee, INFOCOM 2004, section IV) with S_max = 32,
/// S_min = 0.01, beta = 1/8: each round trip adds half of the way to the window before the loss.
pub fn bic(p: f64) -> f64 {
    periodic(p, |_| 7.0 / 8.0, |window, most, _| ((most - window) / 2.0).clamp(0.01, 32.0))
}

/// H-TCP where round trips do not change, so that its share kept is the largest, beta = 0.8 (Leith,
/// Shorten, draft-leith-tcp-htcp-06, section 2): `alpha` is 1 for a second after the loss, then
/// `1 + 10 D + (D/2)^2`, scaled by `2 (1 - beta)`.
pub fn htcp(p: f64, rtt: Nanos) -> f64 {
    const KEPT: f64 = 0.8;
    let alpha = move |round_trips: f64| {
        let beyond = (round_trips * rtt.as_secs_f64() - 1.0).max(0.0);
        1.0 + 10.0 * beyond + (beyond / 2.0).powi(2)
    };
    periodic(p, |_| KEPT, move |_, _, round_trips| (2.0 * (1.0 - KEPT) * alpha(round_trips)).max(1.0))
}

/// Mean window of a control that keeps the share `kept(window)` at a loss and then gains `gain(window,
/// window at the loss, round trips since)` each round trip until it is back where it was, if `1/p` packets
/// lie between losses.
fn periodic(p: f64, kept: impl Fn(f64) -> f64, gain: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let epoch = |most: f64| {
        let (mut window, mut packets, mut round_trips) = (most * kept(most), 0.0, 0.0);
        while window < most {
            let added = gain(window, most, round_trips);
            // The last round trip is only as long as is needed.
            let share = ((most - window) / added).min(1.0);
            packets += share * (window + share * added / 2.0);
            round_trips += share;
            window += added;
        }
        (packets, round_trips)
    };
    let (mut low, mut high) = (1.0, 1e8);
    // Doubles of this range are told apart after some 60 halvings.
    for _ in 0..60 {
        let most = (low + high) / 2.0;
        if epoch(most).0 * p < 1.0 { low = most } else { high = most }
    }
    let (packets, round_trips) = epoch(low);
    packets / round_trips
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_stepped_is_reno_in_closed_form() {
        for p in [1e-3, 1e-5] {
            let stepped = periodic(p, |_| 0.5, |_, _, _| 1.0);
            assert!((stepped / reno(p) - 1.0).abs() < 1e-3, "{stepped} at {p}");
        }
    }

    #[test]
    fn scalable_stepped_is_scalable_in_closed_form() {
        // Continuous compounding within a round trip: 1.01 is e^0.00995.
        let stepped = periodic(1e-5, |_| 7.0 / 8.0, |window, _, _| 0.01 * window);
        assert!((stepped / scalable(1e-5) - 1.0).abs() < 0.01, "{stepped}");
        assert!((stepped / scalable_at_loss(1e-5) - 0.93).abs() < 0.01, "{stepped}");
    }

    #[test]
    fn highspeed_meets_its_two_points() {
        assert!((highspeed(1e-7) - 83_000.0).abs() < 1.0);
        assert!((highspeed(0.999_999e-3) - 38.0).abs() < 0.1);
        // RFC 3649, table 3, whose figures are those of the rounded 0.12 and 0.835.
        assert!((highspeed(1e-5) / 1795.0 - 1.0).abs() < 0.015, "{}", highspeed(1e-5));
    }

    #[test]
    fn the_others_lie_above_reno_and_in_order() {
        for p in [1e-4, 1e-5, 1e-6] {
            assert!(bic(p) > reno(p) && htcp(p, Nanos::millis(100)) > reno(p), "{p}");
        }
    }
}
