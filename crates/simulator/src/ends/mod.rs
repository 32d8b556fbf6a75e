//! Both ends of a flow, with the way back between them, for each transport.

mod tcp;
mod udt;

use std::fmt::Debug;

use landspeed_record::TcpSample;
use landspeed_record::units::{Bytes, Nanos};

use crate::link::PacketFate;
use crate::receiver::ReceiverCounts;
use crate::scenario::{SimulatedProtocol, SimulationError, SimulationScenario};
use crate::sender::SenderCounts;
use tcp::TcpEnds;
use udt::UdtEnds;

/// Puts a packet on the line and returns its fate. Takes the packet's number and its size as an IP packet in bytes.
pub(crate) type PacketSink<'a> = dyn FnMut(u64, u16) -> PacketFate + 'a;

/// Both ends of a flow. The connection is open from the start, as on real hosts before a run.
///
/// Packets of the sender go over the line, which flows share. Answers of the receiver go over the flow's own way back,
/// which loses nothing and takes the flow's own delay.
pub(crate) trait FlowEnds: Debug {
    /// Sends the packets that may leave now.
    fn transmit(&mut self, now: Nanos, line: &mut PacketSink<'_>);

    /// Handles the packet of this number, which has come over the line. Packets come in the order in which they were
    /// sent.
    fn on_packet(&mut self, now: Nanos, number: u64);

    /// Returns when the next answer reaches the sender; [`NEVER`](crate::agenda::NEVER) if none is under way.
    fn next_answer(&self) -> Nanos;

    /// Delivers the next answer to the sender. [`FlowEnds::transmit`] must be called after it.
    fn on_answer(&mut self, now: Nanos);

    /// Returns when the next timer of either end is due; calling [`FlowEnds::on_timer`] too early does no harm.
    fn next_timer(&self) -> Nanos;

    /// Handles the timers due by `now` at either end. [`FlowEnds::transmit`] must be called after it.
    fn on_timer(&mut self, now: Nanos);

    /// Stops sending new data.
    fn stop(&mut self, now: Nanos);

    /// Returns true if all data to send has been acknowledged.
    fn is_done(&self) -> bool;

    /// Returns the payload that an application at the receiver could have read so far.
    fn delivered(&self) -> Bytes;

    /// Returns the sender's state as TCP_INFO would report it, as far as it exists. The caller sets flow, time and
    /// rate.
    fn state(&self) -> TcpSample;

    /// Returns the counts of both ends.
    fn counts(&self) -> (SenderCounts, ReceiverCounts);
}

/// Makes the ends of flow number `flow` of a scenario, which starts now.
pub(crate) fn start(
    scenario: &SimulationScenario,
    flow: usize,
    now: Nanos,
) -> Result<Box<dyn FlowEnds>, SimulationError> {
    let (spec, link) = (&scenario.flows[flow], &scenario.link);
    Ok(match scenario.protocol(flow)? {
        SimulatedProtocol::Tcp(control) => {
            let rtt = link.delay_ns + spec.return_ns;
            let ends = TcpEnds::start(spec, control, now, rtt);
            Box::new(ends.map_err(|reason| SimulationError::Refused { flow, reason })?)
        }
        SimulatedProtocol::Udt(control) => Box::new(UdtEnds::start(spec, control, link, now)),
    })
}
