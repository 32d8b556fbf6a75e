//! The overheads of datagrams: the time that each part of the path takes for a datagram after each kept step, and the
//! gain from the removal of each overhead, beside the gain in the paper (jin-yoo-2007).

use landspeed_analysis::{Metric, PathStage, SizeBudget, TimeBudget, budgets};
use landspeed_record::{Estimate, Record, StepSummary, TuneSummary};

use super::steps::moment;
use crate::block::{
    ColumnKind, ReportBlock, ReportSection, ReportTable, StyledText, TableCell, TableColumn, TableRow, code,
};
use crate::words::{self, StepOutcome};

/// An overhead, the settings that remove it here, and the paper's gain.
struct Overhead {
    name: &'static str,
    knobs: &'static [&'static str],
    paper: &'static str,
}

static OVERHEADS: &[Overhead] = &[
    Overhead { name: "fragmentation", knobs: &["mtu", "write-size"], paper: "1.84x at 32 KB (3.1)" },
    Overhead {
        name: "checksum",
        knobs: &["tx-checksum", "rx-checksum", "no-checksum"],
        paper: "1.44x (3.2)",
    },
    Overhead {
        name: "copy",
        knobs: &["zerocopy-send"],
        paper: "1.78x behind the checksum, 2.56x both (3.3)",
    },
    Overhead { name: "scattered buffers", knobs: &["scatter-gather"], paper: "1.10x (4.1)" },
    Overhead {
        name: "work on each packet",
        knobs: &["datagram-send", "datagram-receive", "tx-udp-segmentation", "gro"],
        paper: "3x for small and medium sizes (4.2)",
    },
    Overhead {
        name: "interrupts",
        knobs: &["busy-poll", "gro-flush-timeout", "napi-defer-hard-irqs", "threaded-napi"],
        paper: "with the above (4.2)",
    },
];

/// Returns the section on overheads. It is empty if the run measured no time budgets; only runs with datagrams measure
/// them.
pub(super) fn section(summary: &TuneSummary, record: &Record) -> ReportSection {
    let section = ReportSection::new("overheads", "Overheads of a datagram");
    let budgets = budgets(record);
    if budgets.is_empty() {
        return section;
    }
    let about = "What a datagram costs each part of the path at the start and after each kept step. The part that takes longest \
                 is what the others wait for. Hosts and drivers are processor time; the driver's part is sampled. On a pair of \
                 virtual devices the receiver's driver runs on the sender's processor and is counted there.";
    section
        .with(ReportBlock::text(about))
        .all(parts(&budgets, summary).non_empty())
        .with(ReportBlock::heading("Removed, beside Jin and Yoo"))
        .all(removed(summary).non_empty())
}

fn parts(budgets: &[TimeBudget], summary: &TuneSummary) -> ReportTable {
    let mut columns = vec![TableColumn::words("At"), TableColumn::number("Size")];
    columns.extend(PathStage::ALL.map(|stage| TableColumn::number(stage.name())));
    columns.extend([TableColumn::number("Lost"), TableColumn::words("Longest")]);
    let rows = budgets.iter().flat_map(|budget| {
        let row = |(index, size): (usize, &SizeBudget)| {
            let at = if index == 0 { moment(&budget.after, summary) } else { StyledText::default() };
            part(at, size)
        };
        budget.sizes.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    ReportTable::new("Time of a datagram", "steps", columns)
        .captioned("Nanoseconds for a datagram.")
        .rows(rows)
}

fn part(at: StyledText, size: &SizeBudget) -> TableRow {
    let time = |stage| TableCell::from(size.of(stage).map(|ns| TableCell::number(ns, format!("{ns:.0}"))));
    let mut cells: Vec<TableCell> =
        vec![at.into(), TableCell::number(size.size.0 as f64, format!("{} B", size.size.0))];
    cells.extend(PathStage::ALL.map(time));
    cells.push(TableCell::number(size.lost, format!("{:.1} %", 100.0 * size.lost)));
    cells.push(size.largest().map_or("", PathStage::name).into());
    TableRow::from(cells)
}

fn removed(summary: &TuneSummary) -> ReportTable {
    let columns = vec![
        TableColumn::words("Overhead"),
        TableColumn::words("Step"),
        TableColumn::of(ColumnKind::Estimate, "Rate"),
        TableColumn::words("Answer"),
        TableColumn::words("Jin and Yoo"),
    ];
    let rows = OVERHEADS.iter().flat_map(|overhead| {
        let steps: Vec<&StepSummary> = summary
            .steps
            .iter()
            .filter(|step| step.blocks > 0 && !step.placebo && overhead.knobs.contains(&step.knob.as_str()))
            .collect();
        match steps.as_slice() {
            [] => vec![row(overhead.name, StyledText::from("not tried here"), None, "", overhead.paper)],
            steps => steps.iter().enumerate().map(|(index, step)| of_step(overhead, index, step)).collect(),
        }
    });
    ReportTable::new("Overheads removed", "steps", columns)
        .captioned("The rate with the step over the rate without it, and what the paper gained by removing the same.")
        .rows(rows)
}

fn of_step(overhead: &Overhead, index: usize, step: &StepSummary) -> TableRow {
    let (name, paper) = if index == 0 { (overhead.name, overhead.paper) } else { ("", "") };
    let (rate, answer) = (Metric::Rate.of_step(step), StepOutcome::of(step).labels().brief);
    row(name, code(words::setting(step)), rate, answer, paper)
}

fn row(name: &str, step: StyledText, rate: Option<Estimate>, answer: &str, paper: &str) -> TableRow {
    TableRow::from(vec![name.into(), step.into(), TableCell::from(rate), answer.into(), paper.into()])
}
