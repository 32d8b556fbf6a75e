//! Both ends of a flow and the way back between them, for each transport.

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

/// A function that puts a packet on the line and returns the packet's fate. Its arguments are the packet's number and
/// its size as an IP packet, in bytes.
pub(crate) type PacketSink<'a> = dyn FnMut(u64, u16) -> PacketFate + 'a;

/// Both ends of a flow. The connection is open from the start, as on real hosts before a run.
///
/// Packets of the sender cross the line, which all flows share. Answers of the receiver take the flow's own way back,
/// which has a fixed delay and loses no packet.
pub(crate) trait FlowEnds: Debug {
    /// Sends the packets that may leave now.
    fn transmit(&mut self, now: Nanos, line: &mut PacketSink<'_>);

    /// Handles the arrival of packet `number` from the line. Packets arrive in the order in which they were sent.
    fn on_packet(&mut self, now: Nanos, number: u64);

    /// Returns the time at which the next answer reaches the sender; [`NEVER`](crate::agenda::NEVER) if none is in
    /// flight.
    fn next_answer(&self) -> Nanos;

    /// Delivers the next answer to the sender. The caller must then call [`FlowEnds::transmit`].
    fn on_answer(&mut self, now: Nanos);

    /// Returns the time of the next timer of either end. Calling [`FlowEnds::on_timer`] too early does no harm.
    fn next_timer(&self) -> Nanos;

    /// Handles the timers of both ends that are due by `now`. The caller must then call [`FlowEnds::transmit`].
    fn on_timer(&mut self, now: Nanos);

    /// Stops sending new data.
    fn stop(&mut self, now: Nanos);

    /// Returns true if all data to send has been acknowledged.
    fn is_done(&self) -> bool;

    /// Returns the amount of payload that an application at the receiver could have read so far.
    fn delivered(&self) -> Bytes;

    /// Returns the sender's state as TCP_INFO would report it, where the transport has such a state. The caller sets
    /// flow, time and rate.
    fn state(&self) -> TcpSample;

    /// Returns the counts of both ends.
    fn counts(&self) -> (SenderCounts, ReceiverCounts);
}

/// Creates the ends of flow `flow` of a scenario. The flow starts at `now`.
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
