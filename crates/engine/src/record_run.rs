//! Makes the Land Speed Record run (feng-2003 section 4.1): one stream over a long path, with its window capped at the
//! bytes that the path holds. So the queue in front of the bottleneck never overflows. On such a path a loss would cost
//! minutes.

use landspeed_analysis::wan::unfit;
use landspeed_lab::topology::{HostSet, PathLink};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    Cell, EndpointOutcome, PathFacts, RECORD_RUN_FORMAT, RecordRunFigures, RecordRunReport, RestoreOutcome,
    Settings, TcpSample, WanStats,
};
use landspeed_workload::stream;

use crate::{Error, HostGroup, Pair, RunSpec, WatchOptions, buffers};

/// MTU of jumbo frames, as in the paper.
const MTU: u32 = 9000;
/// Length of TCP's header with timestamps, in bytes.
const TCP_HEADERS: u32 = 32;
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
/// Duration of the start-up in RTTs: slow start from ten segments, and some more for queues to become steady.
const START_RTTS: u64 = 60;
const LEAST_START: Nanos = Nanos::secs(5);

/// The options of a record run: its duration, its path, and texts for the report.
#[derive(Debug, Clone)]
pub struct RecordRunOptions {
    /// Measured time of each of the two runs, with and without the cap.
    pub time: Nanos,
    /// Length of the path in metres, if known.
    pub distance_m: Option<f64>,
    /// The rate of the path; needed only if its links do not report it.
    pub rate_bps: Option<BitRate>,
    /// The topology or the hosts, for the report.
    pub topology: String,
    pub command: String,
    /// The time of the start for the report, in RFC 3339 and UTC.
    pub started: String,
}

/// The properties of the path that are known before anything is sent.
pub(crate) struct PathProperties {
    rate: BitRate,
    /// Size of the queue in front of the bottleneck; `None` if unknown.
    queue: Option<Bytes>,
    pub(crate) rtt: Nanos,
}

impl PathProperties {
    pub(crate) fn of(pair: &Pair<'_>, hosts: &dyn HostSet, rate: Option<BitRate>) -> Result<Self, Error> {
        let rtt = pair.path.rtt_ns;
        if let Some(link) = hosts.link().map(PathLink::stats) {
            return Ok(PathProperties { rate: link.rate_bps, queue: link.queue_bytes, rtt });
        }
        match rate.or(pair.link_rate()) {
            Some(rate) => Ok(PathProperties { rate, queue: None, rtt }),
            None => Err(Error::Other("neither link tells its speed: say the path's with --rate 10G".into())),
        }
    }

    fn bdp(&self) -> Bytes {
        Bytes((self.rate.0 / 8.0 * self.rtt.as_secs_f64()) as u64)
    }

    /// Returns the window that fills the path and half of its queue. Slow start sends at twice the rate of the
    /// acknowledgements, so half of a window may accumulate in the queue. The window is therefore at most twice the
    /// queue, unless the path alone holds more. An unknown queue counts as zero.
    fn window(&self) -> Bytes {
        let bdp = self.bdp().0;
        let room = self.queue.map_or(0, |queue| queue.0);
        Bytes((bdp + room / 2).min(bdp.max(2 * room)))
    }
}

/// Makes two runs, first with the window capped and then without, and restores the hosts' settings. `say` receives
/// progress messages.
///
/// # Errors
/// Returns an error if a host may not be tuned, if the rate of the path is unknown, or if a session or a knob fails.
pub fn record_run(
    group: &mut HostGroup,
    hosts: &dyn HostSet,
    options: &RecordRunOptions,
    say: &mut dyn FnMut(&str),
) -> Result<RecordRunReport, Error> {
    let (run, restored) = group.tuned(|group| {
        let properties = PathProperties::of(&group.first(), hosts, options.rate_bps)?;
        both(group, hosts, (&properties, options), say)
    })?;
    let RestoreOutcome { restored, left, unknown, notes } = restored;
    Ok(RecordRunReport { restored, left, unknown, notes, ..run })
}

fn both(
    group: &mut HostGroup,
    hosts: &dyn HostSet,
    (properties, options): (&PathProperties, &RecordRunOptions),
    say: &mut dyn FnMut(&str),
) -> Result<RecordRunReport, Error> {
    let window = properties.window();
    let cell = cell(properties, Some(window));
    let mut go = |cell: &Cell, window| -> Result<RecordRunFigures, Error> {
        group.set(cell)?;
        one(&group.first(), hosts, (properties, options), window)
    };
    say(&format!("one stream for {}, window capped at {window}", options.time));
    let capped = go(&cell, Some(window))?;
    say(&format!("one stream for {}, window not capped", options.time));
    let uncapped = go(&self::cell(properties, None), None)?;
    let pair = group.first();
    Ok(RecordRunReport {
        format: RECORD_RUN_FORMAT,
        landspeed: env!("CARGO_PKG_VERSION").to_owned(),
        started: options.started.clone(),
        command: options.command.clone(),
        topology: options.topology.clone(),
        host_a: pair.a.facts.clone(),
        host_b: pair.b.facts.clone(),
        path: pair.path.clone(),
        path_rate_bps: properties.rate,
        bdp_bytes: properties.bdp(),
        mtu_bytes: MTU,
        distance_m: options.distance_m,
        cell,
        capped,
        uncapped,
        ..RecordRunReport::default()
    })
}

/// Returns a cell with jumbo frames and with buffers. The send buffer caps the window at `window`, if given. The
/// receive buffer never limits the window.
pub(crate) fn cell(properties: &PathProperties, window: Option<Bytes>) -> Cell {
    let most = Bytes(i32::MAX as u64);
    let room = Bytes(4 * (properties.bdp().0 + properties.queue.unwrap_or(properties.bdp()).0));
    let send = window.map_or(room, buffers::for_window);
    let mut cell = buffers::cell(send.min(most), room.min(most));
    for settings in [&mut cell.a, &mut cell.b] {
        settings.insert("mtu".to_owned(), MTU.to_string());
    }
    cell
}

/// Runs one stream of `time` after a start-up of `start`, with the paper's congestion control. Returns the outcomes of
/// A and B, and the statistics of the emulated link during the run, if there is one.
pub(crate) fn stream(
    pair: &Pair<'_>,
    hosts: &dyn HostSet,
    (time, start): (Nanos, Nanos),
    watching: WatchOptions,
) -> Result<([EndpointOutcome; 2], Option<WanStats>), Error> {
    let flow = Settings::from([("socket-congestion".to_owned(), "reno".to_owned())]);
    let link = hosts.link();
    if let Some(link) = link {
        link.mark();
    }
    let ends = pair.run(&RunSpec::new(stream::spec(time), &flow).after(start).watched(watching))?;
    Ok((ends, link.map(|link| link.since_mark().0)))
}

/// Runs one stream and returns its figures. `window_bytes` is the cap of its window; `None` for no cap.
fn one(
    pair: &Pair<'_>,
    hosts: &dyn HostSet,
    (properties, options): (&PathProperties, &RecordRunOptions),
    window_bytes: Option<Bytes>,
) -> Result<RecordRunFigures, Error> {
    let start = Nanos(properties.rtt.0 * START_RTTS).max(LEAST_START);
    let ([a, b], link) = stream(pair, hosts, (options.time, start), WatchOptions::default())?;
    let rate = b.received_bytes.per(b.window_ns);
    let efficiency = rate.0 / properties.rate.0;
    let [first, last] = ends(&a);
    Ok(RecordRunFigures {
        window_bytes,
        rate_bps: rate,
        efficiency,
        ceiling: ceiling(pair.path),
        bit_metres_per_s: options.distance_m.map(|metres| rate.0 * metres),
        window_ns: b.window_ns,
        retransmits: last.retransmits.saturating_sub(first.retransmits),
        retransmits_in_all: last.retransmits,
        rtt_ns: last.rtt_ns,
        unfit: link.as_ref().map(unfit).unwrap_or_default(),
        link,
    })
}

/// Returns the share of the path's rate that remains for data after the headers.
fn ceiling(path: &PathFacts) -> f64 {
    let ip = if path.address_b.contains(':') { IPV6_HEADER } else { IPV4_HEADER };
    f64::from(MTU - ip - TCP_HEADERS) / f64::from(MTU)
}

/// Returns the sender's first and last TCP_INFO sample.
fn ends(sender: &EndpointOutcome) -> [TcpSample; 2] {
    let samples = sender.observed.get::<Vec<TcpSample>>();
    [samples.first(), samples.last()].map(|sample| sample.cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(queue: Option<u64>) -> PathProperties {
        PathProperties { rate: BitRate(2.5e9), queue: queue.map(Bytes), rtt: Nanos::millis(180) }
    }

    #[test]
    fn the_window_fills_the_path_and_never_overruns_its_queue() {
        assert_eq!(
            properties(None).window(),
            Bytes(56_250_000),
            "a queue that is not known is not relied upon"
        );
        assert_eq!(properties(Some(56_250_000)).window(), Bytes(84_375_000));
        assert_eq!(properties(Some(28_125_000)).window(), Bytes(56_250_000));
        assert_eq!(properties(Some(1_000_000)).window(), Bytes(56_250_000));
    }

    #[test]
    fn the_senders_buffer_is_the_cap() {
        let capped = cell(&properties(None), Some(Bytes(10_000_000)));
        assert_eq!(capped.a["tcp-wmem"], "4096 16384 11000000");
        assert_eq!(capped.b["tcp-rmem"], "4096 131072 450000000");
        assert_eq!(cell(&properties(None), None).a["tcp-wmem"], "4096 16384 450000000");
    }
}
