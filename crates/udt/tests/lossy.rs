//! Tests of connections over a network that loses, delays, duplicates and reorders packets. Every byte must arrive,
//! in order, or both ends must report that it did not. Neither end may wait forever.
//!
//! `make lossy-udt` tries 10,000 networks.

mod network;

use landspeed_record::units::Nanos;
use landspeed_udt::{CloseReason, Seq, UdtConfig};
use network::{CONNECTOR, LISTENER, NetworkImpairments, TestNetwork, bytes, config};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The application at one end: the data that it writes and the data that it has read.
struct TestApplication {
    writes: Vec<u8>,
    written: usize,
    hash: blake3::Hasher,
    read: usize,
    /// The probability that the application reads when it could.
    diligence: f64,
}

impl TestApplication {
    fn new(random: &mut ChaCha8Rng, length: usize) -> Self {
        let diligence = if random.random_bool(0.3) { 0.02 } else { 1.0 };
        let writes = bytes(random, length);
        TestApplication { writes, written: 0, hash: blake3::Hasher::new(), read: 0, diligence }
    }

    fn act(&mut self, network: &mut TestNetwork, side: usize) {
        if network.ends[side].is_none() {
            return;
        }
        let piece = (self.writes.len() - self.written).min(network.random.random_range(1..100_000));
        if let Ok(written) = network.end(side).write(&self.writes[self.written..][..piece]) {
            self.written += written;
        }
        if network.random.random_bool(self.diligence) {
            let end = network.end(side);
            while !end.peek().is_empty() {
                let piece = end.peek();
                self.hash.update(piece);
                self.read += piece.len();
                end.consume(piece.len());
            }
        }
    }
}

struct TransferPlan {
    impairments: NetworkImpairments,
    configs: [UdtConfig; 2],
    first: Seq,
    lengths: [usize; 2],
}

fn plan(random: &mut ChaCha8Rng) -> TransferPlan {
    let rough = random.random_bool(0.8);
    let mut chance = |most: f64| if rough { random.random_range(0.0..most) } else { 0.0 };
    let (loss, doubled, reordered) = (chance(0.2), chance(0.1), chance(0.1));
    let delay = Nanos(random.random_range(100_000..80_000_000));
    let packet = Nanos(random.random_range(2_000..200_000));
    let queue = Nanos(random.random_range(1_000_000..100_000_000));
    let impairments =
        NetworkImpairments { loss, doubled, reordered, delay, packet, queue, largest: usize::MAX };
    let mut one = || {
        let mss = [200, 576, 1500, 9000][random.random_range(0..4)];
        let [send_buffer, receive_buffer] = [0; 2].map(|_| random.random_range(8..600));
        UdtConfig { mss, send_buffer, receive_buffer, ..config() }
    };
    let configs = [one(), one()];
    let mss = configs[0].mss.min(configs[1].mss) as usize;
    let first = if random.random_bool(0.5) {
        Seq::MAX.minus(random.random_range(0..200))
    } else {
        Seq::new(random.random())
    };
    let lengths = [
        random.random_range(1..300 * mss),
        if random.random() { random.random_range(1..100 * mss) } else { 0 },
    ];
    TransferPlan { impairments, configs, first, lengths }
}

/// Runs a transfer over the network with the seed `seed`. Returns true if every byte arrived and the connection
/// closed in order.
fn run(seed: u64) -> bool {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let plan = plan(&mut random);
    let mut apps = plan.lengths.map(|length| TestApplication::new(&mut random, length));
    let mut network = TestNetwork::new(seed, plan.impairments, plan.configs, plan.first);
    let end = network.now + Nanos::secs(900);
    while network.step() {
        assert!(network.now < end, "seed {seed}: still waiting: {:?}", network.ends);
        for (side, app) in apps.iter_mut().enumerate() {
            app.act(&mut network, side);
        }
        let has_all = apps[CONNECTOR].read == plan.lengths[LISTENER];
        if has_all && apps[CONNECTOR].written == plan.lengths[CONNECTOR] {
            let now = network.now;
            network.end(CONNECTOR).close(now);
        }
    }
    // No event is left, but data that has arrived can still be read.
    apps.iter_mut().for_each(|app| app.diligence = 1.0);
    for (side, app) in apps.iter_mut().enumerate() {
        app.act(&mut network, side);
    }
    let reasons = [0, 1].map(|side| network.ends[side].as_ref().map(|end| end.closed().expect("an end")));
    let complete = [0, 1].map(|side| {
        let (wrote, read) = (&apps[side], &apps[1 - side]);
        let is_whole = read.read == wrote.writes.len();
        let arrived = blake3::hash(&wrote.writes[..read.read]);
        assert_eq!(read.hash.finalize(), arrived, "seed {seed}: other bytes than were written");
        is_whole
    });
    if reasons[CONNECTOR] == Some(CloseReason::Closed) {
        assert!(complete[CONNECTOR], "seed {seed}: closed as delivered, and it was not: {reasons:?}");
    }
    complete == [true, true] && reasons[CONNECTOR] == Some(CloseReason::Closed)
}

#[test]
fn every_byte_arrives_or_both_ends_know() {
    let seeds = std::env::var("LANDSPEED_UDT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    let complete = (0..seeds).filter(|seed| run(*seed)).count() as u64;
    println!("{complete} of {seeds} networks delivered everything");
    assert!(complete * 100 >= seeds * 98, "{complete} of {seeds}");
}
