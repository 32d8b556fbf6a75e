//! TCP flows: a sender and a receiver that follow Linux's.

use std::collections::VecDeque;

use landspeed_congestion::{ControlRefusal, NativeControl};
use landspeed_record::TcpSample;
use landspeed_record::units::{Bytes, Nanos};

use super::{FlowEnds, PacketSink};
use crate::agenda::NEVER;
use crate::packet::TcpAck;
use crate::receiver::{ReceiverCounts, TcpReceiver};
use crate::scenario::FlowSpec;
use crate::sender::{SenderCounts, TcpSender};

#[derive(Debug)]
pub(crate) struct TcpEnds {
    sender: TcpSender,
    receiver: TcpReceiver,
    /// Acknowledgements on their way back.
    acks: VecDeque<TcpAck>,
    way_back: Nanos,
    packet: u16,
    segment: u64,
}

impl TcpEnds {
    /// Creates both ends of a connection whose handshake has just measured an RTT of `rtt`.
    pub(super) fn start(
        spec: &FlowSpec,
        control: NativeControl,
        now: Nanos,
        rtt: Nanos,
    ) -> Result<Self, ControlRefusal> {
        Ok(TcpEnds {
            sender: TcpSender::new(spec, control, now, rtt)?,
            receiver: TcpReceiver::new(spec.receiver),
            acks: VecDeque::new(),
            way_back: spec.return_ns,
            packet: spec.mtu_bytes,
            segment: spec.segment_bytes().into(),
        })
    }

    fn send_back(&mut self, ack: Option<TcpAck>) {
        self.acks.extend(ack.map(|ack| TcpAck { arrives: ack.arrives + self.way_back, ..ack }));
    }
}

impl FlowEnds for TcpEnds {
    fn transmit(&mut self, now: Nanos, line: &mut PacketSink<'_>) {
        let packet = self.packet;
        self.sender.transmit(now, |segment| {
            line(segment, packet);
        });
    }

    fn on_packet(&mut self, now: Nanos, segment: u64) {
        let ack = self.receiver.on_segment(now, segment);
        self.send_back(ack);
    }

    fn next_answer(&self) -> Nanos {
        self.acks.front().map_or(NEVER, |ack| ack.arrives)
    }

    fn on_answer(&mut self, now: Nanos) {
        if let Some(ack) = self.acks.pop_front() {
            self.sender.on_ack(now, &ack);
        }
    }

    fn next_timer(&self) -> Nanos {
        self.sender.next_timer().min(self.receiver.next_timer())
    }

    fn on_timer(&mut self, now: Nanos) {
        let ack = self.receiver.on_timer(now);
        self.send_back(ack);
        self.sender.on_timer(now);
    }

    fn stop(&mut self, _: Nanos) {
        self.sender.stop();
    }

    fn is_done(&self) -> bool {
        self.sender.is_done()
    }

    fn delivered(&self) -> Bytes {
        Bytes(self.segment * self.receiver.in_order())
    }

    fn state(&self) -> TcpSample {
        let (sk, counts) = (self.sender.sock(), self.sender.counts());
        TcpSample {
            rtt_ns: Nanos::micros(u64::from(sk.srtt_us >> 3)),
            min_rtt_ns: (sk.rtt_min > 0).then(|| Nanos::micros(sk.rtt_min.into())),
            cwnd_segments: sk.snd_cwnd,
            ssthresh_segments: sk.snd_ssthresh,
            mss_bytes: Bytes(self.segment),
            retransmits: counts.retransmits,
            acked_bytes: Bytes(self.segment * self.sender.acked()),
            ..TcpSample::default()
        }
    }

    fn counts(&self) -> (SenderCounts, ReceiverCounts) {
        (self.sender.counts(), self.receiver.counts())
    }
}
