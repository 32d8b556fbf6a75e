//! A flow: its two ends, and the way back between them.

use std::collections::VecDeque;

use landspeed_record::TcpSample;
use landspeed_units::{Bytes, Nanos};

use crate::agenda::NEVER;
use crate::link::Fate;
use crate::network::Network;
use crate::output::{FlowOutcome, FlowSample};
use crate::packet::{Ack, Packet};
use crate::receiver::Receiver;
use crate::scenario::{FlowSpec, Scenario, ScenarioError};
use crate::sender::Sender;

#[derive(Debug)]
pub(crate) struct Flow {
    number: u16,
    spec: FlowSpec,
    /// From its start on.
    sender: Option<Sender>,
    receiver: Receiver,
    /// Acknowledgements on their way back.
    acks: VecDeque<Ack>,
    seen: FlowOutcome,
    /// Segments in order at the last sample.
    sampled: u64,
}

impl Flow {
    pub(crate) fn new(number: u16, spec: &FlowSpec) -> Self {
        let seen =
            FlowOutcome { control: spec.control.clone(), start_ns: spec.start_ns, ..FlowOutcome::default() };
        Flow {
            number,
            spec: spec.clone(),
            sender: None,
            receiver: Receiver::new(spec.receiver),
            acks: VecDeque::new(),
            seen,
            sampled: 0,
        }
    }

    pub(crate) fn start(
        &mut self,
        now: Nanos,
        scenario: &Scenario,
        network: &mut Network,
    ) -> Result<(), ScenarioError> {
        let flow = usize::from(self.number);
        let rtt = scenario.link.delay_ns + self.spec.return_ns;
        let sender = Sender::new(&self.spec, scenario.control(flow)?, now, rtt)
            .map_err(|reason| ScenarioError::Refused { flow, reason })?;
        self.sender = Some(sender);
        self.transmit(now, network);
        Ok(())
    }

    /// Nothing new from now on.
    pub(crate) fn stop(&mut self, now: Nanos) {
        if let Some(sender) = &mut self.sender {
            sender.stop();
            self.look_if_done(now);
        }
    }

    pub(crate) fn on_packet(&mut self, now: Nanos, packet: &Packet) {
        let ack = self.receiver.on_segment(now, packet.seq);
        self.send_back(ack);
    }

    /// The next acknowledgement reaches the sender.
    pub(crate) fn on_ack(&mut self, now: Nanos, network: &mut Network) {
        let (Some(ack), Some(sender)) = (self.acks.pop_front(), &mut self.sender) else { return };
        sender.on_ack(now, &ack);
        self.transmit(now, network);
        self.look_if_done(now);
    }

    pub(crate) fn on_timer(&mut self, now: Nanos, network: &mut Network) {
        let ack = self.receiver.on_timer(now);
        self.send_back(ack);
        if let Some(sender) = &mut self.sender {
            sender.on_timer(now);
            self.transmit(now, network);
        }
    }

    /// When the next acknowledgement reaches the sender.
    pub(crate) fn next_ack(&self) -> Nanos {
        self.acks.front().map_or(NEVER, |ack| ack.arrives)
    }

    /// When the next timer of either end is due.
    pub(crate) fn next_timer(&self) -> Nanos {
        let sender = self.sender.as_ref().map_or(NEVER, Sender::next_timer);
        sender.min(self.receiver.next_timer())
    }

    fn send_back(&mut self, ack: Option<Ack>) {
        let way_back = self.spec.return_ns;
        self.acks.extend(ack.map(|ack| Ack { arrives: ack.arrives + way_back, ..ack }));
    }

    fn transmit(&mut self, now: Nanos, network: &mut Network) {
        let Some(sender) = &mut self.sender else { return };
        let seen = &mut self.seen;
        let packet =
            Packet { seq: 0, leaves: Nanos(0), flow: self.number, size: self.spec.mtu_bytes, is_lost: false };
        sender.transmit(now, |seq| match network.send(now, Packet { seq, ..packet }) {
            Fate::Arrives => {}
            Fate::NoRoom => seen.no_room += 1,
            Fate::Lost => seen.lost += 1,
        });
    }

    fn look_if_done(&mut self, now: Nanos) {
        if self.seen.finished_ns.is_none() && self.sender.as_ref().is_some_and(Sender::is_done) {
            self.seen.finished_ns = Some(now);
        }
    }

    pub(crate) fn samples(&self) -> &[FlowSample] {
        &self.seen.samples
    }

    /// Takes a sample, if the flow has started.
    pub(crate) fn sample(&mut self, now: Nanos) {
        let Some(sender) = &self.sender else { return };
        let mss = u64::from(self.spec.segment_bytes());
        let (sk, counts) = (sender.sock(), sender.counts());
        let goodput_bytes = Bytes((self.receiver.in_order() - self.sampled) * mss);
        self.sampled = self.receiver.in_order();
        let previous = self.seen.samples.last().map_or(self.spec.start_ns, |sample| sample.at_ns);
        let tcp = TcpSample {
            flow: u32::from(self.number),
            at_ns: now - self.spec.start_ns,
            rtt_ns: Nanos::micros(u64::from(sk.srtt_us >> 3)),
            min_rtt_ns: (sk.rtt_min > 0).then(|| Nanos::micros(sk.rtt_min.into())),
            cwnd_segments: sk.snd_cwnd,
            ssthresh_segments: sk.snd_ssthresh,
            mss_bytes: Bytes(mss),
            retransmits: counts.retransmits,
            acked_bytes: Bytes(sender.acked() * mss),
            delivery_rate_bps: goodput_bytes.per(now - previous),
            ..TcpSample::default()
        };
        self.seen.samples.push(FlowSample { at_ns: now, goodput_bytes, tcp });
    }

    /// All that was seen; `under_way` are its packets on the lines.
    pub(crate) fn finish(self, under_way: u64) -> FlowOutcome {
        FlowOutcome {
            sender: self.sender.map(|sender| sender.counts()).unwrap_or_default(),
            receiver: self.receiver.counts(),
            under_way,
            ..self.seen
        }
    }
}
