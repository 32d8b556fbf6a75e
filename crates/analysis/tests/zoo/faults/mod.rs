//! Each cause as the kernel would show it, at a strength from 0 to 1.

mod datagrams;
mod path;
mod processors;
mod programs;
mod windows;

use landspeed_record::Cause;

use super::Zoo;
pub(crate) use datagrams::{fragmentation, udp_receive_buffer};
pub(crate) use path::{burst_loss, mtu_black_hole, qdisc_drops, random_loss, rate_limit, reordering};
pub(crate) use processors::{
    competing_load, low_clock, offloads_off, softirq_core, software_checksum, stolen,
};
pub(crate) use programs::{listen_backlog, nagle, slow_reader, slow_writer, tiny_segments, tiny_writes};
pub(crate) use windows::{
    congestion_window, paced, receive_buffer, send_buffer, send_buffer_below_bdp, window_alignment,
    window_below_bdp,
};

pub(crate) type Fault = (Cause, fn(f64) -> Zoo);

pub(crate) const FAULTS: &[Fault] = &[
    (Cause::ReceiveBuffer, receive_buffer),
    (Cause::SendBuffer, send_buffer),
    (Cause::SlowReader, slow_reader),
    (Cause::SlowWriter, slow_writer),
    (Cause::TinyWrites, tiny_writes),
    (Cause::TinyWrites, tiny_segments),
    (Cause::NagleDelayedAck, nagle),
    (Cause::SoftirqCore, softirq_core),
    (Cause::CompetingLoad, competing_load),
    (Cause::RateLimit, rate_limit),
    (Cause::RandomLoss, random_loss),
    (Cause::BurstLoss, burst_loss),
    (Cause::Reordering, reordering),
    (Cause::WindowBelowBdp, window_below_bdp),
    (Cause::WindowBelowBdp, send_buffer_below_bdp),
    (Cause::MtuBlackHole, mtu_black_hole),
    (Cause::OffloadsOff, offloads_off),
    (Cause::SoftwareChecksum, software_checksum),
    (Cause::Fragmentation, fragmentation),
    (Cause::UdpReceiveBuffer, udp_receive_buffer),
    (Cause::ListenBacklog, listen_backlog),
    (Cause::WindowAlignment, window_alignment),
    (Cause::QdiscDrops, qdisc_drops),
    (Cause::CongestionControl, congestion_window),
    (Cause::CongestionControl, paced),
    (Cause::CpuFrequency, low_clock),
];

fn between(weak: f64, strong: f64, strength: f64) -> f64 {
    weak * (strong / weak).powf(strength)
}
