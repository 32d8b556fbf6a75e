//! The state of a tuning run so far, and its description in words. This module prints nothing.

use std::collections::BTreeMap;
use std::time::Instant;

use landspeed_analysis::verdict::{cause, is_limit};
use landspeed_analysis::{Metric, OUT_OF_TIME, STOPPED};
use landspeed_record::units::Nanos;
use landspeed_record::{Line, RestoreOutcome, StepSummary, Trial, Verdict};

use super::running_ratio::RunningRatio;
use crate::output::{Painter, Tone};
use crate::words::{self, StepOutcome};
use crate::{DetailLevel, safe};

/// Greatest width of permanent lines, in characters.
const COLUMNS: usize = 80;
/// Width of a step's description in characters.
const WORDS: usize = 29;
/// Width of the progress bar in characters.
const BAR: usize = 20;
/// Width of a terminal in characters below which there is no bar and no count of blocks.
const NARROW: usize = 72;

/// The progress of a step that is being tried, or that was tried.
#[derive(Debug, Clone, Default)]
struct StepProgress {
    /// Description of the step.
    what: String,
    /// Greatest number of blocks of the step; 0 if it is not fixed.
    most: u32,
    blocks: u32,
    so_far: RunningRatio,
}

#[derive(Debug)]
pub(super) struct TuneProgressState {
    painter: Painter,
    detail: DetailLevel,
    primary: Metric,
    /// Time for the run, including the confirmation of its result.
    budget: Nanos,
    /// Time at which the run's clock started.
    began: Option<Instant>,
    /// The id of the step of the last trial.
    step: String,
    /// All steps so far, by id. Blocks of several steps alternate.
    tried: BTreeMap<String, StepProgress>,
    /// The outcome that was printed for each step.
    said: BTreeMap<String, StepOutcome>,
}

impl TuneProgressState {
    pub(super) fn new(painter: Painter, detail: DetailLevel) -> Self {
        TuneProgressState {
            painter,
            detail,
            primary: Metric::Rate,
            budget: Nanos(0),
            began: None,
            step: String::new(),
            tried: BTreeMap::new(),
            said: BTreeMap::new(),
        }
    }

    /// Takes a line of the record and returns the lines to print.
    pub(super) fn take(&mut self, line: &Line) -> Vec<String> {
        match line {
            Line::Header(header) => {
                self.budget = header.budget_ns + header.confirm_for_ns;
                self.primary = Metric::of_goal(&header.goal);
                self.began = Some(Instant::now());
                Vec::new()
            }
            Line::Trying { step, what, blocks, .. } => self.begin(step, what, blocks.unwrap_or_default()),
            Line::Trial(trial) => self.trial(trial),
            Line::Verdict(line) => vec![self.painter.paint(Tone::Strong, &bottleneck(&line.verdict))],
            Line::Step(step) => self.decision(&step.summary),
            Line::Note { text } => self.note(text),
            Line::Restored(restored) => self.restored(restored),
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, step: &str, what: &str, most: u32) -> Vec<String> {
        step.clone_into(&mut self.step);
        // The knob's name is enough here: the values are printed with the answer.
        let what = safe(what.split(['=', ':']).next().unwrap_or_default());
        self.tried.insert(step.to_owned(), StepProgress { what, most, ..StepProgress::default() });
        Vec::new()
    }

    fn trial(&mut self, trial: &Trial) -> Vec<String> {
        if let Some(tried) = self.tried.get_mut(&trial.step) {
            trial.step.clone_into(&mut self.step);
            tried.blocks = tried.blocks.max(trial.block.saturating_add(1));
            tried.so_far.add(trial, self.primary);
        }
        Vec::new()
    }

    /// Returns the lines on the result of a step: one for each measured step, and another if a kept step is dropped in
    /// the end.
    fn decision(&mut self, step: &StepSummary) -> Vec<String> {
        let outcome = StepOutcome::of(step);
        let before = self.said.insert(step.id.clone(), outcome);
        let is_news = before.is_none() || outcome == StepOutcome::Dropped;
        let quiet = matches!(outcome, StepOutcome::Placebo | StepOutcome::NotTried);
        if !is_news || (quiet && self.detail == DetailLevel::Brief) || (step.blocks == 0 && before.is_none())
        {
            return Vec::new();
        }
        let labels = outcome.labels();
        let sign = if outcome == StepOutcome::NoEffect { "✗" } else { labels.symbol };
        let figure = self.primary.of_step(step).map(|e| (words::times(e.ratio), words::interval(&e)));
        let (ratio, interval) = figure.unwrap_or_default();
        let line =
            format!("  {sign} {:WORDS$} {ratio:>6}  {interval:14}  {}", change(step), word(step, outcome));
        let mut lines = vec![self.painter.paint(labels.tone, line.trim_end())];
        if self.detail == DetailLevel::Full {
            lines.push(self.painter.paint(Tone::Dim, &format!("      {}", safe(&step.reason))));
        }
        lines
    }

    /// Returns the lines of a note: none in brief detail, unless the note says that the run does not count.
    fn note(&self, text: &str) -> Vec<String> {
        let is_grave = text.starts_with("VOID");
        let tone = if is_grave { Tone::Bad } else { Tone::Dim };
        let is_shown = is_grave || self.detail == DetailLevel::Full;
        is_shown.then(|| self.painter.paint(tone, &format!("  {}", safe(text)))).into_iter().collect()
    }

    /// Returns the lines on settings that do not read back as before; none if all do.
    fn restored(&self, restored: &RestoreOutcome) -> Vec<String> {
        let Some(words) = restored.state().words() else { return Vec::new() };
        let head = self.painter.paint(Tone::Bad, words.what);
        std::iter::once(head).chain(restored.notes.iter().map(|note| format!("  {}", safe(note)))).collect()
    }

    /// Returns the progress line: the time left, the present step and its ratio so far. `width` is the terminal's in
    /// characters, or `None` for a log.
    pub(super) fn status(&self, width: Option<usize>) -> String {
        let Some(began) = self.began else { return String::new() };
        self.status_at(began.elapsed().into(), width)
    }

    fn status_at(&self, used: Nanos, width: Option<usize>) -> String {
        let start = StepProgress { what: "looking at the hosts".to_owned(), ..StepProgress::default() };
        let StepProgress { what, most, blocks, so_far } = self.tried.get(&self.step).unwrap_or(&start);
        let block = match (*blocks, *most) {
            // Guards may need more blocks than the greatest number of the step, which is then left out.
            (block, most) if block > 0 && block <= most => format!("  block {block}/{most}"),
            (block, _) if so_far.ratio().is_some() => format!("  block {block}"),
            _ => String::new(),
        };
        let ratio = so_far.ratio().map(|r| format!("  {} so far", words::times(r))).unwrap_or_default();
        let is_narrow = width.is_some_and(|width| width < NARROW);
        let end = if is_narrow { ratio } else { format!("{block}{ratio}") };
        let left = self.time_left(used);
        let Some(width) = width else { return format!("{left}  {what}{end}") };
        let bar = if is_narrow { String::new() } else { format!("{}  ", self.bar(used)) };
        let start = format!("  {bar}{left}  ");
        let room = width.saturating_sub(1 + start.chars().count() + end.chars().count());
        format!("{start}{}{end}", fitting(what, room))
    }

    /// Draws a bar that shows the used part of the budget.
    fn bar(&self, used: Nanos) -> String {
        let part = (used.0 as f64 / self.budget.0.max(1) as f64).min(1.0);
        let full = (part * BAR as f64) as usize;
        let tip = if full < BAR { "╸" } else { "" };
        format!("{}{tip}{}", "━".repeat(full), "─".repeat((BAR - full).saturating_sub(1)))
    }

    fn time_left(&self, used: Nanos) -> String {
        format!("{} left", clock(self.budget.saturating_sub(used)))
    }
}

/// Formats a time in minutes and seconds, "4:07", or with hours, "8:36:40".
pub fn clock(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Returns a step's change, "mtu 1500 -> 9000", without the old value if both do not fit.
fn change(step: &StepSummary) -> String {
    let again = if step.reopened { " again" } else { "" };
    let placebo = if step.placebo { "placebo " } else { "" };
    let whole = safe(&format!("{placebo}{} {} -> {}{again}", step.knob, step.from, step.value));
    let brief = safe(&format!("{placebo}{} {}{again}", step.knob, step.value));
    if whole.chars().count() <= WORDS { whole } else { fitting(&brief, WORDS) }
}

/// Returns the reason why a step is not kept, in a few words; empty for a kept step.
fn word(step: &StepSummary, outcome: StepOutcome) -> &'static str {
    let helps = step.reason.starts_with("helps");
    match outcome {
        StepOutcome::Kept | StepOutcome::Placebo => "",
        StepOutcome::NoEffect => "no effect",
        StepOutcome::Harms if helps => "costs too much",
        StepOutcome::Undecided if step.reason.starts_with(STOPPED) => "stopped",
        StepOutcome::Undecided if step.reason.starts_with(OUT_OF_TIME) => "out of time",
        StepOutcome::Undecided if helps => "not shown safe",
        StepOutcome::Undecided => "too noisy",
        other => other.labels().brief,
    }
}

/// Returns a verdict in a line, "bottleneck: the processor; software checksums (69 % of the time)", with as
/// many causes as fit.
fn bottleneck(verdict: &Verdict) -> String {
    let causes = verdict.findings.iter().map(|finding| {
        let share = finding.weight * 100.0;
        let shown = !is_limit(finding.cause) && (0.5..=100.0).contains(&share);
        let share = if shown { format!(" ({share:.0} % of the time)") } else { String::new() };
        format!("{}{share}", cause(finding.cause))
    });
    let line = causes.reduce(|line, cause| match line.chars().count() + cause.chars().count() {
        long if long > COLUMNS - 18 => line,
        _ => format!("{line}; {cause}"),
    });
    format!("  bottleneck: {}", fitting(&line.unwrap_or_else(|| "not known".into()), COLUMNS - 15))
}

/// Returns `text`, cut to `room` characters with "..." at its end if it is longer.
fn fitting(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let cut: String = text.chars().take(room.saturating_sub(3)).collect();
    format!("{cut}...")
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{BitRate, BytesPerCpuSecond};
    use landspeed_record::{Arm, Cell, Estimate, Finding, Header, StepAnswer, StepLine, TrialFigures};

    use super::*;

    fn trial(block: u32, position: u32, gbps: f64) -> Line {
        let arm = if position == 0 || position == 3 { Arm::Incumbent } else { Arm::Candidate };
        Line::Trial(Box::new(Trial {
            step: "s1".into(),
            block,
            position,
            arm,
            at_ns: Nanos::secs(60 + u64::from(block)),
            figures: TrialFigures {
                rate_bps: BitRate(gbps * 1e9),
                bytes_per_cpu_s: BytesPerCpuSecond(gbps * 1e8),
                ..TrialFigures::default()
            },
            ..Trial::default()
        }))
    }

    fn state() -> TuneProgressState {
        let mut state = TuneProgressState::new(Painter { color: false }, DetailLevel::Brief);
        let header = Header { budget_ns: Nanos::secs(300), goal: "rate".into(), ..Header::default() };
        assert!(state.take(&Line::Header(header)).is_empty());
        state
    }

    #[test]
    fn a_clock_has_hours_from_the_first_one_on() {
        for (seconds, expected) in [(0, "0:00"), (3_599, "59:59"), (3_600, "1:00:00"), (31_000, "8:36:40")] {
            assert_eq!(clock(Nanos::secs(seconds)), expected);
        }
    }

    #[test]
    fn the_status_says_what_is_tried_and_its_ratio_so_far() {
        let mut state = state();
        assert_eq!(state.status_at(Nanos(0), None), "5:00 left  looking at the hosts");
        let what = "t\u{1b}[2Jso=on with tx-checksum=on".to_owned();
        state.take(&Line::Trying { step: "s1".into(), what, at_ns: Nanos::secs(58), blocks: Some(11) });
        for block in 0..2 {
            for (position, gbps) in [(0, 10.0), (1, 20.0), (2, 20.0), (3, 10.0)] {
                state.take(&trial(block, position, gbps));
            }
        }
        let used = Nanos::secs(61);
        assert_eq!(state.status_at(used, None), r"3:59 left  t\u{1b}[2Jso  block 2/11  2.00× so far");
        let bar = "  ━━━━╸───────────────  3:59 left  ";
        let drawn = state.status_at(used, Some(80));
        assert_eq!(drawn, format!("{bar}{}  block 2/11  2.00× so far", r"t\u{1b}[2Jso"));
        assert_eq!(
            state.status_at(used, Some(60)),
            format!("  3:59 left  {}  2.00× so far", r"t\u{1b}[2Jso")
        );
    }

    #[test]
    fn interleaved_blocks_are_shown_by_their_own_names() {
        let mut state = state();
        let begin = |step: &str, what: &str| Line::Trying {
            step: step.into(),
            what: what.into(),
            at_ns: Nanos(0),
            blocks: None,
        };
        state.take(&begin("s1", "gro=on"));
        state.take(&trial(0, 0, 10.0));
        state.take(&begin("without 02-tso=on", "checking tso: all kept steps over the same without tso=on"));
        assert_eq!(state.status_at(Nanos(0), None), "5:00 left  checking tso");
        state.take(&trial(1, 1, 20.0));
        assert_eq!(state.status_at(Nanos(0), None), "5:00 left  gro  block 2  2.00× so far");
    }

    fn step(answer: StepAnswer, (low, ratio, high): (f64, f64, f64), reason: &str) -> StepSummary {
        StepSummary {
            id: format!("{answer:?}{reason}"),
            knob: "mtu".into(),
            from: "1500".into(),
            value: "9000".into(),
            answer,
            kept: answer == StepAnswer::Helps,
            rate: Some(Estimate { low, ratio, high }),
            blocks: 8,
            reason: reason.into(),
            ..StepSummary::default()
        }
    }

    fn said(state: &mut TuneProgressState, summary: &StepSummary) -> Vec<String> {
        let (incumbent, candidate) = (Cell::default(), Cell::default());
        state.take(&Line::Step(Box::new(StepLine { summary: summary.clone(), incumbent, candidate })))
    }

    #[test]
    fn each_measured_step_is_a_line_of_one_shape_and_is_said_once() {
        let mut state = state();
        let kept = step(StepAnswer::Helps, (1.07, 1.77, 2.21), "helps");
        let kept_line = "  ✓ mtu 1500 -> 9000               1.77×  [1.07, 2.21]";
        assert_eq!(said(&mut state, &kept), [kept_line]);
        assert!(said(&mut state, &kept).is_empty(), "the final trials say it again");
        let dropped = StepSummary { kept: false, ..kept };
        assert_eq!(said(&mut state, &dropped), [format!("{kept_line}    dropped").replace('✓', "○")]);
        let none = StepSummary {
            knob: "tcp-rmem".into(),
            from: "4096 131072 6291456".into(),
            value: "4096 131072 33554432".into(),
            ..step(StepAnswer::NoEffect, (0.97, 0.99, 1.01), "no useful effect")
        };
        let line = "  ✗ tcp-rmem 4096 131072 33554432  0.99×  [0.97, 1.01]    no effect";
        assert_eq!(said(&mut state, &none), [line]);
        let noisy = step(StepAnswer::Undecided, (0.01, 2.6, 28.0), "no answer in all planned blocks");
        assert!(said(&mut state, &noisy)[0].ends_with("too noisy"));
        for quiet in [StepAnswer::Skipped, StepAnswer::NotTried] {
            assert!(
                said(&mut state, &StepSummary { blocks: 0, ..step(quiet, (1.0, 1.0, 1.0), "") }).is_empty()
            );
        }
        assert!(said(&mut state, &StepSummary { placebo: true, id: "p".into(), ..noisy }).is_empty());
        assert!(state.take(&Line::Note { text: "a block was discarded".into() }).is_empty());
        assert_eq!(state.take(&Line::Note { text: "VOID: no".into() }), ["  VOID: no"]);
    }

    #[test]
    fn settings_that_are_not_as_before_are_said_in_the_words_of_the_report() {
        let said = |restored| state().take(&Line::Restored(restored));
        assert!(said(RestoreOutcome::untouched()).is_empty());
        let left =
            RestoreOutcome { left: true, notes: vec!["mtu is 1400".into()], ..RestoreOutcome::default() };
        let what = left.state().words().expect("not as before").what;
        let sentence = words::unrestored(left.state()).expect("not as before");
        assert!(sentence.to_lowercase().contains(what), "{sentence}");
        assert_eq!(said(left), [what, "  mtu is 1400"]);
    }

    #[test]
    fn the_bottleneck_fits_a_line() {
        let finding = |cause, weight| Finding {
            cause,
            at: String::new(),
            summary: String::new(),
            confidence: 1.0,
            weight,
            allows_bps: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
        };
        let causes = [landspeed_record::Cause::OffloadsOff, landspeed_record::Cause::CpuLimit];
        let mut verdict = Verdict::default();
        assert_eq!(bottleneck(&verdict), "  bottleneck: not known");
        verdict.findings = causes.iter().cycle().take(6).map(|cause| finding(*cause, 0.69)).collect();
        let line = bottleneck(&verdict);
        assert!(line.contains("(69 % of the time)") && line.chars().count() <= COLUMNS, "{line}");
    }
}
