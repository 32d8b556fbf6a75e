//! Observations of most causes, as the kernel would show them, each with a strength from 0 to 1. The causes of a path
//! that is the limit are in `paths.rs`.

mod path;
mod processors;
mod programs;
mod windows;

use landspeed_record::Cause;
use landspeed_record::units::{BitRate, Nanos};

use crate::watched::WatchedPath;
pub(crate) use path::*;
pub(crate) use processors::*;
pub(crate) use programs::*;
pub(crate) use windows::*;

pub(crate) type CauseFault = (Cause, fn(f64) -> WatchedPath);

pub(crate) const FAULTS: &[CauseFault] = &[
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
    (Cause::SoftirqCore, interrupts_elsewhere),
    (Cause::WindowBelowBdp, capped_window),
    (Cause::CpuQuota, receiver_quota),
    (Cause::CpuQuota, sender_quota),
    (Cause::SlowDisk, disk_of_a_sender),
    (Cause::SlowDisk, disk_of_a_receiver),
    (Cause::MemoryShortage, memory_shortage),
    (Cause::TcpMemory, tcp_memory),
    (Cause::DroppedWindow, dropped_window),
    (Cause::IdleRestart, idle_restart),
    (Cause::Conntrack, conntrack),
    (Cause::SynCookies, syn_cookies),
    (Cause::RequestReply, requests),
];

/// Returns a flow between hosts in one room.
fn near(rate: f64, threads: [f64; 2], cores: [[f64; 2]; 2]) -> WatchedPath {
    WatchedPath::busy(BitRate(rate), Nanos::micros(50), threads, cores)
}

fn between(weak: f64, strong: f64, strength: f64) -> f64 {
    weak * (strong / weak).powf(strength)
}
