//! What is known of a run so far, and how to say it; writes nowhere.

use landspeed_record::{Arm, Candidate, Line, StepSummary, Trial};
use landspeed_units::Nanos;

use crate::expected::{because, expected, verdict};
use crate::output::{Style, Tone};
use crate::safe;
use crate::words::{self, Outcome, Primary};

/// The ratio of a step's two arms so far, by the means of the logarithms: a guide for the eye and no decision, which is made
/// elsewhere, by a method that is valid under peeking.
#[derive(Debug, Clone, Copy, Default)]
struct SoFar {
    /// (trials, sum of logarithms)
    incumbent: (u32, f64),
    candidate: (u32, f64),
}

impl SoFar {
    /// Adds a trial's `figure`; one that was not measured is left out.
    fn add(&mut self, trial: &Trial, figure: Primary) {
        let value = figure.of_figures(&trial.figures);
        if !(value.is_finite() && value > 0.0) {
            return;
        }
        let arm = match trial.arm {
            Arm::Incumbent => &mut self.incumbent,
            Arm::Candidate => &mut self.candidate,
        };
        *arm = (arm.0 + 1, arm.1 + value.ln());
    }

    fn ratio(&self) -> Option<f64> {
        let mean = |(n, sum): (u32, f64)| (n > 0).then(|| sum / f64::from(n));
        Some((mean(self.candidate)? - mean(self.incumbent)?).exp())
    }
}

#[derive(Debug)]
pub(super) struct State {
    style: Style,
    primary: Primary,
    budget: Nanos,
    used: Nanos,
    /// Step that is being tried, and in words.
    step: String,
    what: String,
    blocks: u32,
    rate: SoFar,
    cost: SoFar,
}

impl State {
    pub(super) fn new(style: Style) -> Self {
        State {
            style,
            primary: Primary::Rate,
            budget: Nanos(0),
            used: Nanos(0),
            step: String::new(),
            what: String::new(),
            blocks: 0,
            rate: SoFar::default(),
            cost: SoFar::default(),
        }
    }

    /// Takes a line; what is to be said of it, a line each. `watched`: the status line says by itself
    /// what is being tried.
    pub(super) fn take(&mut self, line: &Line, watched: bool) -> Vec<String> {
        match line {
            Line::Header(header) => {
                self.budget = header.budget_ns;
                self.primary = Primary::of(&header.goal);
                let budget = words::duration(header.budget_ns);
                vec![safe(&format!("{} on {}, budget {budget}", header.kind, header.topology))]
            }
            Line::Host { side, facts } => {
                let memory = facts.memory_bytes;
                let text = format!("host {side}: Linux {}, {} CPUs, {memory}", facts.kernel, facts.cpus);
                vec![safe(&text)]
            }
            Line::Path(path) => {
                let ends = format!("{} ({})", path.address_a, path.link_a);
                vec![safe(&format!(
                    "path: {ends} to {} ({}), round trip {}",
                    path.address_b, path.link_b, path.rtt_ns
                ))]
            }
            Line::Plan { candidates, .. } => vec![plan(candidates)],
            Line::Trying { step, what, at_ns } => self.begin(step, what, *at_ns, watched),
            Line::Trial(trial) => self.trial(trial),
            Line::Verdict(line) => vec![self.style.paint(Tone::Strong, &verdict(&line.verdict))],
            Line::Step(step) => vec![self.decision(&step.summary)],
            Line::Note { text } => vec![self.style.paint(Tone::Dim, &format!("  note: {}", safe(text)))],
            Line::Restored(restored) => self.restored(restored.restored, &restored.notes),
            Line::Knobs { .. } | Line::Summary(_) | Line::Study(_) | Line::Run(_) | Line::Unknown => {
                Vec::new()
            }
        }
    }

    fn begin(&mut self, step: &str, what: &str, at: Nanos, watched: bool) -> Vec<String> {
        self.used = self.used.max(at);
        step.clone_into(&mut self.step);
        self.what = safe(what);
        self.blocks = 0;
        (self.rate, self.cost) = (SoFar::default(), SoFar::default());
        if watched { Vec::new() } else { vec![format!("trying {} ({})", self.what, self.time_left())] }
    }

    fn trial(&mut self, trial: &Trial) -> Vec<String> {
        self.used = self.used.max(trial.at_ns);
        if trial.step == self.step {
            self.blocks = self.blocks.max(trial.block.saturating_add(1));
            self.rate.add(trial, Primary::Rate);
            self.cost.add(trial, Primary::Cost);
        }
        Vec::new()
    }

    fn decision(&self, step: &StepSummary) -> String {
        let outcome = Outcome::of(step);
        let figure =
            self.primary.of_step(step).map(|e| format!(" {}", words::estimate(&e))).unwrap_or_default();
        let head = format!("{} {}{figure}", outcome.told().symbol, words::step_words(step));
        let head = self.style.paint(outcome.told().tone, &head);
        format!("{head} {}: {}{}", outcome.told().word, safe(&step.reason), advice(step))
    }

    fn restored(&self, all: bool, notes: &[String]) -> Vec<String> {
        let (tone, text) =
            if all { (Tone::Good, "everything put back") } else { (Tone::Bad, "NOT everything put back") };
        let mut lines = vec![self.style.paint(tone, text)];
        lines.extend(notes.iter().map(|note| format!("  {}", safe(note))));
        lines
    }

    /// What is being tried and its ratio so far, on one line.
    pub(super) fn status(&self) -> String {
        if self.what.is_empty() {
            return "looking at the hosts".to_owned();
        }
        let figures: Vec<String> = [(Primary::Rate, &self.rate), (Primary::Cost, &self.cost)]
            .into_iter()
            .filter_map(|(p, so_far)| Some(format!("{} {}", p.called().short, words::times(so_far.ratio()?))))
            .collect();
        match figures.as_slice() {
            [] => self.what.clone(),
            figures => {
                format!("{}: {} so far, block {}", self.what, figures.join(", "), self.blocks)
            }
        }
    }

    /// (position, length) of the budget in milliseconds.
    pub(super) fn progress(&self) -> (u64, u64) {
        let length = (self.budget.0 / 1_000_000).max(1);
        ((self.used.0 / 1_000_000).min(length), length)
    }

    pub(super) fn time_left(&self) -> String {
        if self.budget.0 == 0 {
            return "no budget set".to_owned();
        }
        let left = self.budget.saturating_sub(self.used).0 / 1_000_000_000;
        format!("{}:{:02} left", left / 60, left % 60)
    }
}

/// Why a measured step came now, and what was expected of it, where a verdict said so.
fn advice(step: &StepSummary) -> String {
    let said = step.advised.filter(|_| step.blocks > 0);
    let Some(said) = said else { return String::new() };
    let expected = expected(&said).map(|ratio| format!(", expected {}", words::times(ratio)));
    format!(" ({}{})", because(&said), expected.unwrap_or_default())
}

fn plan(candidates: &[Candidate]) -> String {
    let skipped = candidates.iter().filter(|c| c.skip.is_some()).count();
    format!("plan: {} candidates, {skipped} more cannot be or matter here", candidates.len() - skipped)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{Arm, Cell, EndpointOutcome, Figures, Header};
    use landspeed_units::{BitRate, BytesPerCpuSecond};

    use super::*;

    fn trial(block: u32, position: u32, gbps: f64) -> Line {
        let arm = if position == 0 || position == 3 { Arm::Incumbent } else { Arm::Candidate };
        Line::Trial(Box::new(Trial {
            step: "s1".into(),
            block,
            position,
            arm,
            at_ns: Nanos::secs(60 + u64::from(block)),
            cell: Cell::default(),
            a: EndpointOutcome::default(),
            b: EndpointOutcome::default(),
            figures: Figures {
                rate_bps: BitRate(gbps * 1e9),
                bytes_per_cpu_s: BytesPerCpuSecond(gbps * 1e8),
                ..Figures::default()
            },
        }))
    }

    #[test]
    fn the_status_says_what_is_tried_and_its_ratio_so_far() {
        let mut state = State::new(Style { color: false });
        let header = Header { budget_ns: Nanos::secs(300), goal: "rate".into(), ..Header::default() };
        state.take(&Line::Header(header), true);
        assert_eq!(state.status(), "looking at the hosts");
        let what = "tso=on with tx-checksum=on\u{1b}[2J".to_owned();
        let trying = Line::Trying { step: "s1".into(), what, at_ns: Nanos::secs(58) };
        assert!(state.take(&trying, true).is_empty(), "the status line says it");
        assert_eq!(state.take(&trying, false), [r"trying tso=on with tx-checksum=on\u{1b}[2J (4:02 left)"]);
        for block in 0..2 {
            for (position, gbps) in [(0, 10.0), (1, 20.0), (2, 20.0), (3, 10.0)] {
                state.take(&trial(block, position, gbps), true);
            }
        }
        let status = r"tso=on with tx-checksum=on\u{1b}[2J: rate 2.00×, cost 2.00× so far, block 2";
        assert_eq!(state.status(), status);
        assert_eq!((state.progress(), state.time_left()), ((61_000, 300_000), "3:59 left".into()));
    }
}
