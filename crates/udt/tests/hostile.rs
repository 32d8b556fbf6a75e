//! Tests with strangers that send arbitrary packets: to a listener, to an end whose socket identifier they know, and
//! to an end whose identifier they do not know.
//!
//! `make fuzz-udt` runs more cases.

mod network;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use landspeed_record::units::Nanos;
use landspeed_udt::packet::{
    DataPacket, FullAck, HANDSHAKE, LossReport, PacketBody, RateEstimates, UdtPacket,
};
use landspeed_udt::{
    CloseReason, Connection, ConnectionIdentity, HandshakeListener, IoError, ListenerResponse, Seq, SeqRange,
    UdtEvent, UdtSocketId,
};
use network::{CONNECTOR, LISTENER, NetworkImpairments, TestNetwork, bytes, config};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// An allocator that counts the bytes that each thread holds.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that is ending may no longer have a counter.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the number of bytes that this thread holds, without those of the network.
fn held(network: &TestNetwork) -> isize {
    HELD.with(Cell::get) - network.holds().cast_signed()
}

/// The largest number of bytes that an end may use beyond its buffers. Loss lists have at most one range for every
/// two packets of a window.
const MOST_HELD: isize = 50_000;
/// The number of replies after which an end is considered to send forever. It exceeds two whole windows.
const MOST_REPLIES: usize = 2000;

/// Returns the seeds of the runs. `make fuzz-udt` requests more of them than `usual`.
fn runs(usual: u64) -> impl Iterator<Item = u64> {
    let factor = std::env::var("LANDSPEED_UDT_FUZZ").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    0..usual * factor
}

/// Returns a random number, an edge case, or a number near `word`.
fn word(random: &mut ChaCha8Rng, word: u32) -> u32 {
    let edge =
        [0, 1, 2, 3, 16, 64, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 1];
    match random.random_range(0..5) {
        0 => random.random(),
        1 => *edge.choose(random).expect("there are some"),
        2 => word ^ 1 << random.random_range(0..32),
        3 => word.wrapping_add(random.random_range(0..1200)),
        _ => word.wrapping_sub(random.random_range(0..1200)),
    }
}

/// Changes a datagram in a few places.
fn mutate(random: &mut ChaCha8Rng, datagram: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..4) {
        let words = datagram.len() / 4;
        match random.random_range(0..10) {
            0..6 if words > 0 => {
                let at = 4 * random.random_range(0..words.min(18));
                let mut four = [0; 4];
                four.copy_from_slice(&datagram[at..at + 4]);
                let changed = word(random, u32::from_be_bytes(four));
                datagram[at..at + 4].copy_from_slice(&changed.to_be_bytes());
            }
            6 if words > 0 => datagram[..4].copy_from_slice(&[0x80, random.random_range(0..10), 0, 0]),
            7 => datagram.truncate(random.random_range(0..=datagram.len())),
            8 => {
                let more = random.random_range(1..8);
                (0..more).for_each(|_| datagram.extend_from_slice(&word(random, 0x8000_0005).to_be_bytes()));
            }
            _ => {
                let length = random.random_range(0..120);
                *datagram = bytes(random, length);
            }
        }
    }
}

fn end_of(network: &TestNetwork, side: usize) -> Option<&Connection> {
    network.ends[side].as_ref()
}

/// Lets both ends write, read and poll events, as applications do.
fn act(network: &mut TestNetwork) {
    let mut room = vec![0; 70_000];
    for side in [CONNECTOR, LISTENER] {
        let Some(end) = &mut network.ends[side] else { continue };
        while end.poll_event().is_some() {}
        let _ = end.write(&room[..5000]);
        let _ = end.read(&mut room);
    }
}

/// Runs one connection whose datagrams are randomly changed and repeated.
fn attacked(seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let config = config();
    let first = Seq::MAX.minus(random.random_range(0..300));
    let mut network = TestNetwork::new(seed, NetworkImpairments::calm(), [config.clone(), config], first);
    let mut before = None;
    for _ in 0..random.random_range(1..400) {
        let moment = network.now;
        let steps = (0..100_000).take_while(|_| network.step() && network.now == moment).count();
        assert!(steps < 100_000, "seed {seed}: time does not advance: {:?}", network.ends);
        act(&mut network);
        if network.ends.iter().flatten().filter(|end| end.path().is_some()).count() == 2 {
            before.get_or_insert_with(|| held(&network));
        }
        let seen = network.seen.make_contiguous();
        let Some((side, datagram)) = seen.choose(&mut random) else { continue };
        let (mut side, mut datagram) = (*side, datagram.clone());
        mutate(&mut random, &mut datagram);
        if random.random_bool(0.1) {
            side = 1 - side;
        }
        if side == LISTENER || end_of(&network, side).is_some() {
            network.deliver(side, &datagram);
        }
        if let (Some(before), Some(end)) = (before, end_of(&network, side)) {
            let more = held(&network) - before;
            assert!(more < MOST_HELD, "seed {seed}: {more} bytes: {end:?}");
        }
        if let Some(end) = &mut network.ends[side] {
            let now = network.now;
            let replies = (0..MOST_REPLIES).take_while(|_| end.poll_transmit(now, 16).is_some()).count();
            assert!(replies < MOST_REPLIES, "seed {seed}: it does not stop sending: {end:?}");
        }
    }
}

#[test]
fn changed_datagrams_do_no_harm() {
    runs(600).for_each(attacked);
}

/// Returns a packet with values that are impossible in the current transfer.
fn impossible(random: &mut ChaCha8Rng, first: Seq, to: UdtSocketId) -> Vec<u8> {
    // A window has 512 packets, and no more than 2000 are sent.
    let far = first.plus(random.random_range(4000..1 << 30));
    let before = first.minus(random.random_range(2..1 << 29));
    let seq = *[far, before].choose(random).expect("two");
    let range = SeqRange { first: seq, last: far };
    let range = if range.last.is_before(range.first) { SeqRange { first: far, last: far } } else { range };
    let ack = FullAck {
        number: random.random(),
        next: seq,
        rtt: Nanos::secs(9),
        rtt_variance: Nanos::secs(9),
        window: 2,
        rates: Some(RateEstimates { arrival: 1, capacity: 1 }),
    };
    let message = random.random();
    let mut room = [0; 64];
    let body = match random.random_range(0..6) {
        0 => PacketBody::Ack(ack),
        1 => PacketBody::LightAck(seq),
        2 => PacketBody::Nak(LossReport::write(std::iter::once(range), &mut room)),
        3 => PacketBody::Data(DataPacket { seq, message, payload: &[9; 100] }),
        4 => PacketBody::Ack2(random.random_range(1 << 20..1 << 31)),
        // A shutdown with the right identifier would be valid, so this one gets a wrong identifier.
        _ => return shutdown(UdtSocketId(to.0 ^ 1 << random.random_range(0..31))),
    };
    let mut datagram = vec![0; 200];
    let length = UdtPacket { timestamp: 1, to, body }.write(&mut datagram).expect("there is room");
    datagram.truncate(length);
    datagram
}

fn shutdown(to: UdtSocketId) -> Vec<u8> {
    let mut datagram = vec![0; 20];
    UdtPacket { timestamp: 1, to, body: PacketBody::Shutdown }.write(&mut datagram).expect("there is room");
    datagram
}

/// Writes `piece`, or closes the connection if `piece` is empty. Returns the number of bytes written.
fn write(end: &mut Connection, now: Nanos, piece: &[u8]) -> usize {
    if piece.is_empty() {
        end.close(now);
        return 0;
    }
    let written = end.write(piece);
    assert!(matches!(written, Ok(_) | Err(IoError::Full | IoError::NotOpen)), "{written:?}");
    written.unwrap_or(0)
}

fn read(end: &mut Connection, all: &mut Vec<u8>) {
    let mut room = [0; 5000];
    while let Ok(length @ 1..) = end.read(&mut room) {
        all.extend_from_slice(&room[..length]);
    }
}

/// Runs a transfer during which a stranger sends impossible packets. The transfer must end as it would without them.
fn spoofed(seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let first = Seq::MAX.minus(random.random_range(0..1000));
    let impairments = NetworkImpairments { loss: 0.01, ..NetworkImpairments::calm() };
    let mut network = TestNetwork::new(seed, impairments, [config(), config()], first);
    let data = bytes(&mut random, 1_000_000);
    let (mut written, mut arrived) = (0, Vec::new());
    while network.step() {
        let now = network.now;
        assert!(now < Nanos::secs(1600), "seed {seed}: {:?}", network.ends);
        let piece = &data[written..data.len().min(written + 5000)];
        written += write(network.end(CONNECTOR), now, piece);
        if network.ends.iter().flatten().filter(|end| end.path().is_some()).count() < 2 {
            continue;
        }
        read(network.end(LISTENER), &mut arrived);
        let ends = [(CONNECTOR, UdtSocketId(11)), (LISTENER, UdtSocketId(22))];
        let (side, to) = ends[random.random_range(0..2)];
        network.deliver(side, &impossible(&mut random, first, to));
    }
    assert!(arrived == data, "seed {seed}: {} bytes", arrived.len());
    assert_eq!(network.end(CONNECTOR).closed(), Some(CloseReason::Closed), "seed {seed}");
    while let Some(event) = network.end(LISTENER).poll_event() {
        assert!(!matches!(event, UdtEvent::PeerError(_)));
    }
}

#[test]
fn impossible_packets_change_nothing() {
    runs(60).for_each(spoofed);
}

/// Checks that no reply of a listener is longer than the datagram that it answers, and that any proven request is
/// safe to accept.
#[test]
fn a_listener_is_no_amplifier() {
    let peer = "10.0.0.1:1000".parse().expect("an address");
    for seed in runs(2000) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let config = config();
        let listener = HandshakeListener::new([3; 32]);
        let identity =
            ConnectionIdentity { socket: UdtSocketId(11), first_seq: Seq::new(random.random()), seed };
        let mut connector = Connection::connect(Nanos(0), config.clone(), identity, peer);
        let mut reply = [0; HANDSHAKE];
        for round in 0..4 {
            let now = Nanos::millis(300 * round);
            let Some(transmit) = connector.poll_transmit(now, 1) else { break };
            let (request, mut changed) = (transmit.bytes.to_vec(), transmit.bytes.to_vec());
            if random.random_bool(0.7) {
                mutate(&mut random, &mut changed);
            }
            match listener.handle(now, peer, &changed, &mut reply) {
                ListenerResponse::Reply(length) => assert!(length <= changed.len()),
                ListenerResponse::Ignore => {}
                ListenerResponse::Proven(request) => {
                    let identity = ConnectionIdentity { socket: UdtSocketId(22), ..identity };
                    let mut end = Connection::accept(now, config.clone(), identity, &request);
                    let _ = end.write(&[1; 100_000]);
                    while end.poll_transmit(now, 16).is_some() {}
                }
            }
            if let ListenerResponse::Reply(length) = listener.handle(now, peer, &request, &mut reply) {
                connector.handle(now, &reply[..length]);
            }
        }
    }
}
