//! A path of `lab:wan` with real sockets at both ends, made for a run and gone after it: nothing that a host remembers
//! of an earlier connection (tcp_metrics) reaches the next.

use anyhow::{Context, Result, bail};
use landspeed_analysis::wan::unfit;
use landspeed_control::{Reply, Request};
use landspeed_experiment::{Host, Pair, Reaching, Watching, Wishes};
use landspeed_record::{Cell, Settings, TcpSample, WanStats, Workload};
use landspeed_topology::{self as topology, Hosts};
use landspeed_units::Nanos;
use landspeed_workload::staggered::{self, StaggeredFlow};

use crate::built::landspeed;

/// Payload of a full packet: MTU 1500, timestamps.
pub(super) const SEGMENT: u64 = 1448;
/// Packets with payload that a connection has sent before its flow begins: both halves of its proof.
pub(super) const PROOF: u64 = 2;
/// A run whose link was late is made again so often.
const REPEATS: u32 = 2;

/// What is run over a path.
#[derive(Debug, Clone)]
pub(super) struct Traffic<'a> {
    /// The path, as after `lab:wan:`.
    pub(super) path: String,
    /// A flow each.
    pub(super) controls: Vec<&'a str>,
    /// How long each sends.
    pub(super) duration: Nanos,
    /// Time between looks at the flows.
    pub(super) interval: Nanos,
    /// Whether hosts hand superpackets to the path and take them from it (TSO, GSO, GRO).
    pub(super) superpackets: bool,
}

/// What was seen.
pub(super) struct Seen {
    /// The sender's TCP_INFO, by flow.
    pub(super) flows: Vec<Vec<TcpSample>>,
    /// What the link did.
    pub(super) link: WanStats,
    /// Why it was not the path that it was told to be.
    pub(super) unfit: Vec<String>,
    /// Runs that were made for this one.
    pub(super) runs: u32,
}

impl Seen {
    /// What a reader of the table must know of the run.
    pub(super) fn remark(&self) -> String {
        match (self.unfit.first(), self.runs) {
            (Some(why), _) => format!("**link unfit**: {why}"),
            (None, 1) => String::new(),
            (None, runs) => format!("run {runs} times, for a late link"),
        }
    }
}

/// Runs it on fresh hosts; again where the link was late.
pub(super) fn run(traffic: &Traffic<'_>) -> Result<Seen> {
    let mut runs = 1;
    loop {
        let seen = once(traffic).with_context(|| format!("lab:wan:{}", traffic.path))?;
        if seen.unfit.is_empty() || runs > REPEATS {
            return Ok(Seen { runs, ..seen });
        }
        eprintln!("{}: {}", traffic.path, seen.unfit.join("; "));
        runs += 1;
    }
}

fn once(traffic: &Traffic<'_>) -> Result<Seen> {
    let hosts = topology::open(&[format!("lab:wan:{}", traffic.path)])?;
    let mut pair = join(&*hosts)?;
    let names = load(&pair, &traffic.controls)?;
    pair.set(&cell(traffic.superpackets))?;
    hosts.mark_wan();
    let watching = Watching { interval: traffic.interval, ..Watching::default() };
    let [sender, _] = pair.run_watched(workload(traffic, names), &Settings::new(), Nanos(0), &watching)?;
    let (link, _) = hosts.wan_since_mark().context("the lab tells nothing of its link")?;
    if !sender.not_as_asked.is_empty() {
        bail!("{}", sender.not_as_asked.join("; "));
    }
    let mut flows = vec![Vec::new(); traffic.controls.len()];
    for sample in sender.observed.get::<Vec<TcpSample>>() {
        flows[sample.flow as usize].push(sample.clone());
    }
    Ok(Seen { flows, unfit: unfit(&link), link, runs: 1 })
}

fn join(hosts: &dyn Hosts) -> Result<Pair> {
    let [a, b, ..] = hosts.hosts() else { bail!("the lab has fewer than two hosts") };
    let reaching = Reaching { tune: true, agent: Some(landspeed()?), ..Reaching::default() };
    let hints = b.v4.map(Into::into).into_iter().collect();
    let [first, second] = [a, b].map(|place| Ok::<_, anyhow::Error>(Host::probe(reaching.session(place)?)?));
    Ok(Pair::join(first?, second?, &Wishes { hints, ..Wishes::default() })?)
}

/// Names in landspeed to names in the sender's kernel, which has them from here on.
fn load(pair: &Pair, controls: &[&str]) -> Result<Vec<String>> {
    let names: Vec<String> = controls.iter().map(|name| (*name).to_owned()).collect();
    match pair.a.call(&Request::Controls { names })? {
        Reply::Controls { ready } if ready.len() == controls.len() => Ok(ready),
        other => bail!("the agent answered {other:?} when asked for congestion controls"),
    }
}

/// Buffers that never bound a window here, and are large from the first packet on: their growth on demand is not what
/// is looked at.
fn cell(superpackets: bool) -> Cell {
    let whole = "4096 8388608 536870912";
    let on = if superpackets { "on" } else { "off" };
    let of = |settings: &[(&str, &str)]| -> Settings {
        settings.iter().map(|(knob, value)| ((*knob).into(), (*value).into())).collect()
    };
    Cell {
        a: of(&[("tcp-rmem", whole), ("tcp-wmem", whole), ("tso", on), ("gso", on)]),
        b: of(&[("tcp-rmem", whole), ("tcp-wmem", whole), ("gro", on)]),
        flow: Settings::new(),
    }
}

fn workload(traffic: &Traffic<'_>, names: Vec<String>) -> Workload {
    let flow = |name| StaggeredFlow {
        congestion: Some(name),
        enters_ns: Nanos(0),
        leaves_ns: traffic.duration,
        data_bytes: None,
    };
    let flows: Vec<StaggeredFlow> = names.into_iter().map(flow).collect();
    staggered::spec(&flows, traffic.duration, Nanos(0))
}
