//! Both ends of a flow, and what is on the way back between them: a transport each.

mod tcp;
mod udt;

use std::fmt::Debug;

use landspeed_record::TcpSample;
use landspeed_units::{Bytes, Nanos};

use crate::link::Fate;
use crate::receiver::ReceiverCounts;
use crate::scenario::{Protocol, Scenario, ScenarioError};
use crate::sender::SenderCounts;
use tcp::TcpEnds;
use udt::UdtEnds;

/// Puts a packet on the line and says what becomes of it. It takes the packet's number and its size in bytes of IP.
pub(crate) type Line<'a> = dyn FnMut(u64, u16) -> Fate + 'a;

/// Both ends of a flow. The connection is open from the start, as those of real hosts are before a run.
///
/// What the sender sends goes over the line, which it shares with others. What the receiver answers is on a way of its own, which loses
/// nothing and takes the flow's own delay.
pub(crate) trait Ends: Debug {
    /// Sends what may leave now.
    fn transmit(&mut self, now: Nanos, line: &mut Line<'_>);

    /// The packet of this number has come over the line. Packets come in the order in which they were sent.
    fn on_packet(&mut self, now: Nanos, number: u64);

    /// When the next answer reaches the sender; [`NEVER`](crate::agenda::NEVER) where none is under way.
    fn next_answer(&self) -> Nanos;

    /// The next answer reaches the sender: [`Ends::transmit`] is due after it.
    fn on_answer(&mut self, now: Nanos);

    /// When the next timer of either end is due; too early does no harm.
    fn next_timer(&self) -> Nanos;

    /// Does what is due by `now` at either end: [`Ends::transmit`] is due after it.
    fn on_timer(&mut self, now: Nanos);

    /// Nothing new from now on.
    fn stop(&mut self, now: Nanos);

    /// Whether everything that there was to send has been acknowledged.
    fn is_done(&self) -> bool;

    /// Payload that an application at the receiver could have read so far.
    fn delivered(&self) -> Bytes;

    /// The sender as TCP_INFO would show it, or as much of that as it has. Flow, time and rate are the caller's to fill in.
    fn state(&self) -> TcpSample;

    /// What both ends have counted.
    fn counts(&self) -> (SenderCounts, ReceiverCounts);
}

/// The ends of flow number `flow` of a scenario, which starts now.
pub(crate) fn start(scenario: &Scenario, flow: usize, now: Nanos) -> Result<Box<dyn Ends>, ScenarioError> {
    let (spec, link) = (&scenario.flows[flow], &scenario.link);
    Ok(match scenario.protocol(flow)? {
        Protocol::Tcp(control) => {
            let rtt = link.delay_ns + spec.return_ns;
            let ends = TcpEnds::start(spec, control, (now, rtt));
            Box::new(ends.map_err(|reason| ScenarioError::Refused { flow, reason })?)
        }
        Protocol::Udt(control) => Box::new(UdtEnds::start((spec, control), link, now)),
    })
}
