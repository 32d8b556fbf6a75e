//! The terminal's summary of a run: the answer, the evidence, and the next commands. The page has all details.

use landspeed_analysis::Metric;
use landspeed_record::{Estimate, Record, StepSummary, TuneSummary};

use super::answer::{headline, help, longer, placebos, proven, without_time};
use super::figures;
use crate::block::{
    ColumnKind, List, ParagraphStyle, ReportBlock, ReportTable, StyledText, TableCell, TableColumn, TableRow,
    TextStyle,
};
use crate::output::Tone;
use crate::words::{self, StepOutcome};
use crate::{conditions, safe};

/// Largest number of doubts that a terminal in brief detail shows.
const DOUBTS: usize = 2;
/// Largest number of kept steps that a terminal in brief detail shows.
const KEPT: usize = 6;

/// Returns the summary, from the result to the next commands. `named` is the record's path as the commands contain it.
pub(super) fn blocks(summary: &TuneSummary, record: &Record, named: &str) -> Vec<ReportBlock> {
    let (kept, tried, left) = (kept(summary), tried(summary), left(summary, record));
    let labelled = [("KEPT", kept), ("TRIED", tried), ("LEFT", left)];
    let labelled =
        labelled.into_iter().filter_map(|(label, block)| Some(ReportBlock::Labelled(label, vec![block?])));
    let mut blocks = vec![ReportBlock::Labelled("RESULT", result(summary, record)), measured(summary)];
    blocks.extend(labelled);
    blocks.extend(restored(summary));
    let hosts = [("A", &summary.host_a), ("B", &summary.host_b)];
    blocks.extend(conditions::lines(&hosts, &record.controls()).into_iter().map(ReportBlock::text));
    blocks.push(ReportBlock::Labelled("", vec![ReportBlock::Commands(commands(summary, record, named))]));
    blocks
}

fn result(summary: &TuneSummary, record: &Record) -> Vec<ReportBlock> {
    let manner = if proven(summary).is_some() { ParagraphStyle::Good } else { ParagraphStyle::Plain };
    let mut blocks = vec![ReportBlock::Paragraph(manner, headline(summary).into())];
    let void = summary
        .void
        .as_ref()
        .map(|void| ReportBlock::Paragraph(ParagraphStyle::Bad, format!("✗ Does not count: {void}").into()));
    blocks.extend(void);
    blocks.extend(help(summary, record.header.budget_ns).map(ReportBlock::text));
    if !summary.doubts.is_empty() {
        let items = summary.doubts.iter().map(|doubt| format!("beware: {doubt}").into()).collect();
        blocks.push(List { items, most: Some(DOUBTS), tone: Some(Tone::Open), ..List::default() }.into());
    }
    blocks
}

/// Returns the table of figures, and remarks on it.
fn measured(summary: &TuneSummary) -> ReportBlock {
    let mut blocks = vec![figures::table(summary).into()];
    blocks.extend(figures::remark(summary));
    blocks.extend(noise(summary));
    blocks.extend(super::against(summary));
    blocks.extend(super::confirmation(summary));
    ReportBlock::Labelled("", blocks)
}

fn noise(summary: &TuneSummary) -> Option<ReportBlock> {
    let ratios: Vec<f64> = placebos(summary).map(|e| e.ratio).collect();
    let low = ratios.iter().copied().reduce(f64::min)?;
    let high = ratios.iter().copied().reduce(f64::max)?;
    let span = if ratios.len() > 1 {
        format!("{} to {}", words::times(low), words::times(high))
    } else {
        words::times(low)
    };
    let gain = proven(summary).map(|gain| gain.ratio.max(1.0 / gain.ratio));
    let is_more = gain.is_some_and(|gain| high.max(1.0 / low) > gain);
    let more = if is_more { ", more than the gain: run it again" } else { "" };
    Some(ReportBlock::aside(format!("noise: changing nothing measured {span} (placebos){more}")))
}

fn kept(summary: &TuneSummary) -> Option<ReportBlock> {
    let primary = Metric::of_goal(&summary.goal);
    let columns = vec![
        TableColumn::words(""),
        TableColumn::of(ColumnKind::Ratio, ""),
        TableColumn::words(""),
        TableColumn::words(""),
    ];
    let row = |(index, step): (usize, &StepSummary)| {
        // `left_out` is the ratio of the final setting without the step to the final setting.
        let without = step.left_out.filter(Estimate::is_plausible);
        let without =
            without.map(|e| format!("final without it: {}", words::times(1.0 / e.ratio))).unwrap_or_default();
        let is_open = StepOutcome::of(step) == StepOutcome::Unconfirmed;
        let open = StyledText::default().with(TextStyle::Toned, if is_open { "not confirmed" } else { "" });
        let cells = [
            change(step, summary).into(),
            TableCell::from(primary.of_step(step)),
            without.into(),
            open.into(),
        ];
        let only_in_full = index >= KEPT;
        TableRow { tone: is_open.then_some(Tone::Open), only_in_full, ..TableRow::from(cells) }
    };
    let kept = summary.steps.iter().filter(|step| StepOutcome::of(step).is_kept());
    ReportTable::new("Kept", "", columns).rows(kept.enumerate().map(row)).non_empty().map(ReportBlock::from)
}

/// Returns a step's change: "mtu 1500 -> 9000 (both) with tso". If several settings accompany the step, only their
/// number is given, so that the line fits.
fn change(step: &StepSummary, summary: &TuneSummary) -> String {
    let with = match step.with.as_slice() {
        [] => String::new(),
        [one] => format!(" with {}", safe(one.split('=').next().unwrap_or_default())),
        more => format!(" with {} more", more.len()),
    };
    format!("{} ({}){with}", words::change(step), place(step, summary))
}

/// Returns where a step changes something: "both", a host's name, or "flow".
fn place(step: &StepSummary, summary: &TuneSummary) -> String {
    let changes = |from: &Option<String>| from.as_ref().is_some_and(|from| *from != step.value);
    let (a, b) = (safe(&summary.host_a.hostname), safe(&summary.host_b.hostname));
    let [a, b] = if a == b { ["host A".to_owned(), "host B".to_owned()] } else { [a, b] };
    let with = |host: String, others: &[String]| match others.len() {
        0 => host,
        more => format!("{host} and {more} more"),
    };
    match (changes(&step.from_a), changes(&step.from_b)) {
        (true, true) if summary.others_a.is_empty() && summary.others_b.is_empty() => "both".to_owned(),
        (true, true) => "all hosts".to_owned(),
        (true, false) => with(a, &summary.others_a),
        (false, true) => with(b, &summary.others_b),
        (false, false) => "flow".to_owned(),
    }
}

fn tried(summary: &TuneSummary) -> Option<ReportBlock> {
    let count =
        |wanted: StepOutcome| summary.steps.iter().filter(|step| StepOutcome::of(step) == wanted).count();
    let dropped = count(StepOutcome::Dropped);
    let tried = [
        (dropped, "helped, then dropped", dropped > 0),
        (count(StepOutcome::NoEffect), "no effect", true),
        (count(StepOutcome::Undecided), "undecided", true),
        (count(StepOutcome::Harms), "harmful", true),
    ];
    Some(ReportBlock::text(listed(tried)))
}

fn left(summary: &TuneSummary, record: &Record) -> Option<ReportBlock> {
    let count =
        |wanted: StepOutcome| summary.steps.iter().filter(|step| StepOutcome::of(step) == wanted).count();
    let waiting = without_time(summary);
    let budget = longer(summary, record.header.budget_ns).filter(|_| waiting > 0);
    let no_time = budget.map_or("no time".to_owned(), |budget| format!("no time (--budget {budget})"));
    let (pointless, impossible) = (count(StepOutcome::NotTried) - waiting, count(StepOutcome::Skipped));
    let left = [
        (waiting, no_time.as_str(), waiting > 0),
        (pointless, "of no use here", pointless > 0),
        (impossible, "not possible here", impossible > 0),
    ];
    Some(listed(left)).filter(|said| !said.is_empty()).map(ReportBlock::text)
}

/// Joins the counts whose third field is true: "9 no effect, 3 undecided".
fn listed<const N: usize>(counts: [(usize, &str, bool); N]) -> String {
    let shown = counts.into_iter().filter(|(.., is_shown)| *is_shown);
    shown.map(|(count, what, _)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

fn restored(summary: &TuneSummary) -> Vec<ReportBlock> {
    let Some(said) = words::unrestored_after(summary) else {
        return vec![ReportBlock::text("Everything was restored and read back.")];
    };
    let items = summary.restored_notes.iter().map(|note| safe(note).into()).collect();
    let notes = List { items, tone: Some(Tone::Bad), ..List::default() };
    vec![ReportBlock::Paragraph(ParagraphStyle::Bad, said.into()), notes.into()]
}

fn commands(summary: &TuneSummary, record: &Record, named: &str) -> Vec<(StyledText, String)> {
    let page = format!("landspeed show {named} --html report.html");
    let why = format!("landspeed show {named} --full");
    let commands = [("next:", next(summary, record, named)), ("page:", page), ("why:", why)];
    commands.map(|(what, command)| (what.into(), command)).into()
}

/// Returns the command of a run with another budget. The seed is left out, so that another order of trials is drawn.
fn with_budget(command: &str, budget: &str) -> String {
    let mut words = shlex::split(command).unwrap_or_default().into_iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.split('=').next() {
            Some("--budget" | "--seed") if !word.contains('=') => _ = words.next(),
            Some("--budget" | "--seed") => {}
            _ => kept.push(words::quoted(&word)),
        }
    }
    format!("{} --budget {budget}", kept.join(" "))
}

/// Returns the command that follows from the result: `persist` if settings changed, `tune` with a longer budget if
/// settings are open, otherwise `explain`.
fn next(summary: &TuneSummary, record: &Record, named: &str) -> String {
    let hosts = words::quoted_hosts(&summary.topology);
    let changed = summary.start_cell != summary.final_cell && summary.void.is_none();
    let open = summary.steps.iter().filter(|step| StepOutcome::of(step) == StepOutcome::Undecided).count();
    let longer = longer(summary, record.header.budget_ns);
    match (changed, longer) {
        (true, _) if summary.is_lab() => {
            format!("landspeed persist {named} --lab   # no proof for a real host")
        }
        (true, _) => format!("landspeed persist {named}   # make what helped last"),
        (false, Some(budget)) if open + without_time(summary) > 0 => {
            let usual = format!("landspeed tune {hosts}");
            let command = Some(&record.header.command).filter(|command| !command.is_empty());
            let again = with_budget(command.unwrap_or(&usual), &budget);
            format!("{again}   # {open} undecided, {} had no time", without_time(summary))
        }
        (false, _) => format!("landspeed explain {hosts}   # what holds the path back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_run_is_the_same_run_with_another_budget() {
        let command = "landspeed tune dtn1 dtn2 --only 'tso,gso' --budget 100s --with 'a b=1' --seed 7";
        let again = with_budget(command, "5m");
        assert_eq!(again, "landspeed tune dtn1 dtn2 --only tso,gso --with 'a b=1' --budget 5m");
        assert_eq!(
            with_budget("landspeed tune --budget=90s --yes", "5m"),
            "landspeed tune --yes --budget 5m"
        );
    }
}
