//! Tests of connections on a good network, with a peer that is gone, and with packets from a stranger.

mod network;

use landspeed_record::units::Nanos;
use landspeed_udt::packet::{DataPacket, FullAck, HEADER, LossReport, PacketBody, UDP_HEADERS, UdtPacket};
use landspeed_udt::{
    CloseReason, Connection, ConnectionIdentity, Seq, SeqRange, UdtConfig, UdtEvent, UdtSocketId,
};
use network::{CONNECTOR, LISTENER, NetworkImpairments, TestNetwork, bytes, config};
use proptest::prelude::*;

/// Advances the network until `done` returns true, for at most `most`.
fn until(network: &mut TestNetwork, most: Nanos, mut done: impl FnMut(&mut TestNetwork) -> bool) {
    let end = network.now + most;
    while !done(network) {
        assert!(network.step(), "nothing more happens");
        assert!(network.now < end, "it takes too long");
    }
}

fn connected(impairments: NetworkImpairments, config: &UdtConfig) -> TestNetwork {
    let mut network = TestNetwork::new(5, impairments, [config.clone(), config.clone()], Seq::MAX.minus(40));
    until(&mut network, config.connect_patience, |network| {
        network.ends.iter().flatten().filter(|end| end.path().is_some()).count() == 2
    });
    for side in [CONNECTOR, LISTENER] {
        assert_eq!(network.end(side).poll_event(), Some(UdtEvent::Connected));
        assert_eq!(network.end(side).poll_event(), None);
    }
    network
}

/// Sends `length` bytes from one side to the other, and returns the time that this took.
fn transfer(network: &mut TestNetwork, from: usize, length: usize) -> Nanos {
    let (data, start) = (bytes(&mut network.random, length), network.now);
    let (mut written, mut read) = (0, Vec::new());
    until(network, Nanos::secs(600), |network| {
        written += network.end(from).write(&data[written..]).unwrap_or(0);
        let end = network.end(1 - from);
        while !end.peek().is_empty() {
            read.extend_from_slice(end.peek());
            end.consume(end.peek().len());
        }
        read.len() == data.len()
    });
    assert!(read == data);
    network.now - start
}

#[test]
fn a_long_path_is_filled_and_packets_leave_in_batches() {
    // 1 Gb/s of packets of 1500 bytes over a round trip of 40 ms, with a queue of half of that.
    let impairments = NetworkImpairments {
        delay: Nanos::millis(20),
        packet: Nanos::micros(12),
        ..NetworkImpairments::calm()
    };
    let mut network = connected(
        impairments,
        &UdtConfig { send_buffer: 8192, receive_buffer: 8192, ..UdtConfig::default() },
    );
    let took = transfer(&mut network, CONNECTOR, 200_000_000);
    let rate = 200e6 * 8.0 / took.as_secs_f64();
    let counts = network.end(CONNECTOR).counts();
    println!("{:.0} Mb/s, {counts:?}", rate / 1e6);
    assert!(rate > 0.6e9, "{rate} b/s, {counts:?}, {:?}", network.end(CONNECTOR).path());
    assert!(network.largest_batch > 4, "{}", network.largest_batch);
    assert_eq!(counts.ignored, 0);
}

#[test]
fn pairs_show_the_capacity() {
    // The link takes 12 us for a packet: 83,000 packets a second.
    let impairments =
        NetworkImpairments { packet: Nanos::micros(12), loss: 0.02, ..NetworkImpairments::calm() };
    let mut network = connected(impairments, &config());
    transfer(&mut network, CONNECTOR, 7_000_000);
    let path = network.end(CONNECTOR).path().unwrap();
    assert!(path.capacity.0 > 60_000.0 && path.period > Nanos::micros(24), "{path:?}");
}

#[test]
fn a_path_of_most_of_a_second_needs_no_timeout() {
    let impairments = NetworkImpairments { delay: Nanos::millis(400), ..NetworkImpairments::calm() };
    for from in [CONNECTOR, LISTENER] {
        let mut network = connected(impairments, &config());
        transfer(&mut network, from, 100_000);
        let counts = network.end(from).counts();
        assert_eq!((counts.timeouts, counts.sent_again), (0, 0), "{from}");
    }
}

#[test]
fn a_probed_path_gets_the_packets_that_it_carries() {
    // The largest datagram that the path carries, its delay, and the expected packet size with the headers of IPv4
    // and UDP.
    for (largest, delay, expected) in [
        (usize::MAX, Nanos::millis(5), 9500),
        (9000, Nanos::millis(5), 9000),
        (1300, Nanos::millis(5), 1260),
        (600, Nanos::millis(5), 576),
        // The first answer arrives when smaller requests are already in flight.
        (usize::MAX, Nanos::millis(900), 9500),
    ] {
        let impairments = NetworkImpairments { largest, delay, ..NetworkImpairments::calm() };
        let config = UdtConfig {
            mss: 9500,
            probes_path: true,
            connect_patience: Nanos::secs(9),
            ..UdtConfig::default()
        };
        let mut network = connected(impairments, &config);
        let payload = network.end(CONNECTOR).payload();
        assert_eq!(payload, Some(expected - UDP_HEADERS - HEADER), "{impairments:?}");
        assert_eq!(network.end(LISTENER).payload(), payload, "{impairments:?}");
        transfer(&mut network, CONNECTOR, 1_000_000);
    }
}

#[test]
fn a_timeout_sends_the_first_and_the_last_packet() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    network.end(CONNECTOR).write(&[7; 20_000]).unwrap();
    network.step();
    // The data is in flight. Its acknowledgements are lost until the timer has expired once.
    network.impairments.loss = 1.0;
    until(&mut network, Nanos::secs(1), |network| network.end(CONNECTOR).counts().timeouts == 1);
    network.step();
    network.impairments.loss = 0.0;
    until(&mut network, Nanos::secs(2), |network| {
        network.end(CONNECTOR).path().is_some_and(|path| path.flight == 0)
    });
    let counts = network.end(CONNECTOR).counts();
    assert_eq!((counts.sent, counts.sent_again, counts.timeouts), (14, 2, 1));
}

#[test]
fn a_flight_that_is_lost_whole_goes_again_once() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    network.end(CONNECTOR).write(&[7; 20_000]).unwrap();
    network.impairments.loss = 1.0;
    network.step();
    network.impairments.loss = 0.0;
    until(&mut network, Nanos::secs(2), |network| {
        network.end(CONNECTOR).path().is_some_and(|path| path.flight == 0)
    });
    let counts = network.end(CONNECTOR).counts();
    assert_eq!((counts.sent, counts.sent_again, counts.timeouts), (14, 14, 1));
}

#[test]
fn small_writes_share_packets() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    for _ in 0..3000 {
        assert_eq!(network.end(CONNECTOR).write(&[1; 10]), Ok(10));
    }
    let mut read = 0;
    until(&mut network, Nanos::secs(5), |network| {
        read += network.end(LISTENER).read(&mut [0; 65_536]).unwrap();
        read == 30_000
    });
    assert!(network.end(CONNECTOR).counts().sent <= 22, "{:?}", network.end(CONNECTOR).counts());
}

#[test]
fn a_close_waits_for_written_data() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    network.end(CONNECTOR).write(&[7; 60_000]).unwrap();
    let now = network.now;
    network.end(CONNECTOR).close(now);
    assert!(network.end(CONNECTOR).write(&[7]).is_err());
    until(&mut network, Nanos::secs(5), |network| network.end(LISTENER).closed().is_some());
    assert_eq!(network.end(CONNECTOR).closed(), Some(CloseReason::Closed));
    assert_eq!(network.end(LISTENER).closed(), Some(CloseReason::PeerClosed));
    let mut room = vec![0; 200_000];
    assert_eq!(network.end(LISTENER).read(&mut room), Ok(60_000));
}

#[test]
fn a_lost_shutdown_is_sent_again() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    network.end(CONNECTOR).abort();
    network.impairments.loss = 1.0;
    network.step();
    network.impairments.loss = 0.0;
    assert_eq!(network.end(LISTENER).closed(), None);
    until(&mut network, Nanos::secs(5), |network| network.end(LISTENER).closed().is_some());
    assert_eq!(network.end(LISTENER).closed(), Some(CloseReason::PeerClosed));
}

#[test]
fn without_a_listener_there_is_an_error_soon() {
    let identity = ConnectionIdentity { socket: UdtSocketId(1), first_seq: Seq::new(1), seed: 1 };
    let peer = "10.0.0.2:9".parse().unwrap();
    let mut connection = Connection::connect(Nanos(0), UdtConfig::default(), identity, peer);
    let (mut now, mut requests) = (Nanos(0), 0);
    while let Some(next) = connection.next_timeout() {
        now = now.max(next);
        connection.handle_timeout(now);
        requests += std::iter::from_fn(|| connection.poll_transmit(now, 1).map(|_| ())).count();
    }
    assert_eq!((now, requests, connection.closed()), (Nanos::secs(3), 12, Some(CloseReason::NoAnswer)));
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    network.end(CONNECTOR).write(&[1; 5000]).unwrap();
    network.impairments.loss = 1.0;
    let start = network.now;
    while network.step() {}
    for side in [CONNECTOR, LISTENER] {
        assert_eq!(network.end(side).closed(), Some(CloseReason::Silent));
    }
    assert!(network.now - start < Nanos::secs(61), "{:?}", network.now - start);
}

#[test]
fn a_peer_that_is_only_idle_is_not() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    let end = network.now + Nanos::secs(600);
    while network.now < end {
        network.step();
    }
    assert_eq!(network.ends.iter().flatten().filter(|end| end.closed().is_some()).count(), 0);
    transfer(&mut network, LISTENER, 100_000);
}

#[test]
fn a_reader_that_pauses_stops_the_writer_until_it_reads() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    let data = vec![3; 2_000_000];
    let mut written = 0;
    let end = network.now + Nanos::secs(10);
    while network.now < end {
        written += network.end(CONNECTOR).write(&data[written..]).unwrap_or(0);
        network.step();
    }
    // Both buffers of 512 packets are full.
    assert!(written < 1_600_000, "{written}");
    let (mut read, mut room) = (0, vec![0; 4096]);
    until(&mut network, Nanos::secs(20), |network| {
        written += network.end(CONNECTOR).write(&data[written..]).unwrap_or(0);
        read += network.end(LISTENER).read(&mut room).unwrap();
        read == data.len()
    });
}

fn datagram(to: u32, body: PacketBody<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 1500];
    let length = UdtPacket { timestamp: 1, to: UdtSocketId(to), body }.write(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn impossible_packets_are_ignored() {
    let mut network = connected(NetworkImpairments::calm(), &config());
    transfer(&mut network, CONNECTOR, 50_000);
    network.end(CONNECTOR).write(&[1; 20_000]).unwrap();
    network.step();
    let far = Seq::MAX.plus(5000);
    let ack = FullAck { number: 1, next: far, rtt: Nanos(1), rtt_variance: Nanos(1), window: 9, rates: None };
    let mut room = [0; 64];
    let report = LossReport::write(std::iter::once(SeqRange { first: Seq::MAX, last: far }), &mut room);
    let data = DataPacket { seq: far, message: !0, payload: &[1] };
    let forged = [
        datagram(11, PacketBody::Ack(ack)),
        datagram(11, PacketBody::LightAck(far)),
        datagram(11, PacketBody::Nak(report)),
        datagram(11, PacketBody::Ack2(12_345)),
        datagram(11, PacketBody::Data(data)),
        datagram(12, PacketBody::Shutdown),
        datagram(12, PacketBody::KeepAlive),
        vec![0xff; 40],
    ];
    let (now, count) = (network.now, forged.len() as u64);
    forged.iter().for_each(|datagram| network.end(CONNECTOR).handle(now, datagram));
    assert_eq!(network.end(CONNECTOR).counts().ignored, count);
    let mut read = 0;
    until(&mut network, Nanos::secs(5), |network| {
        read += network.end(LISTENER).read(&mut [0; 65_536]).unwrap();
        read == 20_000
    });
    let counts = network.end(CONNECTOR).counts();
    assert_eq!((counts.sent_again, counts.naks, counts.timeouts), (0, 0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that packets from a stranger who knows the socket identifier cause no panic and only a bounded amount
    /// of work.
    #[test]
    fn any_packets_do_not_panic(
        packets in prop::collection::vec((0u8..12, any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 1..60),
    ) {
        let mut network = connected(NetworkImpairments::calm(), &config());
        network.end(CONNECTOR).write(&[1; 30_000]).unwrap();
        network.step();
        for (kind, near, information) in packets {
            let mut datagram = vec![0; 16];
            datagram[..2].copy_from_slice(&[0x80, kind]);
            if kind > 8 {
                // Data near the window.
                let seq = Seq::MAX.minus(40).plus(u32::from(information.len() as u8) * 3);
                datagram[..4].copy_from_slice(&seq.to_wire().to_be_bytes());
            }
            datagram[12..16].copy_from_slice(&11u32.to_be_bytes());
            if near {
                datagram.extend_from_slice(&Seq::MAX.minus(30).to_wire().to_be_bytes());
            }
            datagram.extend_from_slice(&information);
            let now = network.now;
            network.end(CONNECTOR).handle(now, &datagram);
            network.step();
            let mut room = vec![0; 40_000];
            let _ = network.end(CONNECTOR).read(&mut room);
        }
    }
}
