//! One candidate of a copy: its turns, its blocks, and what they show.

use landspeed_record::units::BitRate;
use landspeed_record::{CopyArm, CopyCount, CopyTrialResult, Estimate};
use landspeed_stats::{BlockContrast, Random, StepDesign, StepJudgement, StepState, judge, judge_last};

/// The number of turns of a block.
const TURNS: usize = 4;
/// The number of tries to get a candidate's setting in force, such as its flows opened.
const MOST_TRIES: u32 = 6;
/// The number of turns of a candidate that may be without a figure.
const MOST_SPOILT: u32 = 12;
/// By how many more of its own turns than of the other setting's may be without a figure if a candidate is to be kept.
const MOST_BEYOND: u32 = 4;
/// A turn in which the target took no piece counts as half a piece: a stall is a figure, and has a logarithm.
const HALF_PIECE: u64 = 512 << 10;

/// What came of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CandidateEnd {
    pub(super) result: CopyTrialResult,
    pub(super) ratio: Option<Estimate>,
    pub(super) why: String,
}

impl CandidateEnd {
    pub(super) fn not_tried(why: String) -> Self {
        CandidateEnd { result: CopyTrialResult::NotTried, ratio: None, why }
    }

    fn undecided(why: String) -> Self {
        CandidateEnd { result: CopyTrialResult::Undecided, ratio: None, why }
    }

    fn of(judged: &StepJudgement, why: &str) -> Self {
        let result = match judged.state {
            StepState::Helps => CopyTrialResult::Kept,
            StepState::Harms => CopyTrialResult::Harms,
            StepState::NoEffect => CopyTrialResult::NoEffect,
            StepState::Undecided | StepState::Continue => CopyTrialResult::Undecided,
        };
        CandidateEnd { result, ratio: Some(judged.estimate), why: why.to_owned() }
    }
}

/// A candidate that is tried.
#[derive(Debug)]
pub(super) struct CandidateTrial {
    arm: CopyArm,
    grant: f64,
    design: StepDesign,
    /// True once its setting was in force.
    is_in_force: bool,
    /// The rate of its first turn, which no block has; zero before it.
    first_rate: BitRate,
    tries: u32,
    /// The number of turns without a figure: of the other setting, and of the candidate's own.
    spoilt: [u32; 2],
    /// True if the candidate has the first and the last turn of the block under way.
    candidate_first: bool,
    /// The logarithms of the rates of the block under way, in the order of time.
    logs: Vec<f64>,
    blocks: Vec<BlockContrast>,
}

impl CandidateTrial {
    /// Returns a trial that may keep a useless candidate with the probability `grant`.
    pub(super) fn new(arm: CopyArm, grant: f64, least_ln: f64, blocks: u32) -> Self {
        CandidateTrial {
            arm,
            grant,
            design: StepDesign::new(grant, least_ln, blocks),
            is_in_force: false,
            first_rate: BitRate(0.0),
            tries: 0,
            spoilt: [0; 2],
            candidate_first: false,
            logs: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Returns the trial without the rule that gives a candidate up which is not likely to be kept.
    pub(super) fn thorough(self) -> Self {
        CandidateTrial { design: self.design.thorough(), ..self }
    }

    /// Returns the rate of the first turn, if the first block comes next.
    pub(super) fn rate_before_blocks(&self) -> Option<BitRate> {
        let is_next = self.is_in_force && self.blocks.is_empty() && self.logs.is_empty();
        is_next.then_some(self.first_rate)
    }

    /// Limits the number of blocks. Call it before the first block: the results of blocks must not decide their number.
    pub(super) fn plan_within(&mut self, blocks: u32) {
        self.design = self.design.clone().within(blocks);
    }

    pub(super) fn arm(&self) -> &CopyArm {
        &self.arm
    }

    pub(super) fn grant(&self) -> f64 {
        self.grant
    }

    pub(super) fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns true once its setting was in force.
    pub(super) fn is_in_force(&self) -> bool {
        self.is_in_force
    }

    pub(super) fn is_between_blocks(&self) -> bool {
        self.logs.is_empty()
    }

    /// Returns true if the next turn is the candidate's. Of two blocks, one begins with it.
    pub(super) fn is_candidates_turn(&mut self, random: &mut Random) -> bool {
        if !self.is_in_force {
            return true;
        }
        if self.logs.is_empty() {
            let second_of_two = self.blocks.last().filter(|_| !self.blocks.len().is_multiple_of(2));
            self.candidate_first =
                second_of_two.map_or_else(|| random.happens(0.5), |block| !block.candidate_first);
        }
        self.is_candidates(self.logs.len())
    }

    /// Returns true if the turn with this place in the block is the candidate's: ABBA or BAAB.
    fn is_candidates(&self, place: usize) -> bool {
        (place == 0 || place == TURNS - 1) == self.candidate_first
    }

    /// Takes what was counted in a turn. Returns what came of the candidate, once that is known.
    pub(super) fn take(&mut self, counted: &CopyCount, incumbent: &CopyArm) -> Option<CandidateEnd> {
        if !counted.refused.is_empty() {
            return Some(self.cut_off(&counted.refused));
        }
        if !self.is_in_force {
            return self.take_first(counted);
        }
        let is_candidates = self.is_candidates(self.logs.len());
        let asked = if is_candidates { &self.arm } else { incumbent };
        if !counted.is_clean || counted.counted_ns.0 == 0 || !is_in_force(counted, asked) {
            return self.spoilt(is_candidates);
        }
        let rate = counted.taken_bytes.0.max(HALF_PIECE) as f64 / counted.counted_ns.as_secs_f64();
        self.logs.push(rate.ln());
        if self.logs.len() < TURNS {
            return None;
        }
        let block = self.block();
        self.blocks.push(block);
        let judged = judge(&self.design, &self.blocks);
        (judged.state != StepState::Continue).then(|| self.judged(&judged, ""))
    }

    /// Returns the end of a candidate whose time is over. It is judged by its blocks so far.
    pub(super) fn out_of_time(&self, why: &str) -> CandidateEnd {
        match self.blocks() >= self.design.first_look() {
            true => self.judged(&judge_last(&self.design, &self.blocks), why),
            false => self.cut_off(why),
        }
    }

    /// Returns the end of a candidate that was judged. What spoils turns by chance spoils those of both settings, and
    /// the blocks that are left tell as much. A setting by which flows break is not kept for the turns in which they
    /// hold.
    fn judged(&self, judged: &StepJudgement, why: &str) -> CandidateEnd {
        let end = CandidateEnd::of(judged, why);
        let [of_other, own] = self.spoilt;
        if end.result != CopyTrialResult::Kept || own <= of_other + MOST_BEYOND {
            return end;
        }
        let why = "more of its turns than of the other setting's gave no figure".to_owned();
        CandidateEnd { result: CopyTrialResult::Undecided, why, ..end }
    }

    /// Returns the end of a candidate that is not judged.
    pub(super) fn cut_off(&self, why: &str) -> CandidateEnd {
        match self.is_in_force {
            true => CandidateEnd::undecided(why.to_owned()),
            false => CandidateEnd::not_tried(why.to_owned()),
        }
    }

    /// Takes the turn that brings the candidate into force. Its figure does not count.
    fn take_first(&mut self, counted: &CopyCount) -> Option<CandidateEnd> {
        self.is_in_force = is_in_force(counted, &self.arm);
        self.first_rate = counted.taken_bytes.per(counted.counted_ns);
        self.tries += 1;
        let why = || CandidateEnd::not_tried(missing_flows(counted.flows, &self.arm));
        (!self.is_in_force && self.tries >= MOST_TRIES).then(why)
    }

    /// Gives up the block under way because of its last turn, and after several of them the candidate.
    fn spoilt(&mut self, is_candidates: bool) -> Option<CandidateEnd> {
        self.logs.clear();
        self.spoilt[usize::from(is_candidates)] += 1;
        let why = "too much beside pieces of long files was sent, or flows broke".to_owned();
        (self.spoilt.iter().sum::<u32>() >= MOST_SPOILT).then(|| CandidateEnd::undecided(why))
    }

    /// Returns the block of the turns that were taken.
    fn block(&mut self) -> BlockContrast {
        let logs = std::mem::take(&mut self.logs);
        let mean = |is_candidate: bool| {
            let own = logs.iter().enumerate().filter(|(place, _)| self.is_candidates(*place) == is_candidate);
            own.map(|(_, log)| log).sum::<f64>() / (TURNS / 2) as f64
        };
        let means = [mean(false), mean(true)];
        let within = logs.iter().enumerate();
        let within = within.map(|(place, log)| log - means[usize::from(self.is_candidates(place))]).collect();
        BlockContrast::new(means[1] - means[0], self.candidate_first, within)
    }
}

/// Returns true if the flows have the setting that was asked for.
fn is_in_force(counted: &CopyCount, asked: &CopyArm) -> bool {
    let has_control = asked.control.is_none() || counted.control == asked.control;
    counted.flows == asked.flows && counted.transport == asked.transport && has_control
}

/// Returns the reason why a setting is not in force if fewer of its flows are open than were asked for.
pub fn missing_flows(open: u32, asked: &CopyArm) -> String {
    let missing = format!("{open} of {} flows were open", asked.flows);
    match &asked.transport {
        Some(name) => format!("{missing} over {name}: something on the way may not let it in"),
        None => missing,
    }
}
