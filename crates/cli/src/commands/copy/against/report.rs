//! The result of a comparison.

use landspeed_analysis::turn_ratio;
use landspeed_record::units::{Bytes, CpuNanos, Nanos, quoted};
use landspeed_record::{CopyConditions, Estimate};
use landspeed_report::{OutputCapabilities, condition_lines, counted, estimate, safe, table};
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `landspeed copy --against --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgainstReport {
    /// Format version of this document.
    pub(super) format: u32,
    /// The folder that was copied, with its host.
    pub(super) source: String,
    /// The folder beneath which it was copied, with its host.
    pub(super) target: String,
    /// True if a sample of the folder's files was copied instead of all.
    pub(super) is_sample: bool,
    /// The content of each copy.
    pub(super) content: TreeCounts,
    /// The programs: landspeed first, then the others in the order of the command line.
    pub(super) programs: Vec<AgainstProgram>,
    /// Why processor time is not compared; null if it is.
    pub(super) uncounted: Option<String>,
    /// The conditions of landspeed's last turn. The congestion controls are those of landspeed's sockets only.
    #[serde(flatten)]
    pub(super) conditions: CopyConditions,
}

/// The content of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct TreeCounts {
    /// Its entries, including the folder itself.
    pub(super) entries: u64,
    /// The bytes of its files.
    pub(super) file_bytes: Bytes,
}

/// A program of a comparison.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AgainstProgram {
    /// Its name.
    pub(super) name: String,
    /// Its command line.
    pub(super) command: String,
    /// Its turns, without the first one, which does not count.
    pub(super) turns: Vec<AgainstTurn>,
    /// Why it is excluded; null if it is compared.
    pub(super) left_out: Option<String>,
    /// The content of its copy; null if the copy has the entries and the bytes of the source.
    pub(super) other_copy: Option<TreeCounts>,
    /// landspeed's rate divided by its rate; null for landspeed itself, and for an excluded program.
    pub(super) rate: Option<Estimate>,
    /// landspeed's bytes per second of processor time divided by those of this program; null also if processor time is
    /// not compared.
    pub(super) cost: Option<Estimate>,
    #[serde(skip)]
    pub(super) words: Vec<String>,
    /// How its first turn ended.
    #[serde(skip)]
    pub(super) first_code: Option<i32>,
}

/// The times of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct AgainstTurn {
    /// Duration of the turn.
    pub(super) took_ns: Nanos,
    /// Processor time of all processes at both ends, in steps of 10 ms; null if that of the far end is unknown.
    pub(super) cpu_ns: Option<CpuNanos>,
}

impl AgainstProgram {
    pub(super) fn new(name: String, words: Vec<String>, left_out: Option<String>) -> Self {
        let command = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        AgainstProgram {
            name,
            command,
            turns: Vec::new(),
            left_out,
            other_copy: None,
            rate: None,
            cost: None,
            words,
            first_code: None,
        }
    }

    /// Compares the program with landspeed, whose turns are `ours`.
    fn compare(&mut self, ours: &[AgainstTurn]) {
        if self.left_out.is_none() {
            self.rate = Some(turn_ratio(ours, &self.turns, |turn| turn.took_ns.0 as f64));
            let is_counted = ours.iter().chain(&self.turns).all(|turn| turn.cpu_ns.is_some());
            // A turn that takes less than a step of the clock counts as one step.
            let cpu = |turn: &AgainstTurn| turn.cpu_ns.unwrap_or_default().0.max(10_000_000) as f64;
            self.cost = is_counted.then(|| turn_ratio(ours, &self.turns, cpu));
        }
    }

    /// Returns the row of the table: name, rate, cost, and the ratios.
    fn row(&self, bytes: Bytes) -> Vec<String> {
        let mean = |figure: fn(&AgainstTurn) -> u64| {
            self.turns.iter().map(figure).sum::<u64>() / (self.turns.len() as u64).max(1)
        };
        let rate = bytes.per(Nanos(mean(|turn| turn.took_ns.0)));
        let cpu = CpuNanos(mean(|turn| turn.cpu_ns.unwrap_or_default().0)).as_secs_f64();
        let cost = self.turns.iter().all(|turn| turn.cpu_ns.is_some());
        let cost = cost.then(|| format!("{:.2}", cpu * f64::from(1 << 30) / bytes.0.max(1) as f64));
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let ratio = |found: &Option<Estimate>| or_none(found.as_ref().map(estimate));
        vec![safe(&self.name), rate.to_string(), or_none(cost), ratio(&self.rate), ratio(&self.cost)]
    }

    /// Returns the lines below the table.
    fn lines(&self) -> Vec<String> {
        let line = |what: String| format!("{}: {}", safe(&self.name), safe(&what));
        let copy = |copy: &TreeCounts| line(format!("its copy is not the same: it has {}", copy.words()));
        let mut lines = vec![line(self.command.clone())];
        lines.extend(self.left_out.as_ref().map(|why| line(format!("left out: {why}"))));
        lines.extend(self.other_copy.as_ref().map(copy));
        lines
    }
}

impl TreeCounts {
    pub(super) fn words(&self) -> String {
        format!("{}, {}", counted(self.entries, "entry"), self.file_bytes)
    }
}

impl AgainstReport {
    /// Compares the programs with the first one.
    pub(super) fn judged(mut self) -> AgainstReport {
        if let [ours, others @ ..] = self.programs.as_mut_slice() {
            others.iter_mut().for_each(|other| other.compare(&ours.turns));
        }
        self
    }

    /// Returns true if any other program was compared.
    pub(super) fn has_ratio(&self) -> bool {
        self.programs.iter().any(|program| program.rate.is_some())
    }
}

/// Returns the report as lines.
pub(super) fn lines(report: &AgainstReport, _: bool) -> Vec<String> {
    let content = report.content;
    let heads =
        ["program", "rate", "CPU-s per GiB", "landspeed's rate beside it", "landspeed's bytes per CPU-s"];
    let is_compared = |program: &&AgainstProgram| program.left_out.is_none() && !program.turns.is_empty();
    let compared = report.programs.iter().filter(is_compared);
    let rows: Vec<Vec<String>> = compared.map(|program| program.row(content.file_bytes)).collect();
    let turns = report.programs.first().map_or(0, |ours| ours.turns.len());
    let sample = if report.is_sample { "a sample of its files, " } else { "" };
    let mut lines = match rows.is_empty() {
        true => Vec::new(),
        false => vec![table(&heads, &rows, OutputCapabilities::stdout()), String::new()],
    };
    lines.push(format!(
        "{} -> {}: {sample}{}, {turns} turns of each, in random order; above 1, landspeed is better; 95 % intervals",
        safe(&report.source),
        safe(&report.target),
        content.words()
    ));
    lines.extend(
        report.uncounted.as_ref().map(|why| format!("processor time is not compared: {}", safe(why))),
    );
    lines.extend(report.programs.iter().flat_map(AgainstProgram::lines));
    lines.extend(condition_lines(&report.conditions));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, turns: &[(u64, Option<u64>)]) -> AgainstProgram {
        let turn = |(seconds, cpu): &(u64, Option<u64>)| AgainstTurn {
            took_ns: Nanos::secs(*seconds),
            cpu_ns: cpu.map(|ms| CpuNanos(ms * 1_000_000)),
        };
        let turns = turns.iter().map(turn).collect();
        AgainstProgram { turns, ..AgainstProgram::new(name.to_owned(), vec![name.to_owned()], None) }
    }

    fn report(others: Vec<AgainstProgram>) -> AgainstReport {
        let ours = program("landspeed", &[(1, Some(500)), (2, Some(500)), (1, Some(500))]);
        AgainstReport {
            format: 1,
            source: "/from".to_owned(),
            target: "dtn2:/to\u{1b}".to_owned(),
            is_sample: true,
            content: TreeCounts { entries: 3, file_bytes: Bytes(1 << 30) },
            programs: std::iter::once(ours).chain(others).collect(),
            uncounted: None,
            conditions: CopyConditions {
                controls: ["bbr\u{1b}".to_owned()].into(),
                ..CopyConditions::default()
            },
        }
        .judged()
    }

    #[test]
    fn a_ratio_says_by_how_much_landspeed_is_better() {
        let twice = program("rsync", &[(2, Some(1000)), (4, Some(1000)), (2, Some(1000))]);
        let failed =
            AgainstProgram { left_out: Some("no key".to_owned()), ..program("scp", &[(9, Some(1))]) };
        let copy = Some(TreeCounts { entries: 2, file_bytes: Bytes(5) });
        let uncounted =
            AgainstProgram { other_copy: copy, ..program("cp", &[(2, None), (4, None), (2, None)]) };
        let report = report(vec![twice, failed, uncounted]);
        let [ours, rsync, scp, cp] = report.programs.as_slice() else { panic!("{report:?}") };
        assert!(ours.rate.is_none() && report.has_ratio());
        assert!(
            (rsync.rate.unwrap().ratio - 2.0).abs() < 1e-9 && (rsync.cost.unwrap().low - 2.0).abs() < 1e-9
        );
        assert!(scp.rate.is_none() && scp.cost.is_none());
        assert!(cp.rate.is_some() && cp.cost.is_none());
        let text = lines(&report, false).join("\n");
        for said in [
            "a sample of its files, 3 entries, 1 GiB, 3 turns",
            "scp: left out: no key",
            "it has 2 entries, 5 B",
            "the flows used bbr\\u{1b}",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    /// The clock of processes has steps of 10 ms.
    #[test]
    fn a_copy_in_no_time_has_a_ratio() {
        let quick = report(vec![program("cp", &[(1, Some(0)), (1, Some(0)), (1, Some(0))])]);
        assert!((quick.programs[1].cost.unwrap().ratio - 0.02).abs() < 1e-9);
        assert!(!report(Vec::new()).has_ratio());
    }
}
