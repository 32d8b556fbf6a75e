//! The lab that decisions are taken in, and the two settings.

use anyhow::{Context, Result};
use landspeed_analysis::Goal;
use landspeed_experiment::{Baseline, Host, Pair, Reaching, Timing, TuneOptions, Wishes, placebos, plan};
use landspeed_record::{Candidate, Cell, Settings};
use landspeed_topology::{self as topology, Hosts};
use landspeed_units::Nanos;

use super::record::Setting;
use crate::built::landspeed;

/// Two lab hosts, joined. The fields are dropped in this order: the lab goes after its agents.
pub(super) struct Bench {
    /// The hosts.
    pub(super) pair: Pair,
    /// Lengths of trials.
    pub(super) timing: Timing,
    start: Cell,
    tuned: Cell,
    _hosts: Box<dyn Hosts>,
}

impl Bench {
    /// A fresh back-to-back lab.
    pub(super) fn new() -> Result<Bench> {
        let hosts = topology::open(&["lab:back-to-back".to_owned()])?;
        let [a, b, ..] = hosts.hosts() else { anyhow::bail!("the lab has fewer than two hosts") };
        let reaching = Reaching { tune: true, agent: Some(landspeed()?), ..Reaching::default() };
        let hints = b.v4.map(Into::into).into_iter().collect();
        let [first, second] =
            [a, b].map(|place| Ok::<Host, anyhow::Error>(Host::probe(reaching.session(place)?)?));
        let pair = Pair::join(first?, second?, &Wishes { hints, ..Wishes::default() })?;
        let plan = plan(&pair, &options(tuned(&pair)?, 0))?;
        let tuned = plan.against.context("a plan names what it was asked to compare with")?;
        Ok(Bench { pair, timing: plan.timing, start: plan.start, tuned, _hosts: hosts })
    }

    /// The placebo of a decision at a setting: one scope after the other, two decisions each.
    pub(super) fn placebo(&self, number: u32, setting: Setting) -> Result<Candidate> {
        let options = options(Settings::new(), u64::from(number / 2));
        let placebos = placebos(&self.pair, self.cell(setting), &options);
        placebos.changes.into_iter().next().context("no knob here has two equivalent values")
    }

    /// The cell of a setting.
    pub(super) fn cell(&self, setting: Setting) -> &Cell {
        match setting {
            Setting::Start => &self.start,
            Setting::Tuned => &self.tuned,
        }
    }
}

/// What the lab's hand measurements found to matter most, laid over the start; windows as the hosts
/// were found, which is autotuned.
fn tuned(pair: &Pair) -> Result<Settings> {
    const HAND: &[(&str, &str)] = &[
        ("placement", "same-core"),
        ("write-size", "65536"),
        ("tx-checksum", "on"),
        ("scatter-gather", "on"),
        ("tso", "on"),
    ];
    let mut settings: Settings = HAND.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    for (name, host) in [("tcp-wmem", &pair.a), ("tcp-rmem", &pair.b)] {
        let found = host.found();
        let value = found.get(name).with_context(|| format!("{name} cannot be turned on {}", host.name))?;
        settings.insert(name.to_owned(), value.clone());
    }
    Ok(settings)
}

/// What `tune` would be asked, with this seed.
fn options(tuned: Settings, seed: u64) -> TuneOptions {
    TuneOptions {
        transport: landspeed_transport::TRANSPORTS[0],
        goal: Goal::Rate,
        baseline: Baseline::Sc03,
        budget: Nanos::secs(300),
        only: Vec::new(),
        skip: Vec::new(),
        explain: false,
        against: Some(tuned),
        confirm_for: None,
        in_lab: true,
        seed,
        topology: "lab:back-to-back".into(),
        command: String::new(),
        started: String::new(),
        record: String::new(),
    }
}
