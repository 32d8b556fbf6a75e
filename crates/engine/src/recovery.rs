//! Measures how long one lost segment slows a stream, on real sockets. This repeats feng-2003 Table 1 as an experiment.

use landspeed_analysis::wan::unfit;
use landspeed_lab::topology::HostSet;
use landspeed_record::units::Nanos;
use landspeed_record::{LabRecovery, TcpSample};

use crate::record_run::{PathProperties, cell, stream};
use crate::{Error, HostGroup, WatchOptions};

/// The largest number of samples of a window. They fit easily into an agent's answer.
const MOST_LOOKS: u64 = 10_000;

/// The two losses of a recovery measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryLosses {
    /// Numbers of the packets to lose. The first loss ends slow start. The second loss is the one that is measured.
    pub packets: [u64; 2],
    /// Duration of the run, in which the window can return to its size before the second loss.
    pub time: Nanos,
}

impl RecoveryLosses {
    /// Chooses the losses for a path. When the first loss is reported, slow start has brought about as many packets into
    /// flight as the lost packet's number. That number is the packets of the path and 0.8 of the queue (at most 0.8 BDP),
    /// so path and queue hold them. The loss halves the window: to nine tenths of the packets that the path holds with a
    /// queue of one BDP or more, to fewer with a shorter one. By the second loss the queue is empty.
    pub fn on(path_segments: u64, queue_segments: u64, rtt: Nanos) -> RecoveryLosses {
        let first = (path_segments + queue_segments.min(path_segments) * 8 / 10).max(20);
        let left = first / 2;
        let growing = left / 2;
        RecoveryLosses {
            packets: [first, 2 * first + 6 * left],
            time: Nanos(rtt.0 * (growing * 11 / 10 + 60)),
        }
    }
}

/// Sends one stream over a link that is set to lose the packets of `losses`, and measures how long the window takes to
/// return to its size before the second loss. Restores the settings at the end.
///
/// # Errors
/// Returns an error if a host may not be tuned, or if a session or a knob fails.
pub fn recover(
    group: &mut HostGroup,
    hosts: &dyn HostSet,
    losses: &RecoveryLosses,
) -> Result<LabRecovery, Error> {
    let ((samples, mut unfit), restored) = group.tuned(|group| lose(group, hosts, losses.time))?;
    if !restored.restored {
        unfit.extend(restored.notes);
    }
    Ok(LabRecovery { unfit, ..seen(&samples, group.rtt()) })
}

fn lose(
    group: &mut HostGroup,
    hosts: &dyn HostSet,
    time: Nanos,
) -> Result<(Vec<TcpSample>, Vec<String>), Error> {
    let properties = PathProperties::of(&group.first(), hosts, None)?;
    group.set(&cell(&properties, None))?;
    let watching =
        WatchOptions { interval: properties.rtt.max(Nanos(time.0 / MOST_LOOKS)), ..WatchOptions::default() };
    let ([sender, _], link) = stream(&group.first(), hosts, (time, Nanos(0)), watching)?;
    Ok((sender.observed.get::<Vec<TcpSample>>().clone(), link.as_ref().map(unfit).unwrap_or_default()))
}

/// Evaluates the samples of the sender. After the second retransmission the window falls within an RTT, and then grows
/// back.
fn seen(samples: &[TcpSample], rtt: Nanos) -> LabRecovery {
    let mut repairs = (1..samples.len()).filter(|n| samples[*n].retransmits > samples[n - 1].retransmits);
    let Some(second) = repairs.nth(1) else { return LabRecovery::default() };
    let window_segments = samples[second - 1].cwnd_segments;
    let after = &samples[second..];
    let fallen = after.iter().position(|sample| sample.cwnd_segments < window_segments);
    let grows = fallen.map_or(&[][..], |fallen| &after[fallen..]);
    let back = grows.iter().find(|sample| sample.cwnd_segments >= window_segments);
    LabRecovery {
        back_s: back.map(|sample| (sample.at_ns - after[0].at_ns).as_secs_f64()),
        expected_s: f64::from(window_segments) / 2.0 * rtt.as_secs_f64(),
        window_segments,
        least_segments: grows.iter().map(|sample| sample.cwnd_segments).min().unwrap_or_default(),
        retransmits: samples.last().map_or(0, |sample| sample.retransmits),
        unfit: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Nanos = Nanos::millis(10);

    fn samples(looks: &[(u64, u32)]) -> Vec<TcpSample> {
        let look = |(n, &(retransmits, cwnd_segments)): (u64, &(u64, u32))| TcpSample {
            at_ns: Nanos(RTT.0 * n),
            retransmits,
            cwnd_segments,
            ..TcpSample::default()
        };
        (0..).zip(looks).map(look).collect()
    }

    #[test]
    fn a_window_is_back_when_it_is_as_it_was_before_the_second_loss() {
        // The window is still full when the segment is sent again.
        let found =
            seen(&samples(&[(0, 4), (0, 16), (1, 8), (1, 8), (2, 8), (2, 4), (2, 6), (2, 8), (2, 8)]), RTT);
        assert_eq!((found.back_s, found.window_segments, found.least_segments), (Some(0.03), 8, 4));
        assert_eq!((found.retransmits, found.expected_s), (2, 0.04));
    }

    #[test]
    fn an_incomplete_recovery_has_no_time() {
        let none = |looks: &[(u64, u32)]| seen(&samples(looks), RTT).back_s;
        assert_eq!(none(&[]), None);
        assert_eq!(none(&[(0, 16), (1, 8), (1, 8)]), None, "only slow start's");
        assert_eq!(none(&[(0, 16), (1, 8), (2, 8)]), None, "it did not fall");
        assert_eq!(none(&[(0, 16), (1, 8), (2, 8), (2, 4), (2, 7)]), None, "too short a time");
    }

    #[test]
    fn path_and_queue_hold_what_slow_start_has_in_flight() {
        for queue in [0, 100, 1000, 5000] {
            let RecoveryLosses { packets: [first, second], .. } = RecoveryLosses::on(1000, queue, RTT);
            assert!(first <= 1000 + queue && first >= 1000, "{first}");
            assert!(second > 2 * first, "slow start has sent as much before it hears of the first");
        }
        assert_eq!(RecoveryLosses::on(1000, 1000, RTT).packets[0], 1800);
    }
}
