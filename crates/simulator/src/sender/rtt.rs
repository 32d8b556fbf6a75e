//! The RTT as Linux smooths it (tcp_rtt_estimator and tcp_set_rto of net/ipv4/tcp_input.c, after RFC 6298), and the
//! minimum RTT within five minutes (lib/win_minmax.c).

use landspeed_congestion::Sock;
use landspeed_record::units::Nanos;

/// The window of the minimum RTT, in microseconds (net.ipv4.tcp_min_rtt_wlen).
const LEAST_WITHIN_US: u64 = 300 * 1_000_000;
/// The longest timeout, in microseconds (TCP_RTO_MAX).
const LONGEST_US: u64 = 120 * 1_000_000;

/// The state of a flow's RTT estimation that the [`Sock`] does not hold.
#[derive(Debug, Clone)]
pub(super) struct RttEstimator {
    floor_us: u32,
    variation_us: u32,
    mdev_max_us: u32,
    /// Segment whose acknowledgement starts a new measurement of the RTT's variation.
    round_ends: u64,
    least: WindowedMinimum,
}

impl RttEstimator {
    /// Creates an estimator. `floor` is the smallest difference between the timeout and the smoothed RTT.
    pub(super) fn new(floor: Nanos) -> Self {
        RttEstimator {
            floor_us: us(floor) as u32,
            variation_us: 0,
            mdev_max_us: 0,
            round_ends: 0,
            least: WindowedMinimum::default(),
        }
    }

    /// Updates the estimates with an RTT sample. `una` is the first segment that is not acknowledged, and `next` the
    /// next one to be sent for the first time.
    pub(super) fn sample(&mut self, sk: &mut Sock, rtt_us: u32, una: u64, next: u64) {
        if sk.srtt_us == 0 {
            sk.srtt_us = (rtt_us << 3).max(1);
            sk.mdev_us = rtt_us << 1;
            self.variation_us = sk.mdev_us.max(self.floor_us);
            self.mdev_max_us = self.variation_us;
            self.round_ends = next;
            return;
        }
        let error = i64::from(rtt_us) - i64::from(sk.srtt_us >> 3);
        sk.srtt_us = (i64::from(sk.srtt_us) + error).max(1) as u32;
        let mut spread = error.abs() - i64::from(sk.mdev_us >> 2);
        if error < 0 && spread > 0 {
            // A shorter RTT is no reason to expect longer ones (the kernel's "Eifel" rule).
            spread >>= 3;
        }
        sk.mdev_us = (i64::from(sk.mdev_us) + spread) as u32;
        if sk.mdev_us > self.mdev_max_us {
            self.mdev_max_us = sk.mdev_us;
            self.variation_us = self.variation_us.max(self.mdev_max_us);
        }
        if una > self.round_ends {
            let above = self.variation_us.saturating_sub(self.mdev_max_us);
            self.variation_us -= above >> 2;
            self.round_ends = next;
            self.mdev_max_us = self.floor_us;
        }
    }

    pub(super) fn timeout(&self, sk: &Sock, backoff: u32) -> Nanos {
        let once = match sk.srtt_us {
            // RFC 6298, section 2.1.
            0 => 1_000_000,
            srtt => u64::from(srtt >> 3) + u64::from(self.variation_us),
        };
        Nanos::micros((once << backoff.min(16)).min(LONGEST_US))
    }

    /// Updates the minimum RTT with the RTT of a segment that was sent only once.
    pub(super) fn least(&mut self, sk: &mut Sock, now: Nanos, rtt_us: u32) {
        sk.rtt_min = self.least.sample(us(now), rtt_us);
    }
}

/// Returns a time in whole microseconds.
pub(super) fn us(time: Nanos) -> u64 {
    time.0 / 1000
}

/// The minimum of a sliding window in constant space (Kathleen Nichols' algorithm). Holds the smallest sample, the
/// smallest one after it, and the smallest one after that, each with its time.
#[derive(Debug, Clone, Copy)]
struct WindowedMinimum {
    best: [(u64, u32); 3],
}

impl Default for WindowedMinimum {
    fn default() -> Self {
        WindowedMinimum { best: [(0, u32::MAX); 3] }
    }
}

impl WindowedMinimum {
    fn sample(&mut self, at: u64, value: u32) -> u32 {
        let sample = (at, value);
        let [first, second, third] = &mut self.best;
        if value <= first.1 || at - third.0 > LEAST_WITHIN_US {
            self.best = [sample; 3];
            return value;
        }
        if value <= second.1 {
            (*second, *third) = (sample, sample);
        } else if value <= third.1 {
            *third = sample;
        }
        self.age(at, value);
        self.best[0].1
    }

    fn age(&mut self, at: u64, value: u32) {
        let sample = (at, value);
        let [first, second, third] = &mut self.best;
        let passed = at - first.0;
        if passed > LEAST_WITHIN_US {
            (*first, *second, *third) = (*second, *third, sample);
            if at - first.0 > LEAST_WITHIN_US {
                (*first, *second, *third) = (*second, *third, sample);
            }
        } else if second.0 == first.0 && passed > LEAST_WITHIN_US / 4 {
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && passed > LEAST_WITHIN_US / 2 {
            *third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_round_trip_is_its_own_mean() {
        let (mut rtt, mut sk) = (RttEstimator::new(Nanos::millis(200)), Sock::default());
        assert_eq!(rtt.timeout(&sk, 0), Nanos::secs(1), "before the first sample");
        for n in 0..1000 {
            rtt.sample(&mut sk, 164_000, n, n + 10);
        }
        assert_eq!(sk.srtt_us, 8 * 164_000);
        // The variation decays to its floor by quarters, and stops 3 us above it.
        assert_eq!(rtt.timeout(&sk, 0), Nanos::micros(364_003));
        assert_eq!(rtt.timeout(&sk, 2), Nanos::micros(4 * 364_003));
        assert_eq!(rtt.timeout(&sk, 30), Nanos::secs(120));
    }

    #[test]
    fn a_step_is_followed_within_a_few_samples() {
        let (mut rtt, mut sk) = (RttEstimator::new(Nanos::millis(200)), Sock::default());
        rtt.sample(&mut sk, 10_000, 0, 1);
        for n in 1..40 {
            rtt.sample(&mut sk, 500_000, n, n + 1);
            assert!(rtt.timeout(&sk, 0) >= Nanos::micros(u64::from(sk.srtt_us >> 3)));
        }
        assert!((495_000..=500_000).contains(&(sk.srtt_us >> 3)), "{}", sk.srtt_us >> 3);
    }

    #[test]
    fn the_least_is_forgotten_after_five_minutes() {
        let mut least = WindowedMinimum::default();
        assert_eq!(least.sample(0, 10), 10);
        for second in 1..300 {
            assert_eq!(least.sample(second * 1_000_000, 20), 10);
        }
        assert_eq!(least.sample(301 * 1_000_000, 30), 20);
    }
}
