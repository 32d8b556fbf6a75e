//! The report of `landspeed tune` and of `landspeed show`.

mod hosts;
mod steps;
mod verdicts;

use landspeed_record::{Estimate, Figures, Gain, Record, TuneSummary};
use landspeed_units::Nanos;

use crate::block::{
    Block, Card, Cell, Chart, Column, ColumnKind, Document, Group, Head, List, Look, Manner, Section, Seen,
    Table, Text,
};
use crate::output::Tone;
use crate::words::{self, Primary};
use crate::{chart, glossary, safe};
pub(crate) use hosts::general;

/// The report of a tuning run, ready to be printed. Charts whose trials the record lacks are left out.
pub fn tune(summary: &TuneSummary, record: &Record) -> Document {
    let sections = [
        ladder(summary, record),
        verdicts::section(summary, record),
        levels(summary, record),
        curves(record),
        steps::section(summary),
        steps::changed(summary),
        hosts::section(summary, record),
        reproduce(summary, record),
        glossary::of("tune"),
    ];
    Document {
        head: head(summary),
        sections: sections.into_iter().filter_map(Section::some).collect(),
        version: summary.landspeed.clone(),
        styles: &[],
    }
}

fn head(summary: &TuneSummary) -> Head {
    let primary = Primary::of(&summary.goal);
    let title = match primary.of_gain(&summary.gain) {
        Some(e) => format!("{} the {}", words::times(e.ratio), primary.called().phrase),
        None => "A run without final figures".to_owned(),
    };
    let strong = |what: &str, said: &String| Text::default().with(Look::Strong, what).and(safe(said));
    let void = summary.void.iter().map(|void| strong("✗ Void: ", void));
    let gains = gains(&summary.gain, &primary.order()[..2]);
    let lead = match gains.is_empty() {
        true => "The run ended before its final check.".to_owned(),
        false => format!("Final setting over start, fresh interleaved trials: {gains}."),
    };
    let said = if gains.is_empty() { "no final figures".to_owned() } else { gains };
    let facts = [
        summary.topology.clone(),
        format!("for {}", summary.goal),
        format!("from {}", summary.baseline),
        format!("{} steps measured, {}", words::measured(summary).len(), words::kept(summary)),
        words::duration(summary.took_ns),
        summary.started.clone(),
    ];
    Head {
        kind: "tuning report",
        warnings: void.chain(summary.doubts.iter().map(|doubt| strong("In doubt: ", doubt))).collect(),
        title: title.into(),
        lead: lead.into(),
        line: Some(format!("{said}, {}", words::restored(summary)).into()),
        facts: facts.map(|fact| safe(&fact).into()).into(),
        blocks: restored(summary).into_iter().chain(figures(summary)).collect(),
    }
}

/// "12.3× the rate [11.7, 12.9], 11.9× the bytes per CPU-second [11.5, 12.3]".
fn gains(gain: &Gain, of: &[Primary]) -> String {
    let said = of.iter().filter_map(|p| Some((p, p.of_gain(gain)?)));
    let said = said
        .map(|(p, e)| format!("{} the {} {}", words::times(e.ratio), p.called().phrase, words::interval(&e)));
    said.collect::<Vec<_>>().join(", ")
}

/// Whether everything was put back; what went wrong is shown at once.
fn restored(summary: &TuneSummary) -> Vec<Block> {
    let items: Vec<Text> = summary.restored_notes.iter().map(|note| safe(note).into()).collect();
    let count = items.len();
    let list = List { items, tone: (!summary.restored).then_some(Tone::Bad), ..List::default() };
    if !summary.restored {
        let text = "✗ Not everything was put back: run “landspeed undo” on the hosts.";
        return vec![Block::Paragraph(Manner::Bad, text.into()), list.into()];
    }
    let text = "✓ Everything put back: every value reads back as it was before the run.";
    let group = Group {
        title: format!("{count} lines on what was done").into(),
        open: false,
        blocks: vec![list.into()],
    };
    let all =
        [Block::Paragraph(Manner::Good, text.into())].into_iter().chain((count > 0).then(|| group.into()));
    vec![Block::Only(Seen::OnPage, all.collect())]
}

fn figures(summary: &TuneSummary) -> Vec<Block> {
    let primary = Primary::of(&summary.goal);
    let mut blocks = vec![
        Block::Cards("Figures at start and end", primary.order().map(|figure| card(figure, summary)).into()),
        Block::Only(Seen::OnTerminal, vec![table(summary).into()]),
    ];
    blocks.extend(loaded(summary).map(|(start, last)| {
        let told = Text::from(format!("Round trip while the stream runs: {start} at the start, "));
        Block::Only(
            Seen::OnPage,
            vec![Block::text(told.with(Look::Strong, last.to_string()).and(" at the end."))],
        )
    }));
    blocks.extend(summary.against.as_ref().map(|gain| {
        let told = Text::from("Final over the setting given with ").with(Look::Code, "--against");
        Block::text(told.and(format!(", in the same run: {}.", gains(gain, &primary.order()))))
    }));
    blocks.extend(summary.confirmation.as_ref().map(|found| {
        let (manner, mark) = if found.holds { (Manner::Good, "✓") } else { (Manner::Bad, "✗") };
        Block::Paragraph(manner, format!("{mark} {}.", words::confirmation(found, primary)).into())
    }));
    blocks
}

fn table(summary: &TuneSummary) -> Table {
    let columns = vec![
        Column::words(""),
        Column::number("start"),
        Column::number("final"),
        Column::of(ColumnKind::Estimate, "final over start"),
    ];
    let row = |p: Primary| {
        let ratio = Cell::from(p.of_gain(&summary.gain));
        [p.called().phrase.into(), shown(p, &summary.start), shown(p, &summary.final_), ratio]
    };
    // Medians, which have no interval of their own.
    let loaded = loaded(summary).map(|(start, last)| {
        let ratio = words::times(last.0 as f64 / start.0 as f64);
        [Cell::from("round trip under load"), start.into(), last.into(), ratio.into()]
    });
    Table::new("Figures", "", columns).rows(Primary::of(&summary.goal).order().map(row)).rows(loaded)
}

/// The round trip under load at the start and at the end, where both were sampled.
fn loaded(summary: &TuneSummary) -> Option<(Nanos, Nanos)> {
    let known = |figures: &Figures| figures.loaded_latency_ns.filter(|ns| ns.0 > 0);
    Some((known(&summary.start)?, known(&summary.final_)?))
}

/// A figure with its unit; zero means that it was not measured.
fn shown(primary: Primary, figures: &Figures) -> Cell {
    let cell = match primary {
        Primary::Rate => figures.rate_bps.into(),
        Primary::Cost => figures.bytes_per_cpu_s.into(),
        Primary::Latency => Cell::from(figures.latency_ns),
    };
    Cell::from(known(primary, figures).map(|_| cell))
}

fn known(figure: Primary, of: &Figures) -> Option<f64> {
    Some(figure.of_figures(of)).filter(|v| v.is_finite() && *v > 0.0)
}

/// Start and final in one unit, so that they compare at a glance.
fn card(figure: Primary, summary: &TuneSummary) -> Card {
    let (start, last) = (known(figure, &summary.start), known(figure, &summary.final_));
    let (per, unit) = chart::unit_of(figure, start.into_iter().chain(last).fold(0.0, f64::max));
    let said = |v: Option<f64>| v.map_or_else(|| "–".to_owned(), |v| words::number(v / per));
    let to = format!("{} {}", said(last), unit.replace(" per ", "/"));
    let under = Text::default().with(Look::Quiet, said(start)).and(" → ").with(Look::Strong, to);
    Card { name: figure.called().card, figure: ratio(figure.of_gain(&summary.gain)), under }
}

fn ratio(e: Option<Estimate>) -> Text {
    match e {
        Some(e) => Text::default()
            .with(Look::Strong, words::times(e.ratio))
            .and(" ")
            .with(Look::Quiet, words::interval(&e)),
        None => Text::default().with(Look::Quiet, "not measured"),
    }
}

fn ladder(summary: &TuneSummary, record: &Record) -> Section {
    let placebos: Vec<String> = words::measured(summary)
        .iter()
        .filter(|(step, _)| step.placebo)
        .map(|(_, e)| words::estimate(e))
        .collect();
    let floor = (!placebos.is_empty()).then(|| {
        let said =
            "Noise floor of this run: placebos, which toggle between two equivalent values, came out at";
        Block::aside(format!("{said} {}.", placebos.join(" and ")))
    });
    let chart = chart::ladder(summary)
        .map_or_else(|| Block::absent("No step was measured."), |drawn| Chart(drawn).into());
    let trials = match chart::strip(summary, record) {
        Some(drawn) => vec![Block::heading("Every trial behind it"), Chart(drawn).into()],
        None => vec![Block::absent(
            "The record holds no trials of these steps, so they are not drawn one by one.",
        )],
    };
    Section::new("ladder", "The ladder")
        .minor()
        .with(chart)
        .all(floor)
        .with(Block::Only(Seen::OnPage, trials))
}

/// What was measured at each step, without the pairing that the ladder's ratios have.
fn levels(summary: &TuneSummary, record: &Record) -> Section {
    let section = Section::new("levels", "What it carried, and at what cost");
    let charts: Vec<Block> = [Primary::Rate, Primary::Cost]
        .into_iter()
        .filter_map(|figure| Some(Chart(chart::level(figure, summary, record)?).into()))
        .collect();
    if charts.is_empty() {
        return section;
    }
    let about = Block::text(
        "The line is the incumbent's median at each step, from that step's own trials; a mark is the candidate's. Where a \
         candidate is kept, the line comes to it. Level stretches that wander show the machine's drift, which is why decisions \
         use paired ratios and never these levels.",
    );
    section.all(Block::only(Seen::OnPage, [about].into_iter().chain(charts)))
}

fn curves(record: &Record) -> Section {
    let charts = [
        ("Rate against write size", chart::sweep(record)),
        ("Latency", chart::latency_distribution(record)),
        ("Latency by message size", chart::latency_by_size(record)),
    ];
    let mut blocks: Vec<Block> = charts
        .into_iter()
        .filter_map(|(name, drawn)| Some([Block::heading(name), Chart(drawn?).into()]))
        .flatten()
        .collect();
    if blocks.is_empty() {
        blocks.push(Block::absent(
            "The record holds no sweep and no ping-pong of the start and final settings.",
        ));
    }
    Section::new("curves", "Start and final across sizes").with(Block::Only(Seen::OnPage, blocks))
}

fn reproduce(summary: &TuneSummary, record: &Record) -> Section {
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
    Section::new("reproduce", "How to reproduce")
        .minor()
        .with(Block::Commands(commands.map(|(what, command)| (what.into(), command)).into()))
        .all(Block::only(Seen::InFull, [Block::Pairs("", pairs)]))
}
