//! The studies that `landspeed compare` can run, and the recording of their runs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use landspeed_analysis::compare::study_order;
use landspeed_congestion::{CONTROLS, can_load, linuxs_own};
use landspeed_engine::Pair;
use landspeed_lab::topology;
use landspeed_record::units::{Bytes, Nanos, did_you_mean};
use landspeed_record::{
    Contest, ContestQuestion, Contestant, Line, RecordWriter, Side, Study, StudyEngine, StudyPath, StudyRun,
    StudyRunKey,
};
use landspeed_report::live::{ProgressLine, clock};
use landspeed_report::{OutputCapabilities, about, compare_progress, duration, safe};
use landspeed_simulator::{SceneSetting, VARIED_SHARE, simulates};
use landspeed_transport::settings::table;
use landspeed_transport::{TRANSPORTS, find, is_tcp};
use parking_lot::Mutex;

use super::args::{CompareArgs, QuestionArg};
use crate::groups::HostArgs;
use crate::recorder::Recorder;
use crate::stop::StopRequest;

/// The study's nine protocols (cottrell-2005 section II.A), and the present defaults cubic and bbr.
const PROTOCOLS: [&str; 11] =
    ["reno", "highspeed", "htcp", "scalable", "fast", "ltcp", "hstcp_lp", "bic", "udt", "cubic", "bbr"];
/// The paper's longest path. The paper does not state its queue.
const PATH: &str = "lab:wan:rate=1G,rtt=164ms,queue=0.5bdp";
/// Least length of a region, in durations of slow start from ten segments to the path's window. Shorter regions would
/// show little besides slow start.
const SLOW_STARTS: f64 = 2.0;
/// Size of each short flow, of the order of one request of a web page (HTTP Archive: the median page has 2 MB in some
/// 70 requests).
const SHORT: Bytes = Bytes::kib(64);
/// Number of short flows in a run.
const SHORT_FLOWS: u64 = 40;

/// MTU of the lab's links in bytes.
const MTU: u16 = 1500;

/// Returns the words that name the study's hosts: those of the command line or, if it names none, a lab with the
/// longest path of the paper (`PATH`). If the command line names only one host, "local" precedes it.
pub(super) fn words(hosts: &HostArgs) -> Vec<String> {
    if hosts.hosts.is_empty() { vec![PATH.to_owned()] } else { hosts.in_full() }
}

/// Returns the path that the words describe, or `None` if landspeed does not emulate the path between the hosts.
pub(super) fn lab_path(words: &[String]) -> Result<Option<StudyPath>> {
    let Some(path) = topology::path(words)? else { return Ok(None) };
    let words = words.join(" ");
    let (Some(rate_bps), Some(queue_bytes)) = (path.rate(), path.queue()) else {
        bail!(
            "{words}: a study needs a path of one rate (no trace), and a queue in bytes or bdp (not in packets)"
        );
    };
    Ok(Some(StudyPath {
        rate_bps,
        rtt_ns: path.rtt(),
        second_rtt_ns: path.second_rtt(),
        queue_bytes: Some(queue_bytes),
        mtu_bytes: MTU,
        window_bytes: None,
        loss: path.loss(),
        cross: path.cross(),
        topology: words,
    }))
}

/// Returns the path of the scene `name`.
pub(super) fn scene_path(name: &str) -> Result<StudyPath> {
    Ok(SceneSetting::of(name)?.path(&format!("scene:{name}")))
}

/// Returns an error for a path with properties that the simulator does not model.
pub(super) fn check_simulated(words: &[String]) -> Result<()> {
    let others = topology::path(words)?.map(|path| path.others()).unwrap_or_default();
    match others.first() {
        Some(other) => bail!("--simulate does not know {other}"),
        None => Ok(()),
    }
}

/// Returns the path between the two hosts of a pair. Its queue is unknown, and so is its rate if no link reports one.
pub(super) fn real_path(pair: &Pair<'_>, words: &[String]) -> StudyPath {
    StudyPath {
        rate_bps: pair.link_rate().unwrap_or_default(),
        rtt_ns: pair.path.rtt_ns,
        queue_bytes: None,
        mtu_bytes: u16::try_from(pair.link(Side::A).mtu_bytes).unwrap_or(u16::MAX),
        topology: words.join(" "),
        ..StudyPath::default()
    }
}

/// Returns an error for options that no study supports. It is called before any host is contacted.
pub(super) fn check(args: &CompareArgs) -> Result<()> {
    args.protocols.iter().try_for_each(|text| check_contestant(text, args.simulate))?;
    let engine = if args.simulate { StudyEngine::Simulator } else { StudyEngine::Kernel };
    if args.ask.contains(&QuestionArg::Streams)
        && let Some(text) = args.protocols.iter().find(|text| !bounds(engine, text))
    {
        bail!(
            "{text}: streams bounds each flow by TCP's buffers, and this is no TCP: leave it out, or add --simulate"
        );
    }
    if args.scale.is_some_and(|scale| !(1e-4..=100.0).contains(&scale)) {
        bail!(
            "--scale {}: expected 0.0001 to 100; 1 is the paper's 16 minutes a run",
            args.scale.unwrap_or_default()
        );
    }
    Ok(())
}

/// Returns an error if `--ask round-trips` cannot be answered on sockets: over a path with one round trip, or with a protocol
/// whose packets cannot be marked for the second one.
pub(super) fn check_round_trips(args: &CompareArgs, path: Option<&StudyPath>) -> Result<()> {
    if args.simulate || !args.ask.contains(&QuestionArg::RoundTrips) {
        return Ok(());
    }
    if path.and_then(StudyPath::longer_ns).is_none() {
        bail!(
            "round-trips needs a path with two: lab:wan:rate=100M,rtt=40ms,second-rtt=160ms; or add --simulate"
        );
    }
    match args.protocols.iter().find(|text| !can_be_marked(text)) {
        Some(text) => bail!(
            "{text}: round-trips sets the dscp of a flow's packets, and cannot set this one's: leave it out, or add --simulate"
        ),
        None => Ok(()),
    }
}

/// Returns true if a study can choose the DSCP of the protocol's packets.
fn can_be_marked(text: &str) -> bool {
    const DSCP: &str = "dscp";
    let Ok(contestant) = parsed(text) else { return false };
    let has_dscp = find(contestant.transport()).is_some_and(|transport| table(transport).find(DSCP).is_ok());
    has_dscp && !contestant.settings.contains_key(DSCP)
}

fn check_contestant(text: &str, simulate: bool) -> Result<()> {
    let contestant = parsed(text)?;
    let control = contestant.control.as_deref();
    if let Some(name) = control.filter(|name| CONTROLS.iter().all(|row| row.name != *name)) {
        bail!("{text}: {}", landspeed_congestion::Error::unknown(name));
    }
    if simulate {
        return simulates(text).map_err(|why| anyhow!(why));
    }
    let name = contestant.transport();
    let transport = find(name).with_context(|| {
        let known = TRANSPORTS.iter().map(|transport| transport.name());
        format!("{text}: no transport is called {name}{}", did_you_mean(name, known))
    })?;
    let table = table(transport);
    let wrong = |(name, value): (&String, &String)| table.parse(name, value).err();
    contestant.settings.iter().find_map(wrong).map_or(Ok(()), |why| Err(anyhow!("{text}: {why}")))
}

fn parsed(text: &str) -> Result<Contestant> {
    text.parse().map_err(|why: String| anyhow!(why))
}

fn is_tcps(text: &str) -> bool {
    parsed(text).is_ok_and(|contestant| is_tcp(contestant.transport()))
}

/// Returns the default protocols that `engine` can run.
fn default_protocols(engine: StudyEngine) -> Vec<&'static str> {
    let can_run = |name: &&str| match engine {
        StudyEngine::Simulator => simulates(name).is_ok(),
        StudyEngine::Kernel => parsed(name).is_ok_and(|contestant| find(contestant.transport()).is_some()),
    };
    PROTOCOLS.into_iter().filter(can_run).collect()
}

/// Returns why a study on a lab's sockets must be simulated instead: the user is root and may create the lab, but
/// this kernel loads no congestion control. Other users get an error later, when the lab is created.
pub(super) fn fall_back(args: &CompareArgs) -> Option<String> {
    let given = &args.protocols;
    // If Linux has its own control of the same name, it replaces landspeed's.
    let lacking = |name: &String| {
        CONTROLS.iter().any(|row| row.name == name && !row.is_kernels() && linuxs_own(row).is_none())
    };
    let needed = given.is_empty() || given.iter().any(lacking);
    let can_simulate = given.iter().all(|text| simulates(text).is_ok());
    if !needed || !can_simulate || !rustix::process::geteuid().is_root() {
        return None;
    }
    let reason = can_load().err()?;
    Some(format!("SIMULATED, not run on sockets: this host loads no congestion control ({reason})"))
}

pub(super) fn planned(args: &CompareArgs, path: StudyPath, engine: StudyEngine) -> Result<Study> {
    let scale = args.scale.unwrap_or(if args.simulate { 1.0 } else { 0.1 });
    let seed = args.seed.unwrap_or(1);
    let varied_share = if engine == StudyEngine::Simulator { VARIED_SHARE } else { 0.0 };
    let whole = Study { engine, path, flows: args.flows, repeats: args.repeats, ..Study::paper() };
    let without = args.without.iter().map(|part| part.part()).collect();
    let study = Study { varied_share, seed, scene: args.scene.clone(), without, ..whole.scaled(scale) };
    let least = SLOW_STARTS * slow_start(&study.path);
    if study.region_ns.as_secs_f64() < least {
        bail!(
            "--scale {scale} makes regions of {}, and slow start alone takes half of {least:.1} s on this path: the least is --scale {:.3}",
            study.region_ns,
            least / 120.0 + 0.0005
        );
    }
    let contests = contests(args, &study);
    Ok(Study { titles: titles(&contests), contests, ..study })
}

/// Returns the short titles of the congestion controls that take part.
fn titles(contests: &[Contest]) -> BTreeMap<String, String> {
    let takes_part =
        |name: &str| contests.iter().flat_map(|contest| &contest.contestants).any(|of| of == name);
    let part = CONTROLS.iter().filter(|row| takes_part(row.name));
    part.map(|row| (row.name.to_owned(), row.short.to_owned())).collect()
}

/// Returns the duration of slow start in seconds. The window doubles each round trip, from ten segments (RFC 6928) to
/// the path's window.
fn slow_start(path: &StudyPath) -> f64 {
    let segments = path.bdp().0 as f64 / f64::from(path.mtu_bytes.max(1));
    path.rtt_ns.as_secs_f64() * (segments / 10.0).log2().max(1.0)
}

fn contests(args: &CompareArgs, study: &Study) -> Vec<Contest> {
    let given: Vec<&str> = args.protocols.iter().map(String::as_str).collect();
    let names = if given.is_empty() { default_protocols(study.engine) } else { given };
    args.ask.iter().flat_map(|ask| asked(*ask, args, &names, study)).collect()
}

fn asked(ask: QuestionArg, args: &CompareArgs, names: &[&str], study: &Study) -> Vec<Contest> {
    match ask {
        QuestionArg::Regions => each(names, "", &ContestQuestion::Regions),
        QuestionArg::Meetings => meetings(names),
        QuestionArg::ShortFlows => {
            // The last flow starts a full interval before the end.
            let every_ns = Nanos(study.duration().0 / (SHORT_FLOWS + 1) + 1);
            each(names, " with short flows", &ContestQuestion::ShortFlows { size_bytes: SHORT, every_ns })
        }
        QuestionArg::Streams => {
            let names: Vec<&str> = names.iter().copied().filter(|name| bounds(study.engine, name)).collect();
            streams(args.parallel, &names, &study.path)
        }
        QuestionArg::RoundTrips => each(
            names,
            " over two round trips",
            &ContestQuestion::RoundTrips { longer_ns: study.path.longer_ns().unwrap_or(study.path.rtt_ns) },
        ),
    }
}

/// Returns true if a study can limit the data in flight of the protocol `name`. On sockets, it needs TCP's buffers for
/// that.
fn bounds(engine: StudyEngine, name: &str) -> bool {
    engine == StudyEngine::Simulator || is_tcps(name)
}

fn contest(name: String, contestants: &[&str], question: ContestQuestion) -> Contest {
    Contest { name, contestants: contestants.iter().map(|name| (*name).to_owned()).collect(), question }
}

/// Returns one contest per protocol, named after it and `what`.
fn each(names: &[&str], what: &str, question: &ContestQuestion) -> Vec<Contest> {
    names.iter().map(|name| contest(format!("{name}{what}"), &[name], question.clone())).collect()
}

fn meetings(names: &[&str]) -> Vec<Contest> {
    let pairs =
        names.iter().enumerate().flat_map(|(n, one)| names[n + 1..].iter().map(move |two| (one, two)));
    pairs
        .map(|(one, two)| contest(format!("{one} beside {two}"), &[one, two], ContestQuestion::Meeting))
        .collect()
}

/// Returns contests of 1, 2, 4 ... streams of each protocol. Each number of streams is combined with three windows of a
/// stream: an even share of the bytes that the path and half of its queue hold, half of this share, and twice this
/// share.
fn streams(most: u16, names: &[&str], path: &StudyPath) -> Vec<Contest> {
    let counts = std::iter::successors(Some(1_u16), |n| n.checked_mul(2)).take_while(|n| *n <= most);
    let even = |streams: u16| (path.bdp().0 + path.room().0 / 2) / u64::from(streams);
    let windows = |streams| [even(streams) / 2, even(streams), even(streams) * 2].map(Bytes);
    let all = counts.flat_map(|streams| windows(streams).map(|window| (streams, window)));
    let of = |(streams, window_bytes): (u16, Bytes), name: &str| {
        let question = ContestQuestion::Streams { streams, window_bytes };
        contest(format!("{streams} streams of {name}, {window_bytes} each"), &[name], question)
    };
    all.flat_map(|pair| names.iter().map(move |name| of(pair, name))).collect()
}

pub(super) fn warning(study: &Study, pair: &Pair<'_>) -> String {
    let runs = study.contests.len() as u64 * u64::from(study.repeats);
    let whole = study.duration().times(runs);
    let parts: Vec<&str> = study.without.iter().map(|part| part.words()).collect();
    let off =
        if parts.is_empty() { String::new() } else { format!("Both turn off {}. ", parts.join(" and ")) };
    format!(
        "{} sends to {} as fast as each of {} contestants goes:\n{runs} runs of {}, {} in all.\n\
         {} loads the congestion controls that its kernel lacks, and both open their windows\n(tcp_rmem, tcp_wmem). {off}Everything is restored, \
         but for modules of Linux's own controls. \
         Other traffic will notice.\nContinue? [y/N] ",
        pair.a.name,
        pair.b.name,
        study.contests.len(),
        duration(study.duration()),
        about(whole),
        pair.a.name,
    )
}

/// The progress of a study.
struct StudyProgress {
    study: Study,
    /// The remaining runs, in reverse order.
    ahead: Vec<StudyRunKey>,
    made: usize,
    planned: usize,
    /// Time when the study started or was resumed.
    began: Instant,
    /// Time when the present run began.
    run_began: Instant,
    /// Number of runs made since `began`.
    since: u32,
}

/// Returns the recorder of a study. Prints the study's size and starts the progress line. `done` are the runs that the
/// record already has.
pub(super) fn recorder(
    writer: RecordWriter,
    stop: &StopRequest,
    study: &Study,
    done: &HashSet<StudyRunKey>,
) -> Recorder {
    let planned = study_order(study);
    let mut ahead: Vec<_> = planned.iter().filter(|run| !done.contains(run)).cloned().collect();
    ahead.reverse();
    let (planned, now) = (planned.len(), Instant::now());
    let made = planned - ahead.len();
    let progress =
        StudyProgress { study: study.clone(), ahead, made, planned, began: now, run_began: now, since: 0 };
    let total = progress.total();
    let progress = Arc::new(Mutex::new(progress));
    let seen = Arc::clone(&progress);
    let line = move |width: Option<usize>| {
        let line = seen.lock().line();
        if width.is_some() { format!("  {line}") } else { line }
    };
    let progress_line = ProgressLine::new(OutputCapabilities::stderr(), line);
    progress_line.say(&total);
    Recorder::new(writer, stop, move |line| {
        let Line::Run(run) = line else { return };
        let mut progress = progress.lock();
        progress.took(run);
        let text = compare_progress(run, &progress.study, progress.made, progress.left());
        drop(progress);
        progress_line.say(&text);
    })
}

impl StudyProgress {
    /// Returns the size of the study: "36 runs of 1 min 20 s: about 48 min".
    fn total(&self) -> String {
        let runs = match (self.made, self.planned) {
            (0, planned) => format!("{planned} runs"),
            (made, planned) => format!("{} of {planned} runs left", planned - made),
        };
        match self.length() {
            Some(length) => format!("{runs} of {}: {}", duration(length), about(self.left())),
            None => format!("{runs}, simulated as fast as this processor goes"),
        }
    }

    /// Returns the duration of a run on sockets, or `None` for a simulated run, whose duration is unknown.
    fn length(&self) -> Option<Nanos> {
        (self.study.engine == StudyEngine::Kernel).then(|| self.study.duration())
    }

    /// Returns the estimated time of the remaining runs. It is based on the mean time of the runs so far or, before the
    /// first run, on the duration of a run's flows.
    fn left(&self) -> Nanos {
        let each = match self.since {
            0 => self.length().unwrap_or_default(),
            runs => Nanos::from((self.run_began - self.began) / runs),
        };
        each.times(self.ahead.len() as u64)
    }

    fn line(&self) -> String {
        let Some(StudyRunKey { contest, repeat }) = self.ahead.last() else { return String::new() };
        let ran = Nanos::from(self.run_began.elapsed());
        let of = self.length().map(|length| format!(" of {}", clock(length))).unwrap_or_default();
        let left = match self.left().saturating_sub(ran) {
            Nanos(0) => String::new(),
            left => format!("  {} left", about(left)),
        };
        let run = format!("run {}/{}  {contest}, repeat {}", self.made + 1, self.planned, repeat + 1);
        safe(&format!("{run}  {}{of}{left}", clock(ran)))
    }

    fn took(&mut self, run: &StudyRun) {
        let made = run.key();
        self.ahead.retain(|ahead| *ahead != made);
        (self.made, self.since) = (self.made + 1, self.since + 1);
        self.run_began = Instant::now();
    }
}
