//! Tests of packets that pass one line.

use proptest::prelude::*;

use super::*;

fn link(rate: f64, queue_bytes: u64) -> SimulatedLink {
    let spec = LinkSpec {
        rate_bps: BitRate(rate),
        delay_ns: Nanos::millis(1),
        queue_bytes: Bytes(queue_bytes),
        loss: LossSpec::None,
    };
    SimulatedLink::new(&spec)
}

fn packet(seq: u64, size: u16) -> SimulatedPacket {
    SimulatedPacket { seq, leaves: Nanos(0), flow: 0, size, is_lost: false }
}

#[test]
fn a_line_takes_its_time_without_accumulating_rounding_errors() {
    let mut link = link(3e9, 1 << 20);
    for seq in 0..300 {
        assert_eq!(link.admit(Nanos(0), packet(seq, 1001)), PacketFate::Arrives);
    }
    // 300 packets of 8008 bits take 800.8 us, though a single one takes 2669.33 ns.
    assert_eq!(link.free_at, Nanos(800_800));
    assert_eq!(link.next(), Nanos(1_002_669));
}

#[test]
fn an_idle_line_takes_anything_and_a_full_queue_nothing() {
    let mut link = link(1e9, 100);
    assert_eq!(link.admit(Nanos(0), packet(0, 1500)), PacketFate::Arrives);
    assert_eq!(link.admit(Nanos(11_999), packet(1, 40)), PacketFate::NoRoom, "its last bit is on the line");
    assert_eq!(link.admit(Nanos(12_000), packet(2, 1500)), PacketFate::Arrives);
    assert_eq!(link.take(Nanos(1_012_000)).map(|p| p.seq), Some(0));
    assert_eq!(link.next(), Nanos(1_024_000));
}

#[test]
fn a_lost_packet_has_used_the_line() {
    let spec = LinkSpec {
        rate_bps: BitRate(1e9),
        delay_ns: Nanos(0),
        queue_bytes: Bytes(9000),
        loss: LossSpec::List { packets: vec![1] },
    };
    let mut link = SimulatedLink::new(&spec);
    assert_eq!(link.admit(Nanos(0), packet(0, 1500)), PacketFate::Lost);
    assert_eq!(link.admit(Nanos(0), packet(1, 1500)), PacketFate::Arrives);
    assert_eq!(link.under_way().count(), 1);
    assert!(link.take(Nanos(12_000)).is_none());
    assert_eq!(link.take(Nanos(24_000)).map(|p| p.leaves), Some(Nanos(24_000)));
}

proptest! {
    #[test]
    fn the_queue_keeps_its_bound_and_nothing_is_made_or_unmade(
        packets in prop::collection::vec((0..30_000_u64, 40..9000_u16), 1..300),
        most in 1..20_u64,
    ) {
        let (mut link, mut now) = (link(1e9, most * 9000), Nanos(0));
        let (mut taken, mut arrived) = (Vec::new(), Vec::new());
        for (seq, (gap, size)) in packets.into_iter().enumerate() {
            now += Nanos(gap);
            while link.next() <= now {
                arrived.extend(link.take(link.next()).map(|p| p.seq));
            }
            if link.admit(now, packet(seq as u64, size)) == PacketFate::Arrives {
                taken.push(seq as u64);
            }
            prop_assert!(link.waiting(now).bytes <= most * 9000);
        }
        while link.next() < NEVER {
            arrived.extend(link.take(link.next()).map(|p| p.seq));
        }
        prop_assert_eq!(&arrived, &taken);
        prop_assert_eq!(link.waiting(NEVER), QueueOccupancy::default());
        let counts = link.counts();
        prop_assert_eq!(counts.arrived, counts.no_room + arrived.len() as u64);
    }
}
