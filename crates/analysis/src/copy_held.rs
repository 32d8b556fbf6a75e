//! Finds what held a copy, from the times of its stages.
//!
//! Threads with the same task are a crew: they walk, or read and send, or receive and write, or sync. In a pipeline,
//! the crew that neither starves nor is blocked is the bottleneck. So the crew that worked for the largest share of its
//! life comes first, with the row that took most of it. The network counts as a crew without threads: it works while
//! the source waits to send and the target waits for data.

mod rows;

use landspeed_record::units::Nanos;
use landspeed_record::{
    CopyEndTimes, CopyHeld, CopyHold, CopyHolder, CopyNetworkTimes, CopyRelayTimes, CopyStage, CopyTimes,
};

pub use rows::{hold_remedy, hold_words};

use CopyStage::{Hash, Install, Metadata, Read, Receive, Send, Sync, Walk, Write};

/// The least share of the copy's time that is listed.
const LEAST: f64 = 0.01;
/// A standing queue doubles the round-trip time: then the path is the bottleneck, whichever window is full.
const QUEUE: f64 = 2.0;
/// With losses a smaller queue is enough: a control that backs off empties the queue whose overflow lost the packets. Losses by
/// chance leave it empty.
const OVERFLOWING_QUEUE: f64 = 1.25;
/// The share of segments sent again from which losses, and not the path's rate, keep the window small.
const LOSSY: f64 = 1e-5;
/// The share of the time on the network from which a full window or buffer holds a path without losses. A congestion
/// control that paces by its measured delivery rate, such as BBR, paces at the rate that the window allows, so it
/// seldom waits for the window.
const FULL: f64 = 0.1;
/// The share of its time on a processor from which a thread counts as saturated.
const FULL_THREAD: f64 = 0.8;
/// The share of the time from which a slow session is what the relay waits for.
const MOSTLY: f64 = 0.5;

/// Returns what held a copy with these times.
pub fn copy_held(times: &CopyTimes) -> CopyHeld {
    let crews = crews(times);
    let by = ranked(&crews);
    let gain_at_most = by.first().map(|first| 1.0 / busiest(&crews, &[first.hold]).1.clamp(LEAST, 1.0));
    CopyHeld { by, gain_at_most }
}

/// Returns the rows that are worth reporting, each with its share of the time. The first row holds the copy, the second
/// one would hold it without the first, and so on.
fn ranked(crews: &[Crew]) -> Vec<CopyHolder> {
    let (mut by, mut named) = (Vec::new(), Vec::new());
    while let Some(holder) = busiest(crews, &named).0.and_then(|crew| crew.largest(&named)) {
        named.push(holder.hold);
        by.push(holder);
    }
    by
}

/// Returns the crew that works for the largest share of its life, if the rows in `without` take no time, and this share.
fn busiest<'a>(crews: &'a [Crew], without: &[CopyHold]) -> (Option<&'a Crew>, f64) {
    let busy = crews.iter().map(|crew| (Some(crew), crew.busy_without(without)));
    busy.fold((None, 0.0), |most, one| if one.1 > most.1 { one } else { most })
}

/// The resources that can hold the work at one end.
#[derive(Clone, Copy)]
struct Place {
    disk: CopyHold,
    processor: CopyHold,
    quota: CopyHold,
    steal: CopyHold,
    metadata: CopyHold,
}

const SOURCE: Place = Place {
    disk: CopyHold::SourceDisk,
    processor: CopyHold::SourceProcessor,
    quota: CopyHold::SourceQuota,
    steal: CopyHold::SourceSteal,
    metadata: CopyHold::SourceMetadata,
};
const TARGET: Place = Place {
    disk: CopyHold::TargetDisk,
    processor: CopyHold::TargetProcessor,
    quota: CopyHold::TargetQuota,
    steal: CopyHold::TargetSteal,
    metadata: CopyHold::TargetMetadata,
};

impl Place {
    /// Returns the rows of a stage's work: on a processor, and beside one. Threads that walk or name files are held by the file
    /// system either way. Hashing waits for no disk.
    fn rows(self, stage: CopyStage) -> [CopyHold; 2] {
        match stage {
            Walk | Metadata | Install => [self.metadata; 2],
            Hash => [self.processor; 2],
            Read | Send | Receive | Write | Sync => [self.processor, self.disk],
        }
    }
}

/// A crew: threads with the same task. Times are shares of their lives.
#[derive(Default)]
struct Crew {
    /// The work of the threads, by row and stage.
    work: Vec<(CopyHold, CopyStage, f64)>,
    starved: f64,
    blocked: f64,
}

impl Crew {
    fn of(end: &CopyEndTimes, place: Place, stages: &[CopyStage]) -> Crew {
        Crew::over(life(end, stages), end, place, stages)
    }

    /// Returns a crew whose shares relate to `life`, which is no less than its own.
    fn over(life: f64, end: &CopyEndTimes, place: Place, stages: &[CopyStage]) -> Crew {
        let share = |nanos: Nanos| nanos.as_secs_f64() / life.max(1e-9);
        let lost = LostParts::of(end, stages.iter().map(|stage| share(end.of(*stage).queued_ns)).sum());
        let mut crew = Crew::default();
        for stage in stages {
            let times = end.of(*stage);
            let [on_processor, beside] = place.rows(*stage);
            let [own, quota, steal] = lost.divide(share(times.processor_ns), share(times.queued_ns));
            crew.work.push((on_processor, *stage, own));
            crew.work.push((place.quota, *stage, quota));
            crew.work.push((place.steal, *stage, steal));
            crew.work.push((beside, *stage, share(times.device_ns)));
            // A crew that waits for `--limit-rate` waits for no other crew.
            crew.work.push((CopyHold::Limit, *stage, share(times.limited_ns)));
            crew.starved += share(times.starved_ns);
            crew.blocked += share(times.blocked_ns);
        }
        crew
    }

    /// Returns a crew that has no threads of its own.
    fn silent(hold: CopyHold, stage: CopyStage, share: f64) -> Crew {
        Crew { work: vec![(hold, stage, share)], ..Crew::default() }
    }

    /// Returns the share of its life in which the crew worked, without the work of some rows.
    fn busy_without(&self, without: &[CopyHold]) -> f64 {
        self.work.iter().filter(|(row, ..)| !without.contains(row)).map(|(.., share)| share).sum()
    }

    /// Returns the row that takes most of the crew's life, `without` some rows; `None` if it takes too little of it.
    fn largest(&self, without: &[CopyHold]) -> Option<CopyHolder> {
        let others = self.work.iter().filter(|(row, ..)| !without.contains(row));
        let holders = others.map(|(hold, ..)| self.holder(*hold)).filter(|holder| holder.share >= LEAST);
        holders.max_by(|one, other| one.share.total_cmp(&other.share))
    }

    fn holder(&self, hold: CopyHold) -> CopyHolder {
        let own = || self.work.iter().filter(|(row, ..)| *row == hold);
        let most = own().max_by(|(.., one), (.., other)| one.total_cmp(other));
        let is_processor = [CopyHold::SourceProcessor, CopyHold::TargetProcessor].contains(&hold);
        let stage = most.filter(|_| is_processor).map(|(_, stage, _)| *stage);
        CopyHolder { hold, stage, share: own().map(|(.., share)| share).sum::<f64>().min(1.0) }
    }
}

/// Why a crew waits for a processor, beside other threads that want it: parts of its time, 0 to 1.
struct LostParts {
    /// The part of its queued time in which a quota has stopped it.
    quota: f64,
    /// The part of the remaining time, on a processor or queued, that the hypervisor gave to others.
    steal: f64,
}

impl LostParts {
    /// Returns the parts of a crew that is queued for a share of its life. A quota stops all threads at a time, so a thread waits
    /// for it no longer than the group was stopped.
    fn of(end: &CopyEndTimes, queued: f64) -> LostParts {
        let stopped = end.host.quota_share();
        let quota = if queued > 0.0 { (stopped / queued).min(1.0) } else { 0.0 };
        LostParts { quota, steal: end.host.stolen_share() }
    }

    /// Divides the time on a processor and queued for one: the crew's own part, that of a quota, and that of the hypervisor.
    fn divide(&self, processor: f64, queued: f64) -> [f64; 3] {
        let quota = queued * self.quota;
        let rest = processor + queued - quota;
        let steal = rest * self.steal;
        [rest - steal, quota, steal]
    }
}

/// Returns the time in these stages, in seconds. A thread for which nothing is left is no part of its crew.
fn life(end: &CopyEndTimes, stages: &[CopyStage]) -> f64 {
    stages.iter().map(|stage| end.of(*stage).engaged().as_secs_f64()).sum()
}

/// Returns all crews that move data.
fn crews(times: &CopyTimes) -> [Crew; 6] {
    // One thread walks and one commits. The walk ends before the last sync, which it does not hold.
    let whole = life(&times.source, &[Walk]).max(life(&times.target, &[Sync, Install]));
    let walk = Crew::over(whole, &times.source, SOURCE, &[Walk]);
    let source = Crew::of(&times.source, SOURCE, &[Read, Hash, Send]);
    let target = Crew::of(&times.target, TARGET, &[Receive, Read, Hash, Write, Metadata]);
    let commit = Crew::of(&times.target, TARGET, &[Sync, Install]);
    let carries = source.blocked.min(target.starved);
    let between = relay(&times.relay).unwrap_or_else(|| network(&times.source.network));
    let network = Crew::silent(between, Send, carries);
    // Both ends have nothing to do, although the walk does not hold them, and nothing is synced.
    let waits = source.starved.min(target.starved) - walk.busy_without(&[]).max(commit.busy_without(&[]));
    let answers = Crew::silent(CopyHold::Answers, Receive, waits.max(0.0));
    [walk, source, network, target, commit, answers]
}

/// Returns what holds a source whose threads wait until they can send.
fn network(flows: &CopyNetworkTimes) -> CopyHold {
    let busy = flows.busy_ns.as_secs_f64();
    let (window, buffer) = (flows.window_limited_ns.as_secs_f64(), flows.buffer_limited_ns.as_secs_f64());
    let is_lossy = flows.resent as f64 > LOSSY * flows.sent as f64;
    let queue = if is_lossy { OVERFLOWING_QUEUE } else { QUEUE };
    let has_queue = flows.rtt_ns.as_secs_f64() >= queue * flows.least_rtt_ns.as_secs_f64();
    // Losses hold a flow while neither is full.
    let least = if is_lossy { busy - window - buffer } else { FULL * busy };
    match () {
        () if has_queue => CopyHold::NetworkRate,
        () if window > buffer.max(least) => CopyHold::NetworkWindow,
        () if buffer > window.max(least) => CopyHold::SendBuffer,
        () if is_lossy => CopyHold::NetworkLoss,
        () => CopyHold::NetworkRate,
    }
}

/// Returns what holds a source whose data pass through the machine of the command; `None` if they do not. Where the
/// target's session is slow, the data wait in the relay. Where the relay neither waits nor works, the source's session
/// delivers nothing.
fn relay(times: &CopyRelayTimes) -> Option<CopyHold> {
    let busiest = times.source_processor_ns.max(times.target_processor_ns);
    let share = |spent: Nanos| spent.share_of(times.relayed_ns);
    (times.relayed_ns > Nanos(0)).then(|| match () {
        () if share(busiest) >= FULL_THREAD => CopyHold::RelayProcessor,
        () if share(times.handing_ns) >= MOSTLY => CopyHold::RelayTarget,
        () => CopyHold::RelaySource,
    })
}

#[cfg(test)]
mod tests;
