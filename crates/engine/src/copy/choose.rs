//! Compares settings during a copy, and keeps those that are proven to be faster.
//!
//! The source applies a setting for one turn and counts what the target receives. `landspeed_analysis::copy_choice`
//! decides which setting comes next, and evaluates the turns. Nothing here waits: the copy's loop calls
//! [`CopyTrials::step`] several times a second.

mod seen;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_analysis::copy_choice::{
    CopyChange, CopyChooser, CopyLevers, CopyOutlook, CopyWindows, LEAST_COPY, NextTurn, missing_flows,
    planned,
};
use landspeed_analysis::copy_held;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    CopyArm, CopyChoice, CopyCount, CopyCounts, CopyDecision, CopyHolder, CopyTimes, CopyTrialResult,
    CopyTurn, Line, Settings, Side,
};

use super::CopyOptions;
use crate::{Error, Pair};
use seen::SeenCounts;

/// The largest number of flows of a copy.
const MOST_FLOWS: u32 = 64;
/// Duration of a look: a turn that shows whether the copy sends long files, and its RTT.
pub(super) const LOOK: Nanos = Nanos::millis(500);
/// The interval between looks.
pub(super) const AGAIN: Duration = Duration::from_secs(5);
/// The start of a copy, in which the rate of the last ten seconds may be that of slow start. On a long path that loses
/// packets, this rate is several times the steady one.
const SETTLING: Duration = Duration::from_secs(20);
/// The time for flows of another transport to open, in RTTs, within these limits.
const OPENING: u64 = 20;
const OPENING_BOUNDS: [Nanos; 2] = [Nanos::secs(3), Nanos::secs(20)];

/// The settings that a copy may change while it runs.
#[derive(Debug, Clone, Default)]
pub struct CopyChoosing {
    /// The setting that an earlier copy over the same path kept.
    pub remembered: Option<CopyArm>,
    /// True if the number of flows may be changed.
    pub flows: bool,
    /// True if the congestion control may be changed.
    pub control: bool,
    /// The transports whose flows may replace the copy's own, with the settings of these flows.
    pub others: BTreeMap<String, Settings>,
}

impl CopyOptions {
    /// Returns the largest number of flows to open; `None` if their number must not change.
    pub(super) fn most_flows(&self) -> Option<u32> {
        let choosing = self.choosing.as_ref().filter(|choosing| choosing.flows)?;
        let remembered = choosing.remembered.as_ref().map_or(0, |arm| arm.flows);
        Some(self.flows.saturating_mul(2).max(remembered).clamp(self.flows, MOST_FLOWS.max(self.flows)))
    }
}

/// The state of a copy that no longer compares settings.
pub(super) struct SettledCopy {
    pub(super) outlook: CopyOutlook,
    /// What limits the copy.
    pub(super) first: CopyHolder,
    /// The setting in force.
    pub(super) arm: CopyArm,
}

/// The purpose of a request to the source.
enum Asked {
    /// Find out what its flows have.
    First,
    /// Apply the setting that an earlier copy kept, or the default again.
    Before(CopyArm),
    /// Find out what it sends.
    Look,
    /// Measure a turn.
    Turn(NextTurn),
    /// Apply the setting that was kept.
    Kept,
}

/// A request to the source: a setting, the times of the turn, and its purpose.
type SourceTurn = (CopyArm, [Nanos; 2], Asked);

enum Stage {
    /// No data was moved yet, so the ends may not have begun.
    Begins,
    /// The target was asked to change how it writes. The source's turn follows.
    Writes(PendingReply, SourceTurn),
    /// This end was asked to open flows of another transport. The source's turn follows.
    Opens(PendingReply, Side, SourceTurn),
    Asked(PendingReply, Asked),
    /// The copy may turn out to be long, or to have long files.
    Waits,
    Over,
}

/// The comparison of settings during a copy.
pub(super) struct CopyTrials<'a> {
    pair: &'a Pair<'a>,
    from: Side,
    choosing: CopyChoosing,
    most_flows: Option<u32>,
    /// The setting at the start of the copy, which is the default.
    start: CopyArm,
    /// True if the target writes past its page cache.
    is_direct: bool,
    /// The other transport whose flows the ends were asked to open.
    other: Option<String>,
    stage: Stage,
    seen: SeenCounts,
    times: CopyTimes,
    /// The largest window of a flow that the source's buffer allows, and that the target's does.
    windows: [Option<Bytes>; 2],
    begun: Instant,
    look_after: Instant,
    trials_begun: Instant,
    chooser: Option<CopyChooser>,
    choice: CopyChoice,
    lines: Vec<Line>,
}

impl<'a> CopyTrials<'a> {
    pub(super) fn begin(pair: &'a Pair<'a>, what: &CopyOptions) -> Self {
        let now = Instant::now();
        let untried = cannot_try(pair, what);
        let stage = if untried.is_some() || what.choosing.is_none() { Stage::Over } else { Stage::Begins };
        CopyTrials {
            pair,
            from: what.from,
            choosing: what.choosing.clone().unwrap_or_default(),
            most_flows: what.most_flows(),
            start: CopyArm { flows: what.flows, ..CopyArm::default() },
            is_direct: false,
            other: None,
            stage,
            seen: SeenCounts::default(),
            times: CopyTimes::default(),
            windows: [None; 2],
            begun: now,
            look_after: now,
            trials_begun: now,
            chooser: None,
            choice: CopyChoice { untried: untried.unwrap_or_default(), ..CopyChoice::default() },
            lines: Vec::new(),
        }
    }

    /// Takes the largest window of a flow that the source's buffer allows, and the one that the target's buffer allows.
    pub(super) fn has_windows(&mut self, windows: [Option<Bytes>; 2]) {
        self.windows = windows;
    }

    /// Advances as far as possible without waiting, and returns new lines for the record. `news` has the copy's
    /// progress if the source was asked for it.
    pub(super) fn step(&mut self, news: Option<(CopyCounts, CopyTimes)>) -> Vec<Line> {
        if let Some((counts, times)) = news {
            self.seen.take(counts);
            self.times = times;
        }
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begins if self.seen.has_moved() => {
                self.turn(self.start.clone(), [Nanos(0); 2], Asked::First)
            }
            Stage::Asked(pending, asked) => self.poll(pending, asked),
            Stage::Writes(pending, turn) => self.poll_writes(pending, turn),
            Stage::Opens(pending, side, turn) => self.poll_opens(pending, side, turn),
            Stage::Waits => self.look(),
            stage => stage,
        };
        std::mem::take(&mut self.lines)
    }

    /// Returns the copy's choice after its end, and the remaining lines for the record.
    pub(super) fn finish(mut self) -> (CopyChoice, Vec<Line>) {
        self.end("the copy came to its end");
        // A short copy is not expected to compare anything.
        if self.begun.elapsed() < Duration::from(LEAST_COPY) {
            self.choice.untried.clear();
        }
        (self.choice, self.lines)
    }

    /// Returns the state of a copy that no longer compares settings; `None` if it may still compare some, or if too
    /// little is known.
    pub(super) fn settled(&self) -> Option<SettledCopy> {
        let is_settled = matches!(self.stage, Stage::Over) && self.seen.is_walked();
        let outlook = self.outlook().filter(|_| is_settled)?;
        let first = copy_held(&self.times).by.first().copied()?;
        let arm = self.choice.kept.clone().unwrap_or_else(|| self.start.clone());
        Some(SettledCopy { outlook, first, arm })
    }

    fn end(&mut self, why: &str) {
        let Some(chooser) = &mut self.chooser else { return };
        chooser.end(why);
        self.take_decisions();
    }

    /// Makes both ends apply a setting. The source waits for the first of these times, and then counts for the second.
    fn turn(&mut self, arm: CopyArm, times: [Nanos; 2], asked: Asked) -> Stage {
        if arm.transport.is_some() && arm.transport != self.other {
            self.other.clone_from(&arm.transport);
            // Side B accepts the flows.
            return self.open(Side::B, (arm, times, asked));
        }
        if arm.direct == self.is_direct {
            return self.turn_source((arm, times, asked));
        }
        let writes = Request::CopyWrites { direct: arm.direct };
        self.ask(self.from.other(), &writes, |pending| Stage::Writes(pending, (arm, times, asked)))
    }

    /// Sends a request to an end, and returns the stage that waits for the answer.
    fn ask(&mut self, side: Side, request: &Request, waits: impl FnOnce(PendingReply) -> Stage) -> Stage {
        match self.pair.host(side).start(request) {
            Ok(pending) => waits(pending),
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// Makes an end open or accept the flows of a setting's transport.
    fn open(&mut self, side: Side, (arm, times, asked): SourceTurn) -> Stage {
        let settings = arm.transport.as_ref().and_then(|name| self.choosing.others.get(name)).cloned();
        let request = Request::CopyOthers { settings: settings.unwrap_or_default(), flows: arm.flows };
        self.ask(side, &request, |pending| Stage::Opens(pending, side, (arm, times, asked)))
    }

    /// Continues a turn once both ends open the flows of its transport. If an end cannot, the setting counts as
    /// refused.
    fn poll_opens(&mut self, pending: PendingReply, side: Side, (arm, times, asked): SourceTurn) -> Stage {
        match self.pair.host(side).poll(&pending, Duration::ZERO) {
            None => Stage::Opens(pending, side, (arm, times, asked)),
            Some((_, Ok(Reply::Done {}))) if side == Side::B => self.open(Side::A, (arm, times, asked)),
            Some((_, Ok(Reply::Done {}))) => self.turn(arm, times, asked),
            Some((_, Ok(_))) => self.give_up("an end sent an unexpected answer"),
            Some((_, Err(error))) => self.refused(asked, &error),
        }
    }

    /// Continues a turn once the target writes as the setting says. If the target cannot, the setting counts as
    /// refused.
    fn poll_writes(&mut self, pending: PendingReply, (arm, times, asked): SourceTurn) -> Stage {
        let target = self.pair.host(self.from.other());
        match target.poll(&pending, Duration::ZERO) {
            None => Stage::Writes(pending, (arm, times, asked)),
            Some((_, Ok(Reply::Done {}))) => {
                self.is_direct = arm.direct;
                self.turn_source((arm, times, asked))
            }
            Some((_, Ok(_))) => self.give_up("the target sent an unexpected answer"),
            Some((_, Err(error))) => self.refused(asked, &error),
        }
    }

    /// Makes the source apply a setting, wait for the first of these times, and then count for the second.
    fn turn_source(&mut self, (arm, [settle_ns, count_ns], asked): SourceTurn) -> Stage {
        let turn = Request::CopyTurn { arm, settle_ns, count_ns };
        self.ask(self.from, &turn, |pending| Stage::Asked(pending, asked))
    }

    fn poll(&mut self, pending: PendingReply, asked: Asked) -> Stage {
        match self.pair.host(self.from).poll(&pending, Duration::ZERO) {
            None => Stage::Asked(pending, asked),
            Some((_, Ok(Reply::CopyTurned { counted }))) => self.answered(asked, &counted),
            Some((_, Ok(_))) => self.give_up("the source sent an unexpected answer"),
            Some((_, Err(error))) => self.give_up(&error.to_string()),
        }
    }

    /// Ends the comparison because of an error. The copy continues.
    fn give_up(&mut self, why: &str) -> Stage {
        match &self.chooser {
            Some(chooser) => {
                let (arm, none) = (chooser.incumbent().clone(), Nanos(0));
                let writes = Request::CopyWrites { direct: arm.direct };
                // If this request does not reach the source either, the setting under trial stays, and the error says
                // so.
                let back = Request::CopyTurn { arm, settle_ns: none, count_ns: none };
                drop(self.pair.host(self.from).start(&back));
                drop(self.pair.host(self.from.other()).start(&writes));
                self.end(why);
            }
            None => why.clone_into(&mut self.choice.untried),
        }
        Stage::Over
    }

    /// Continues after an end has refused a setting before its turn.
    fn refused(&mut self, asked: Asked, error: &Error) -> Stage {
        self.answered(asked, &CopyCount { refused: error.to_string(), ..CopyCount::default() })
    }

    fn answered(&mut self, asked: Asked, counted: &CopyCount) -> Stage {
        match asked {
            Asked::First => self.recall(counted),
            Asked::Before(arm) => self.recalled(&arm, counted),
            Asked::Look => self.looked(counted),
            Asked::Turn(turn) => self.turned(turn, counted),
            Asked::Kept => {
                let text = format!("the chosen setting is not in force: {}", counted.refused);
                self.lines.extend((!counted.refused.is_empty()).then_some(Line::Note { text }));
                Stage::Over
            }
        }
    }

    /// Applies the setting that an earlier copy kept.
    fn recall(&mut self, counted: &CopyCount) -> Stage {
        self.start.control = counted.control.clone().filter(|_| self.choosing.control);
        match self.choosing.remembered.clone() {
            // The copy's own flows carry the data until the other flows have opened.
            Some(arm) if arm.transport.is_some() => {
                let [least, most] = OPENING_BOUNDS;
                let opening = counted.rtt_ns.times(OPENING).clamp(least, most);
                self.turn(arm.clone(), [opening, Nanos(0)], Asked::Before(arm))
            }
            Some(arm) if arm != self.start => {
                self.widen(arm.flows);
                self.turn(arm.clone(), [Nanos(0); 2], Asked::Before(arm))
            }
            _ => Stage::Waits,
        }
    }

    fn recalled(&mut self, arm: &CopyArm, counted: &CopyCount) -> Stage {
        // The rate so far is that of another setting.
        self.seen.forget();
        let has_all = arm.transport.is_none() || counted.flows == arm.flows;
        let refused = match has_all || !counted.refused.is_empty() {
            true => counted.refused.clone(),
            false => missing_flows(counted.flows, arm),
        };
        if refused.is_empty() {
            let is_remembered = *arm != self.start;
            let kept = is_remembered.then(|| arm.clone());
            self.choice = CopyChoice { kept, is_remembered, ..std::mem::take(&mut self.choice) };
            return Stage::Waits;
        }
        if *arm == self.start {
            return self.give_up(&refused);
        }
        let text = format!("the setting of an earlier copy was refused: {refused}");
        self.lines.push(Line::Note { text });
        self.choosing.remembered = None;
        if arm.transport.is_some() {
            self.leave_others();
        }
        self.turn(self.start.clone(), [Nanos(0); 2], Asked::Before(self.start.clone()))
    }

    /// Opens further flows, if permitted. A failure to open shows in the first turn that needs the flow.
    fn widen(&self, flows: u32) {
        if flows > self.start.flows {
            // Side A opens the flows.
            drop(self.pair.a.start(&Request::CopyWiden { flows }));
        }
    }

    /// Finds out what the copy sends, once the copy is expected to take long enough.
    fn look(&mut self) -> Stage {
        let is_long = self.outlook().is_some_and(|outlook| outlook.is_long());
        if !is_long || Instant::now() < self.look_after {
            return Stage::Waits;
        }
        self.look_after = Instant::now() + AGAIN;
        let arm = self.choice.kept.clone().unwrap_or_else(|| self.start.clone());
        self.turn(arm, [Nanos(0), LOOK], Asked::Look)
    }

    pub(super) fn outlook(&self) -> Option<CopyOutlook> {
        let (left, rate) = self.seen.left_and_rate()?;
        Some(CopyOutlook { elapsed: self.begun.elapsed().into(), left, rate })
    }

    /// Begins the trials if only long files are being sent.
    fn looked(&mut self, counted: &CopyCount) -> Stage {
        let Some(outlook) = self.outlook().filter(|_| counted.is_clean) else { return Stage::Waits };
        match planned(&copy_held(&self.times), &self.levers(counted.rtt_ns), &outlook) {
            Ok((_, size)) if size.is_tight() && self.begun.elapsed() < SETTLING => self.not_now(format!(
                "30 % of the copy is only enough for {} blocks of four turns while its rate settles",
                size.blocks
            )),
            Ok((found, size)) => {
                self.widen(most_of(&found));
                self.choice = CopyChoice::default();
                self.trials_begun = Instant::now();
                self.chooser = Some(CopyChooser::new(self.start.clone(), found, size, rand::random()));
                self.next_turn()
            }
            Err(why) => self.not_now(why),
        }
    }

    /// Keeps the reason why nothing is compared now. Waits if it is early, because the reason may pass; otherwise ends.
    fn not_now(&mut self, why: String) -> Stage {
        self.choice.untried = why;
        if self.is_early() { Stage::Waits } else { Stage::Over }
    }

    /// Returns true while the walk may find more files, and in the first minute of a copy, in which its rate and its
    /// limit may still change.
    fn is_early(&self) -> bool {
        !self.seen.is_walked() || self.begun.elapsed() < Duration::from(LEAST_COPY)
    }

    /// Returns what can be changed on flows with this round trip.
    fn levers(&self, rtt: Nanos) -> CopyLevers {
        let link_mbps = Side::BOTH.map(|side| self.pair.link(side).speed_mbps);
        CopyLevers {
            start: self.start.clone(),
            most_flows: self.most_flows,
            controls: self.pair.host(self.from).facts.congestion_available.clone(),
            transports: self.choosing.others.keys().cloned().collect(),
            remembered: self.choosing.remembered.clone(),
            windows: CopyWindows { of_ends: self.windows, link_mbps, rtt },
        }
    }

    fn turned(&mut self, turn: NextTurn, counted: &CopyCount) -> Stage {
        let NextTurn { arm, candidate, is_candidate, settle, .. } = turn;
        let (at_ns, counted) = (self.begun.elapsed().into(), counted.clone());
        if let Some(chooser) = &mut self.chooser {
            chooser.take(&counted);
        }
        let line =
            CopyTurn { at_ns, candidate, is_candidate, is_slowing: false, arm, settle_ns: settle, counted };
        self.lines.push(Line::CopyTurn(Box::new(line)));
        self.next_turn()
    }

    /// Begins the next turn. After the last one, applies the setting that was kept.
    fn next_turn(&mut self) -> Stage {
        let (spent, outlook) = (self.trials_begun.elapsed().into(), self.outlook());
        let Some(chooser) = &mut self.chooser else { return Stage::Over };
        if let Some(outlook) = outlook {
            chooser.has_left(spent, &outlook);
        }
        let next = chooser.next_turn(spent);
        let incumbent = chooser.incumbent().clone();
        self.take_decisions();
        match next {
            Some(turn) => self.turn(turn.arm.clone(), [turn.settle, turn.count], Asked::Turn(turn)),
            None => self.turn(incumbent, [Nanos(0); 2], Asked::Kept),
        }
    }

    /// Gives up another transport. The copy must not wait for data on its flows, which may be slow on this path.
    fn leave_others(&mut self) {
        self.choosing.others.clear();
        if self.other.take().is_some() {
            // Side A opens the flows. Without them, side B needs no port for them.
            let hosts = [self.pair.a, self.pair.b];
            hosts.iter().for_each(|host| drop(host.start(&Request::CopyLeaveOthers {})));
        }
    }

    fn take_decisions(&mut self) {
        let Some(chooser) = &mut self.chooser else { return };
        let decided = chooser.decided();
        self.choice.is_judged |= decided.iter().any(|decision| decision.ratio.is_some());
        self.choice.kept = chooser.kept().cloned();
        // A transport that was kept stays during later trials.
        let is_refused = |one: &CopyDecision| {
            one.to.transport != one.from.transport && one.result != CopyTrialResult::Kept
        };
        if decided.iter().any(is_refused) {
            self.leave_others();
        }
        self.lines.extend(decided.into_iter().map(|decision| Line::CopyDecision(Box::new(decision))));
    }
}

/// Returns the reason why a copy cannot compare settings although it should; `None` if it can.
fn cannot_try(pair: &Pair<'_>, what: &CopyOptions) -> Option<String> {
    what.choosing.as_ref()?;
    let why = match () {
        () if pair.is_relayed() => "this machine relays the data and limits its rate",
        () if what.rules.limit_bps.is_some() => "--limit-rate sets the rate",
        () => return None,
    };
    Some(why.to_owned())
}

fn most_of(candidates: &[CopyChange]) -> u32 {
    candidates.iter().filter_map(|change| change.flows).max().unwrap_or_default()
}
