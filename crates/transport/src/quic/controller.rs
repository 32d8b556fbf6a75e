//! Congestion control by quinn's controllers, whose calls are observed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuicCongestion {
    Cubic,
    NewReno,
    Bbr,
}

/// Observations of a connection's congestion controller that quinn does not report itself.
#[derive(Debug, Default)]
pub(super) struct ControllerObservations {
    /// Packets that the peer acknowledged, in order or not.
    delivered: AtomicU64,
    asked: AtomicBool,
    /// True if the congestion window must no longer limit sending.
    is_open: AtomicBool,
}

impl ControllerObservations {
    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Removes the limit of the congestion window for the rest of the connection. quinn applies the window to the
    /// packet that closes the connection too, but an end that closes must send this packet at once. With a window above
    /// 2^32 bytes, quinn does not pace either.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Returns true if quinn has read the congestion window since the last call of this function. quinn reads the
    /// window before each packet of data. If quinn reads the window and then sends nothing, the window or the pacing
    /// delays data.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }
}

/// The factory of one connection's controller.
pub(super) struct ObservedControllerFactory {
    pub(super) congestion: QuicCongestion,
    pub(super) observations: Arc<ControllerObservations>,
}

impl ControllerFactory for ObservedControllerFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let controller = match self.congestion {
            QuicCongestion::Cubic => Arc::new(CubicConfig::default()).build(now, current_mtu),
            QuicCongestion::NewReno => Arc::new(NewRenoConfig::default()).build(now, current_mtu),
            QuicCongestion::Bbr => Arc::new(BbrConfig::default()).build(now, current_mtu),
        };
        Box::new(ObservedController { controller, observations: Arc::clone(&self.observations) })
    }
}

struct ObservedController {
    controller: Box<dyn Controller>,
    observations: Arc<ControllerObservations>,
}

impl Controller for ObservedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.controller.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.observations.delivered.fetch_add(1, Ordering::Relaxed);
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_acked: Option<u64>) {
        self.controller.on_end_acks(now, in_flight, app_limited, largest_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.controller.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.observations.asked.store(true, Ordering::Relaxed);
        if self.observations.is_open.load(Ordering::Relaxed) { u64::MAX } else { self.controller.window() }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(ObservedController {
            controller: self.controller.clone_box(),
            observations: Arc::clone(&self.observations),
        })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self.controller.into_any()
    }
}
