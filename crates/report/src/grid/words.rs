//! The words of a grid's report.

use landspeed_record::units::{BitRate, Bytes, BytesPerCpuSecond, Nanos, parse_duration};
use landspeed_record::{
    ExpectationAgreement, ExpectationKind, ExpectationReport, FactorEffect, FigureUnit, GridCell, GridCurves,
    GridFactor, GridReport, LevelKind, ProgramMetric, SocketUsage,
};

use crate::block::{Quantity, TableCell};
use crate::output::Tone;
use crate::safe;
use crate::words::{estimate, has_ends, number};

/// Returns the id of a figure's section on a page, which also names the figure's column of raw trials.
pub(super) fn id(curves: &GridCurves) -> String {
    let name = curves.figure.name;
    let beside = curves.program.as_ref().filter(|_| curves.is_beside);
    beside.map_or_else(|| name.to_owned(), |program| format!("{name}-{}", safe(&program.figure)))
}

/// Returns a program's use of its path: "17 connections, 40,152 messages and 330 MB in 0.23 s, at what each path
/// costs".
pub(super) fn used(used: &SocketUsage) -> String {
    let counted = |count: u64, of: &str| {
        format!("{} {of}{}", crate::words::grouped(count), if count == 1 { "" } else { "s" })
    };
    let (connections, messages) =
        (counted(used.connections, "connection"), counted(used.messages, "message"));
    let megabytes = number(used.bytes.0 as f64 / 1e6);
    format!("{connections}, {messages} and {megabytes} MB in {}, at what each path costs", used.took_ns)
}

/// Returns the heading over a figure.
pub(super) fn heading(curves: &GridCurves) -> String {
    let title = curves.figure.title;
    let beside = curves.program.as_ref().filter(|_| curves.is_beside);
    beside.map_or_else(|| title.to_owned(), |program| format!("{title}: {}", safe(&program.figure)))
}

/// Returns the name of a figure; for a program's figure, the name from the program's file.
pub(super) fn called(curves: &GridCurves) -> String {
    match (&curves.program, curves.figure.unit) {
        (Some(program), FigureUnit::ProgramPerCpuSecond) if program.less_is_better => {
            "runs per CPU-second".to_owned()
        }
        (Some(program), FigureUnit::ProgramPerCpuSecond) => {
            format!("{} per CPU-second", safe(&program.figure))
        }
        (Some(program), _) => safe(&program.figure),
        (None, _) => curves.figure.title.to_lowercase(),
    }
}

/// Returns the program if the curves show the program's own figure in its own unit.
pub(super) fn own(curves: &GridCurves) -> Option<&ProgramMetric> {
    curves.program.as_ref().filter(|_| curves.figure.unit == FigureUnit::Program)
}

/// Returns the table cell of a value, with the program's unit if the figure is a program's.
pub(super) fn shown_of(curves: &GridCurves, value: f64) -> TableCell {
    match own(curves) {
        Some(program) => TableCell::in_unit(value, &program.unit),
        None => shown(curves.figure.unit, value),
    }
}

/// Returns true if more of the figure is better.
fn more_is_better(curves: &GridCurves) -> bool {
    !own(curves).map_or(curves.figure.less_is_better, |program| program.less_is_better)
}

/// Returns the table cell of a value.
fn shown(unit: FigureUnit, value: f64) -> TableCell {
    match unit {
        FigureUnit::BitRate => BitRate(value).into(),
        FigureUnit::BytesPerCpuSecond => BytesPerCpuSecond(value).into(),
        FigureUnit::Time => Nanos(value as u64).into(),
        FigureUnit::DatagramRate => {
            let shown = crate::words::grouped(value as u64);
            Quantity { value, unit: "datagrams/s".into(), shown }.into()
        }
        FigureUnit::Share => {
            Quantity { value, unit: "".into(), shown: format!("{:.3} %", value * 100.0) }.into()
        }
        FigureUnit::Program | FigureUnit::ProgramPerCpuSecond => {
            Quantity { value, unit: "".into(), shown: crate::words::amount(value) }.into()
        }
        FigureUnit::Cores => Quantity { value, unit: "cores".into(), shown: number(value) }.into(),
        FigureUnit::CoresPerGbps => {
            Quantity { value, unit: "cores/(Gb/s)".into(), shown: number(value) }.into()
        }
    }
}

/// Returns a value of a factor as people write it. If the flows had another value than this requested one, the value
/// that they had follows in brackets.
pub(super) fn level(factor: &GridFactor, value: &str) -> String {
    let turned_out = factor.turned_out.get(value).map(|got| format!(" ({})", safe(got))).unwrap_or_default();
    written(factor, value) + &turned_out
}

fn written(factor: &GridFactor, value: &str) -> String {
    let amount = || value.parse::<f64>().ok();
    let written = match factor.kind {
        LevelKind::Bytes => value.parse().ok().map(|bytes| short(Bytes(bytes))),
        LevelKind::Rate => amount().map(|bps| BitRate(bps).to_string()),
        LevelKind::Time => parse_duration(value).ok().map(|time| time.to_string()),
        LevelKind::Number | LevelKind::Words => None,
    };
    safe(&written.unwrap_or_else(|| value.to_owned()))
}

/// Formats a size as an option accepts it: "64K".
pub(super) fn short(bytes: Bytes) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let whole = units.into_iter().find(|(unit, _)| bytes.0 >= *unit && bytes.0.is_multiple_of(*unit));
    whole.map_or_else(|| bytes.0.to_string(), |(unit, name)| format!("{}{name}", bytes.0 / unit))
}

pub(super) fn cells(report: &GridReport) -> usize {
    report.figures.first().map_or(0, |curves| curves.cells.len())
}

/// Returns the names of the factors: "mtu, write-size and tso".
pub(super) fn varied(report: &GridReport) -> String {
    let names: Vec<String> = report.factors.iter().map(|factor| safe(&factor.name)).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the name of a cell: "mtu=9000 write-size=64K".
pub(super) fn cell(report: &GridReport, cell: &GridCell) -> String {
    let values = report.factors.iter().zip(&cell.values);
    let values = values.map(|(factor, value)| format!("{}={}", safe(&factor.name), level(factor, value)));
    values.collect::<Vec<_>>().join(" ")
}

/// Returns the word for an expectation's result, its colour on a terminal and its class on a page.
pub(super) fn agreement(agreement: ExpectationAgreement) -> (&'static str, Tone, &'static str) {
    match agreement {
        ExpectationAgreement::Reproduces => ("✓ reproduces", Tone::Good, "kept"),
        ExpectationAgreement::Differs => ("✗ differs", Tone::Bad, "harms"),
        ExpectationAgreement::Undecided => ("? undecided", Tone::Open, "undecided"),
        ExpectationAgreement::NotHere => ("not on this hardware", Tone::Dim, "no-effect"),
    }
}

/// Adds the kind of hosts to the word for an expectation's result, if the kind limits all figures: "reproduces, in
/// virtual machines without KVM".
pub(super) fn marked(report: &GridReport, word: &str) -> String {
    report.caveat_mark().map_or_else(|| word.to_owned(), |hosts| format!("{word}, in {}", safe(hosts)))
}

/// Formats the kind of an expectation: "a number", "a direction", or "in kind: X in place of Y".
pub(super) fn expectation(of: &ExpectationReport) -> String {
    match of.kind {
        ExpectationKind::Number => "a number".to_owned(),
        ExpectationKind::Direction => "a direction".to_owned(),
        ExpectationKind::InKind => format!("in kind: {}", safe(&of.in_kind)),
    }
}

/// Formats how many expectations of each kind reproduce: "numbers 1 of 2, directions 3 of 3"; empty if all are of one
/// kind.
fn by_kind(report: &GridReport) -> String {
    let kinds = [
        (ExpectationKind::Number, "numbers"),
        (ExpectationKind::Direction, "directions"),
        (ExpectationKind::InKind, "in kind"),
    ];
    let of = |kind| report.expected.iter().filter(move |one| one.kind == kind);
    let kinds: Vec<String> = (kinds.into_iter().filter(|(kind, _)| of(*kind).next().is_some()))
        .map(|(kind, name)| {
            let good = of(kind).filter(|one| one.agreement == ExpectationAgreement::Reproduces).count();
            format!("{name} {good} of {}", of(kind).count())
        })
        .collect();
    if kinds.len() > 1 { format!(" ({})", kinds.join(", ")) } else { String::new() }
}

/// Counts the results of the expectations: "3 of 4 reproduce, 1 undecided"; `None` if there were none.
fn agreements(report: &GridReport) -> Option<String> {
    let count = |agreement| report.expected.iter().filter(|one| one.agreement == agreement).count();
    let others = [
        (ExpectationAgreement::Differs, "differ"),
        (ExpectationAgreement::Undecided, "undecided"),
        (ExpectationAgreement::NotHere, "not on this hardware"),
    ];
    let others = others.into_iter().filter(|(agreement, _)| count(*agreement) > 0);
    let others: String = others.map(|(agreement, word)| format!(", {} {word}", count(agreement))).collect();
    let all = report.expected.len();
    let reproduce = count(ExpectationAgreement::Reproduces);
    (all > 0).then(|| format!("{reproduce} of {all} reproduce{others}{}", by_kind(report)))
}

/// Returns the result of the experiment, or the best cell of a grid if any cell is proven to differ from the
/// reference.
pub(super) fn headline(report: &GridReport) -> String {
    if let Some(found) = agreements(report) {
        return format!("{}: {}", safe(&report.title), marked(report, &found));
    }
    let Some(curves) = report.figures.first() else {
        return "no trial gave a figure".to_owned();
    };
    let Some(reference) = curves.cells.first() else { return "nothing was measured".to_owned() };
    if let Some(why) = &curves.no_intervals {
        return format!("not enough for an answer: {}", safe(why));
    }
    match best(curves) {
        Some(best) if !std::ptr::eq(best, reference) => {
            let value = best.mean.map(|mean| shown_of(curves, mean).shown(false)).unwrap_or_default();
            let ratio = best.ratio.map(|ratio| estimate(&ratio)).unwrap_or_default();
            format!("best: {}: {value}, {ratio} the first", cell(report, best))
        }
        _ if curves.cells.len() < 2 => cell(report, reference),
        Some(_) => format!("best: {}, where it began", cell(report, reference)),
        None => "no cell is proven better than the first".to_owned(),
    }
}

/// Returns the best of the cells that are proven better than the reference, or the reference if all others are proven
/// worse.
fn best(curves: &GridCurves) -> Option<&GridCell> {
    let more = more_is_better(curves);
    let gain = |cell: &GridCell| cell.ratio.map(|ratio| if more { ratio.ratio } else { 1.0 / ratio.ratio });
    let proven = |cell: &&GridCell| {
        cell.ratio.filter(has_ends).is_some_and(|ratio| if more { ratio.low > 1.0 } else { ratio.high < 1.0 })
    };
    let worse = |cell: &GridCell| {
        cell.ratio.filter(has_ends).is_some_and(|ratio| if more { ratio.high < 1.0 } else { ratio.low > 1.0 })
    };
    let best = curves
        .cells
        .iter()
        .filter(proven)
        .max_by(|a, b| gain(a).unwrap_or(0.0).total_cmp(&gain(b).unwrap_or(0.0)));
    let all_worse = || curves.cells.iter().skip(1).all(worse).then(|| curves.cells.first()).flatten();
    best.or_else(all_worse)
}

/// Returns a factor's effect: "mtu changes it", "tso changes it by less than 4 %, if at all".
pub(super) fn effect(effect: &FactorEffect) -> String {
    let name = safe(&effect.factor);
    match (effect.has_effect, effect.at_most) {
        (true, Some(share)) if share < 1.0 => format!("{name} changes it, by {} at most", percent(share)),
        (true, Some(share)) => format!("{name} changes it, {}× at most", number(1.0 + share)),
        (true, None) => format!("{name} changes it"),
        (false, Some(share)) if share < 1.0 => {
            format!("{name} changes it by less than {}, if at all", percent(share))
        }
        (false, Some(share)) if share < 9.0 => {
            format!("{name} changes it less than {}×, if at all", number(1.0 + share))
        }
        (false, _) => format!("{name}: too few trials for an answer"),
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::HostFacts;

    use super::*;

    #[test]
    fn a_failed_control_is_in_the_headline_and_names_no_best_cell() {
        let cell = |mean: f64| GridCell { mean: Some(mean), ..GridCell::default() };
        let why = "the control failed, so nothing is judged: flow=cubic has a mean of 0.680 over 4 trials";
        let curves = GridCurves {
            cells: vec![cell(0.68), cell(0.9)],
            no_intervals: Some(why.to_owned()),
            ..GridCurves::default()
        };
        let report = GridReport { figures: vec![curves], ..GridReport::default() };
        assert_eq!(headline(&report), format!("not enough for an answer: {why}"));
    }

    #[test]
    fn answers_say_that_their_hosts_are_virtual_machines() {
        let one =
            ExpectationReport { agreement: ExpectationAgreement::Reproduces, ..ExpectationReport::default() };
        let of = |caveat: &str| GridReport {
            title: "Latency".into(),
            expected: vec![one.clone()],
            host_a: HostFacts { caveat: caveat.into(), ..HostFacts::default() },
            ..GridReport::default()
        };
        assert_eq!(headline(&of("")), "Latency: 1 of 1 reproduce");
        let guests = of("virtual machines without KVM: settings hold, speeds do not");
        assert_eq!(headline(&guests), "Latency: 1 of 1 reproduce, in virtual machines without KVM");
        assert_eq!(marked(&guests, "? undecided"), "? undecided, in virtual machines without KVM");
    }
}
