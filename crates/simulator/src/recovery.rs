//! The time that a congestion control takes to return to its full window after one loss: by formula, and simulated.

use landspeed_record::units::{BitRate, Bytes, Nanos};

use crate::link::LinkSpec;
use crate::loss::LossSpec;
use crate::output::SimulatedFlowSample;
use crate::scenario::{FlowSpec, SimulationError, SimulationScenario};
use crate::simulation::simulate_until;

/// Returns Reno's recovery time by the formula of feng-2003, section 4.2 and Table 1. The window before the loss was
/// rate times RTT. It is halved, and then grows by one segment per RTT, so `T = W / 2 * RTT = C * RTT^2 / (16 *
/// MSS)`.
///
/// The paper's row for a LAN assumes an RTT of 1 ms, although the RTT measured there was 38 to 50 us.
pub fn recovery_time(rate: BitRate, rtt: Nanos, segment: Bytes) -> Nanos {
    Nanos((full_window(rate, rtt, segment) / 2.0 * rtt.0 as f64) as u64)
}

/// Returns the full window W of feng-2003's formula: the number of segments that the path holds without a queue.
pub fn full_window(rate: BitRate, rtt: Nanos, segment: Bytes) -> f64 {
    rate.0 * rtt.as_secs_f64() / 8.0 / segment.0.max(1) as f64
}

/// The length of the headers of IPv4 and TCP, in bytes. Timestamps are not included, because the formula ignores them.
const HEADERS: u16 = 40;
/// The number of full windows of segments that are sent before the loss. By then the window is full, because slow
/// start from ten segments sends less than two windows.
const FULL_AFTER_WINDOWS: u64 = 4;
/// The number of RTTs that are allowed for the window to become full. A doubling window is full sooner.
const FULL_AFTER_ROUND_TRIPS: u64 = 60;
/// A path for a flow whose window is exactly the data that the path holds, so that there is no queue.
#[derive(Debug, Clone, Copy)]
pub struct FullPath {
    pub rate_bps: BitRate,
    pub rtt_ns: Nanos,
    pub mtu_bytes: u16,
}

impl FullPath {
    /// Returns the payload of a packet; `None` if the MTU leaves no room for payload.
    fn segment(&self) -> Option<Bytes> {
        let payload = self.mtu_bytes.checked_sub(HEADERS).filter(|payload| *payload > 0)?;
        Some(Bytes(payload.into()))
    }

    /// Returns Reno's recovery time on this path by feng-2003's formula; `None` if a packet has no room for payload.
    pub fn formula(&self) -> Option<Nanos> {
        Some(recovery_time(self.rate_bps, self.rtt_ns, self.segment()?))
    }
}

/// Simulates one loss, packet by packet, and returns the time until the congestion control `control` has its full
/// window again. Returns `None` if that takes longer than `within`, or if a packet has no room for payload. Calls
/// `on_time` with the simulated time, about once a round trip.
///
/// # Errors
/// Returns an error if the control or the path cannot be simulated.
pub fn simulated_recovery(
    control: &str,
    path: FullPath,
    within: Nanos,
    mut on_time: impl FnMut(Nanos),
) -> Result<Option<Nanos>, SimulationError> {
    let Some(segment) = path.segment() else { return Ok(None) };
    let lasts = Nanos(within.0 + path.rtt_ns.0 * FULL_AFTER_ROUND_TRIPS);
    let scenario = one_loss(control, path, segment, lasts);
    let mut watch = RecoveryWatch {
        window: full_window(path.rate_bps, path.rtt_ns, segment) as u32,
        lost: None,
        back: None,
    };
    simulate_until(&scenario, |flows| {
        flows.iter().filter_map(|flow| flow.samples().last()).for_each(|last| on_time(last.at_ns));
        flows.iter().any(|flow| watch.is_back(flow.samples()))
    })?;
    Ok(watch.back.filter(|back| *back <= within))
}

/// Detects the recovery of a flow: the first loss, and then the return to the full window.
struct RecoveryWatch {
    /// The window to which the flow must return, in segments: the number that the path holds, or the window before
    /// the loss if that was smaller.
    window: u32,
    lost: Option<Nanos>,
    /// The time from the first sample that shows the loss to the first sample with the full window.
    back: Option<Nanos>,
}

impl RecoveryWatch {
    fn is_back(&mut self, samples: &[SimulatedFlowSample]) -> bool {
        let Some((last, before)) = samples.split_last() else { return false };
        if self.lost.is_none() && last.tcp.retransmits > 0 {
            self.lost = Some(last.at_ns);
            self.window = self.window.min(before.last().map_or(0, |before| before.tcp.cwnd_segments));
        }
        let full = self.lost.filter(|_| last.tcp.cwnd_segments >= self.window);
        self.back = full.map(|lost| last.at_ns - lost);
        self.back.is_some()
    }
}

fn one_loss(control: &str, path: FullPath, segment: Bytes, lasts: Nanos) -> SimulationScenario {
    let window = full_window(path.rate_bps, path.rtt_ns, segment) as u64;
    let flow = FlowSpec {
        contestant: control.to_owned(),
        return_ns: path.rtt_ns,
        mtu_bytes: path.mtu_bytes,
        header_bytes: HEADERS,
        // Both limits are the number of segments that the path holds, so that there is no queue at the loss or later.
        initial_ssthresh: Some(window as u32),
        receive_window_bytes: Some(Bytes(window * segment.0)),
        ..FlowSpec::default()
    };
    let link = LinkSpec {
        rate_bps: path.rate_bps,
        delay_ns: Nanos(0),
        queue_bytes: Bytes((path.rate_bps.0 / 8.0 * path.rtt_ns.as_secs_f64()) as u64),
        loss: LossSpec::List { packets: vec![window * FULL_AFTER_WINDOWS] },
    };
    SimulationScenario {
        link,
        flows: vec![flow],
        duration_ns: lasts,
        sample_ns: path.rtt_ns,
        probe: None,
        traffic: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of `feng.table1`: rate in Gb/s, RTT in ms, segment in bytes, recovery time in seconds.
    const TABLE_1: [(f64, u64, u64, f64); 5] = [
        (10.0, 1, 1460, 0.428_08),
        (10.0, 120, 1460, 6164.4),
        (10.0, 120, 8960, 1004.5),
        (10.0, 180, 1460, 13869.9),
        (10.0, 180, 8960, 2260.0),
    ];

    #[test]
    fn gives_the_papers_table() {
        for (gbps, rtt_ms, segment, seconds) in TABLE_1 {
            let time = recovery_time(BitRate(gbps * 1e9), Nanos::millis(rtt_ms), Bytes(segment));
            assert!((time.as_secs_f64() / seconds - 1.0).abs() < 1e-4, "{rtt_ms} ms, {segment} B: {time}");
        }
    }

    #[test]
    fn a_control_that_is_not_back_in_time_is_given_up() {
        let path = FullPath { rate_bps: BitRate(1e8), rtt_ns: Nanos::millis(120), mtu_bytes: 9000 };
        let back = |control, within| simulated_recovery(control, path, within, |_| {});
        assert_eq!(back("reno", Nanos::secs(3)), Ok(None), "half a window of 167 segments takes ten seconds");
        let scalable = back("scalable", Nanos::secs(10)).expect("a path").expect("an eighth, by hundredths");
        assert!(scalable < Nanos::secs(4), "{scalable}");
        assert!(back("warp", Nanos::secs(1)).is_err());
        let no_room = FullPath { mtu_bytes: 40, ..path };
        assert_eq!(simulated_recovery("reno", no_room, Nanos::secs(1), |_| {}), Ok(None));
    }

    #[test]
    fn a_simulation_reports_its_progress() {
        let path = FullPath { rate_bps: BitRate(1e8), rtt_ns: Nanos::millis(120), mtu_bytes: 9000 };
        let mut times = Vec::new();
        simulated_recovery("reno", path, Nanos::secs(3), |time| times.push(time)).expect("a path");
        // Three seconds of round trips after the time in which the window becomes full.
        assert!(times.len() > 25 && times.is_sorted(), "{times:?}");
        assert!(times.last() > Some(&Nanos::secs(3)), "{times:?}");
    }
}
