//! The report of `landspeed tune` and of `landspeed show`.

pub(crate) mod answer;
mod brief;
mod figures;
mod hosts;
mod overheads;
mod steps;
mod verdicts;

use landspeed_analysis::{Metric, strays};
use landspeed_record::{Gain, Record, TuneSummary};

use crate::block::{
    Chart, CollapsibleGroup, Document, DocumentHead, List, ParagraphStyle, ReportBlock, ReportSection,
    StyledText, TextStyle, Visibility,
};
use crate::output::Tone;
use crate::words;
use crate::{chart, conditions, gauges, glossary, safe};
pub(crate) use hosts::general;

/// Returns the report of a tuning run as a document. `named` is the record's path as commands contain it, quoted for a
/// shell if necessary. Charts whose trials the record lacks are left out.
pub fn tune(summary: &TuneSummary, record: &Record, named: &str) -> Document {
    let sections = [
        ladder(summary, record),
        verdicts::section(summary, record),
        overheads::section(summary, record),
        levels(summary, record),
        curves(record),
        steps::section(summary),
        steps::changed(summary),
        hosts::section(summary, record),
        conditions::section(&[("A", &summary.host_a), ("B", &summary.host_b)]),
        reproduce(summary, record),
        glossary::of("tune"),
    ];
    Document {
        head: DocumentHead { brief: brief::blocks(summary, record, named), ..head(summary, record) },
        sections: sections
            .into_iter()
            .filter_map(ReportSection::non_empty)
            .map(ReportSection::in_full)
            .collect(),
        version: summary.landspeed.clone(),
        styles: &[],
        gauges: gauges::of_tuning(summary),
    }
}

fn head(summary: &TuneSummary, record: &Record) -> DocumentHead {
    let primary = Metric::of_goal(&summary.goal);
    let strong =
        |what: &str, said: &String| StyledText::default().with(TextStyle::Strong, what).and(safe(said));
    let void = summary.void.iter().map(|void| strong("✗ Does not count: ", void));
    let gains = gains(&summary.gain, &primary.order()[..2]);
    let lead = match gains.is_empty() {
        true => "The run ended before its final check.".to_owned(),
        false => format!("Final setting over start, fresh interleaved trials: {gains}."),
    };
    let help =
        answer::help(summary, record.header.budget_ns).map(|help| format!(" {help}")).unwrap_or_default();
    let facts = [
        summary.topology.clone(),
        format!("for {}", summary.goal),
        format!("from {}", summary.baseline),
        format!(
            "{} measured, {}",
            words::counted(words::measured(summary).len(), "step"),
            words::kept(summary)
        ),
        words::duration(summary.took_ns),
        summary.started.clone(),
    ];
    DocumentHead {
        kind: "tuning report",
        warnings: void.chain(summary.doubts.iter().map(|doubt| strong("Beware: ", doubt))).collect(),
        title: answer::headline(summary).into(),
        lead: (lead + &help).into(),
        facts: facts.map(|fact| safe(&fact).into()).into(),
        remarks: remarks(record),
        blocks: restored(summary).into_iter().chain(figures(summary)).collect(),
        ..DocumentHead::default()
    }
}

/// Returns remarks on the path, and on trials that took another path.
fn remarks(record: &Record) -> Vec<StyledText> {
    let of_path = record.path().map(conditions::remarks).unwrap_or_default();
    of_path.into_iter().chain(strays(record).map(|text| safe(&text).into())).collect()
}

/// Formats gains: "12.3× the rate [11.7, 12.9], 11.9× the bytes per CPU-second [11.5, 12.3]".
fn gains(gain: &Gain, of: &[Metric]) -> String {
    let said = of.iter().filter_map(|p| Some((p, p.of_gain(gain)?)));
    let said =
        said.map(|(p, e)| format!("{} the {} {}", words::times(e.ratio), p.row().name, words::interval(&e)));
    said.collect::<Vec<_>>().join(", ")
}

/// Returns the blocks on whether everything was restored. If a setting was not restored, the notes are not folded into
/// a group.
fn restored(summary: &TuneSummary) -> Vec<ReportBlock> {
    let items: Vec<StyledText> = summary.restored_notes.iter().map(|note| safe(note).into()).collect();
    let count = items.len();
    let list = List { items, tone: (!summary.restored).then_some(Tone::Bad), ..List::default() };
    if let Some(text) = words::unrestored_after(summary) {
        return vec![ReportBlock::Paragraph(ParagraphStyle::Bad, text.into()), list.into()];
    }
    let text = "✓ Everything was restored: every value reads back as it was before the run.";
    let title = format!("{} on what was done", words::counted(count, "line")).into();
    let group = CollapsibleGroup { title, open: false, blocks: vec![list.into()] };
    let notes = (count > 0).then(|| group.into());
    [ReportBlock::Paragraph(ParagraphStyle::Good, text.into())].into_iter().chain(notes).collect()
}

fn figures(summary: &TuneSummary) -> Vec<ReportBlock> {
    let mut blocks = vec![figures::cards(summary), figures::table(summary).into()];
    blocks.extend(figures::remark(summary));
    blocks.extend(against(summary));
    blocks.extend(confirmation(summary));
    blocks
}

fn against(summary: &TuneSummary) -> Option<ReportBlock> {
    let gains = gains(summary.against.as_ref()?, &Metric::of_goal(&summary.goal).order());
    let text = StyledText::from("Final over the setting given with ").with(TextStyle::Code, "--against");
    Some(ReportBlock::text(text.and(format!(", in the same run: {gains}."))))
}

fn confirmation(summary: &TuneSummary) -> Option<ReportBlock> {
    let found = summary.confirmation.as_ref()?;
    let (manner, mark) =
        if found.holds { (ParagraphStyle::Good, "✓") } else { (ParagraphStyle::Bad, "✗") };
    let said = words::confirmation(found, Metric::of_goal(&summary.goal));
    Some(ReportBlock::Paragraph(manner, format!("{mark} {said}.").into()))
}

fn ladder(summary: &TuneSummary, record: &Record) -> ReportSection {
    let placebos: Vec<String> = answer::placebos(summary).map(|e| words::estimate(&e)).collect();
    let floor = (!placebos.is_empty()).then(|| {
        let said =
            "Noise floor of this run: placebos, which toggle between two equivalent values, came out at";
        ReportBlock::aside(format!("{said} {}.", placebos.join(" and ")))
    });
    let chart = chart::ladder(summary)
        .map_or_else(|| ReportBlock::absent("No step was measured."), |drawn| Chart(drawn).into());
    let trials = match chart::strip(summary, record) {
        Some(drawn) => vec![ReportBlock::heading("Every trial behind it"), Chart(drawn).into()],
        None => vec![ReportBlock::absent(
            "The record holds no trials of these steps, so they are not drawn one by one.",
        )],
    };
    ReportSection::new("ladder", "The ladder")
        .with(chart)
        .all(floor)
        .with(ReportBlock::Only(Visibility::OnPage, trials))
}

/// Returns charts of the medians at each step. The ratios of the ladder are paired; medians are not, so they include
/// the machine's drift.
fn levels(summary: &TuneSummary, record: &Record) -> ReportSection {
    let section = ReportSection::new("levels", "What it carried, and at what cost");
    let charts: Vec<ReportBlock> = [Metric::Rate, Metric::Cost]
        .into_iter()
        .filter_map(|figure| Some(Chart(chart::level(figure, summary, record)?).into()))
        .collect();
    if charts.is_empty() {
        return section;
    }
    let about = ReportBlock::text(
        "The line is the incumbent's median at each step, from that step's own trials; a mark is the candidate's. Where a \
         candidate is kept, the line comes to it. Level stretches that wander show the machine's drift, which is why decisions \
         use paired ratios and never these levels.",
    );
    section.all(ReportBlock::only(Visibility::OnPage, [about].into_iter().chain(charts)))
}

fn curves(record: &Record) -> ReportSection {
    let charts = [
        ("Rate against write size", chart::sweep(record)),
        ("Latency", chart::latency_distribution(record)),
        ("Latency by message size", chart::latency_by_size(record)),
    ];
    let mut blocks: Vec<ReportBlock> = charts
        .into_iter()
        .filter_map(|(name, drawn)| Some([ReportBlock::heading(name), Chart(drawn?).into()]))
        .flatten()
        .collect();
    if blocks.is_empty() {
        blocks.push(ReportBlock::absent(
            "The record holds no sweep and no ping-pong of the start and final settings.",
        ));
    }
    ReportSection::new("curves", "Start and final across sizes")
        .with(ReportBlock::Only(Visibility::OnPage, blocks))
}

fn reproduce(summary: &TuneSummary, record: &Record) -> ReportSection {
    let path = words::quoted(&summary.record);
    let commands = [
        ("Run it again", safe(&summary.command)),
        ("Show this record", format!("landspeed show {path}")),
        ("Show it as a page", format!("landspeed show {path} --html report.html")),
        ("Make the setting last", format!("landspeed persist {path}")),
    ];
    let mut pairs = vec![
        ("Record", summary.record.clone()),
        ("Seed of the orders of trials", record.header.seed.to_string()),
        ("Budget", words::duration(record.header.budget_ns)),
        ("landspeed", summary.landspeed.clone()),
        ("Record format", record.header.format.to_string()),
    ];
    if record.cut_off {
        pairs.push(("Note", "The record's last line is cut off: the run died while writing it.".to_owned()));
    }
    let pairs = pairs.into_iter().map(|(what, value)| (what.into(), value.into())).collect();
    ReportSection::new("reproduce", "How to reproduce")
        .with(ReportBlock::Commands(commands.map(|(what, command)| (what.into(), command)).into()))
        .with(ReportBlock::Pairs("", pairs))
}
