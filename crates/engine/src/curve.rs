//! Measures two curves at the start and at the end of a run: rate over write size, and RTT over message size. They are
//! shorter than the papers' curves (feng-2003: 32,768 writes per size, 34 GB in all) and take a few seconds.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Cell, Line, SweepPoint, Trial};
use landspeed_transport::Delivery;
use landspeed_workload::{pingpong, sweep};

use crate::factors::transport_of;
use crate::trial::TrialTiming;
use crate::{Error, Pair, RecordSink, RunSpec};

const WRITES: u64 = 4096;
const SIZES: [u64; 6] = [128, 512, 1448, 8192, 16_384, 65_536];
const MESSAGES: &str = "1,64,512,1024";
/// Sizes of datagrams, in bytes: at least 16 for landspeed's header, and at most what a datagram can hold.
const DATAGRAMS: [u64; 6] = [128, 512, 1472, 8192, 16_384, 32_768];
const DATAGRAM_MESSAGES: &str = "16,64,512,1024";

/// Duration of a ping-pong, as a multiple of its duration in a trial.
const PINGS: u64 = 5;

/// Returns the approximate duration of both curves: the writes at the rate of `link`, if it reports one, and a
/// ping-pong of each size. The writes of one size take at most as long as the stream of a trial.
pub(crate) fn time(timing: TrialTiming, link: Option<BitRate>) -> Nanos {
    let bits = (8 * WRITES * SIZES.iter().sum::<u64>()) as f64;
    let writes = Nanos(link.map_or(0.0, |rate| bits / rate.0 * 1e9) as u64);
    let pings = PINGS * MESSAGES.split(',').count() as u64;
    timing.ping.times(pings) + writes.min(timing.stream.times(SIZES.len() as u64))
}

/// Measures both curves of `cell`, which is already set, and records them as one trial of `step`.
pub(crate) fn curve(
    pair: &Pair<'_>,
    cell: &Cell,
    step: &str,
    timing: TrialTiming,
    at_ns: Nanos,
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    let what = "measuring over sizes: rate over write size, round trip over message size".to_owned();
    sink.line(&Line::Trying { step: step.to_owned(), what, at_ns, blocks: None })?;
    let datagrams = transport_of(&cell.flow)?.about().delivery == Delivery::Datagrams;
    let (sizes, messages) = if datagrams { (DATAGRAMS, DATAGRAM_MESSAGES) } else { (SIZES, MESSAGES) };
    let sweep = sweep::within(timing.stream, WRITES, &sizes.map(Bytes));
    let [mut a, mut b] = pair.run(&RunSpec::new(sweep, &cell.flow))?;
    let messages = pingpong::spec(messages, timing.ping.times(PINGS));
    let [client, _] = pair.run(&RunSpec::new(messages, &cell.flow).after(Nanos::millis(2)))?;
    a.latency = client.latency;
    // The end that received has the points of the sweep. The record has them at B in any case.
    let seen = [&a, &b].map(|end| end.get::<Vec<SweepPoint>>());
    if let [of_a, []] = seen.map(Vec::as_slice) {
        b.details.put(of_a.to_vec());
    }
    let trial = Trial { step: step.to_owned(), at_ns, cell: cell.clone(), a, b, ..Trial::default() };
    sink.line(&Line::Trial(Box::new(trial)))?;
    Ok(())
}
