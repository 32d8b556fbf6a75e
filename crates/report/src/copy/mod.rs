//! The report of a copy.
//!
//! | module | content |
//! |---|---|
//! | `conditions` | the settings of both ends that decide the figures |
//! | `words` | what limited it, and the results of entries; the command's own output uses this too |
//! | `chart` | the copy over time |
//! | `choice` | the settings that it compared, and the one that it kept |
//! | `hosts` | the settings of its hosts that it changed, and their restoration |
//! | `progress` | the progress line |

mod chart;
mod choice;
mod conditions;
mod hosts;
mod progress;
mod words;

use landspeed_analysis::{copy_intervals, copy_plan, hold_remedy};
use landspeed_record::units::{Bytes, CpuNanos, Nanos};
use landspeed_record::{
    CopyDiskUse, CopyHolder, CopyHostTimes, CopyLoss, CopyNetworkTimes, CopyPlan, CopyReport,
    CopyStageReport, Line, Record,
};

pub use choice::choice_lines;
pub use conditions::condition_lines;
pub use hosts::{host_setting_lines, host_setting_words};
pub use progress::copy_progress_line;
pub use words::{encrypted_words, entry_name, held_lines, loss_words, resent_words};

use crate::block::{
    Document, DocumentHead, List, ParagraphStyle, ReportBlock, ReportSection, ReportTable, StyledText,
    TableCell, TableColumn,
};
use crate::{counted, gauges, glossary, safe};
use chart::percent;

/// Styles of this page alone, in addition to those of every page.
const STYLE: &str = include_str!("copy.css");
/// The number of names that a terminal in brief detail shows.
const SHOWN: usize = 20;

/// Returns the report of a copy as a document. The record has the plan and the progress over time.
pub fn copy(report: &CopyReport, record: &Record) -> Document {
    let sections = [
        result(report),
        held(report),
        choice::section(report),
        failures(report),
        losses(report),
        chart::section(&copy_intervals(record)),
        stages(report),
        network(report),
        processors(report),
        disks(report),
        settings(report, copy_plan(record)),
        conditions::section(&report.conditions),
        notes(report, record),
        glossary::of("copy"),
    ];
    Document {
        head: head(report, copy_plan(record)),
        sections: sections.into_iter().filter_map(ReportSection::non_empty).collect(),
        version: record.header.landspeed.clone(),
        styles: &[STYLE],
        gauges: gauges::of_copy(report),
    }
}

fn head(report: &CopyReport, plan: Option<&CopyPlan>) -> DocumentHead {
    let route = &report.route;
    let source = plan.map(sources).unwrap_or_default();
    let title = format!("{}:{source} -> {}:{}", safe(&route.from), safe(&route.to), safe(&route.target));
    let cut_off =
        report.cut_off.as_ref().map(|why| format!("The copy did not come to its end: {}", safe(why)));
    let relayed = "Neither host reaches the other: the data passed through the machine of the command.";
    let relayed = route.is_relayed.then(|| StyledText::from(relayed));
    let not_as_asked = report.not_as_asked.iter().map(|line| format!("not as asked: {}", safe(line)).into());
    let encrypted = encrypted_words(report).map(StyledText::from);
    let resent = resent_words(report).map(StyledText::from);
    let hosts = host_setting_lines(report).into_iter().map(StyledText::from);
    let conditions = conditions::lines(&report.conditions);
    let said = relayed.into_iter().chain(not_as_asked).chain(resent).chain(encrypted).chain(hosts);
    DocumentHead {
        kind: "copy",
        title: title.into(),
        lead: words::verdict_words(report).unwrap_or_default().into(),
        warnings: cut_off.into_iter().map(StyledText::from).collect(),
        remarks: said.chain(conditions).collect(),
        ..DocumentHead::default()
    }
}

/// Formats the first source, and the number of further sources.
fn sources(plan: &CopyPlan) -> String {
    let first = plan.sources_hex.first().map(entry_name).unwrap_or_default();
    match plan.sources {
        0 | 1 => first,
        all => format!("{first} and {} more", all - 1),
    }
}

fn result(report: &CopyReport) -> ReportSection {
    let outcome = &report.outcome;
    let mut rows: Vec<(&str, TableCell)> = vec![
        ("files copied", outcome.copied.into()),
        ("their content", outcome.copied_bytes.into()),
        ("sent", outcome.sent_bytes.into()),
        ("took", report.duration_ns.into()),
        ("rate", report.goodput_bps.into()),
        ("folders, links and FIFOs made", outcome.made.into()),
        ("entries found unchanged", outcome.unchanged.into()),
        ("entries that failed", outcome.failed.into()),
    ];
    rows.extend((outcome.deleted > 0).then(|| ("entries deleted", TableCell::from(outcome.deleted))));
    let rows = rows.into_iter().map(|(name, cell)| [TableCell::from(name), cell]);
    let table = ReportTable::figures("What it came to", &["", "figure"]).rows(rows);
    let said = [&outcome.unfinished, &outcome.not_deleted].into_iter().filter(|said| !said.is_empty());
    let bad = said.map(|said| ReportBlock::Paragraph(ParagraphStyle::Bad, safe(said).into()));
    ReportSection::new("result", "What it came to").minor().with(table).all(bad)
}

fn held(report: &CopyReport) -> ReportSection {
    let columns = vec![
        TableColumn::words("held by"),
        TableColumn::number("share of the time"),
        TableColumn::words("what helps"),
    ];
    let row = |holder: &CopyHolder| -> [TableCell; 3] {
        [words::holder(holder).into(), percent(holder.share), hold_remedy(holder.hold).into()]
    };
    let table = ReportTable::new("What held it", "stacked", columns).rows(report.held.by.iter().map(row));
    let gain = report.held.gain_at_most.filter(|_| !words::is_contradicted(report)).map(|gain| {
        ReportBlock::text(format!("Without the first of them, the copy is at most {gain:.1} times as fast."))
    });
    let test = words::test_words(report).map(ReportBlock::text);
    let disk = words::disk_words(report).map(ReportBlock::text);
    ReportSection::new("held", "What held it").all(table.non_empty()).all(gain).all(test).all(disk)
}

fn failures(report: &CopyReport) -> ReportSection {
    let outcome = &report.outcome;
    let line = |name: String, why: &str| StyledText::from(format!("{name}: {}", safe(why)));
    let items: Vec<StyledText> =
        outcome.failures.iter().map(|failure| line(entry_name(&failure.name_hex), &failure.why)).collect();
    let left = outcome.failed.saturating_sub(items.len() as u64);
    let list = (!items.is_empty()).then(|| List { items, most: Some(SHOWN), ..List::default() });
    let more =
        (left > 0).then(|| ReportBlock::aside(format!("and {left} more, of which the names are not kept")));
    let kinds = outcome.unlisted.iter().map(|kind| {
        ReportBlock::aside(format!("{} of these: {}", counted(kind.entries, "entry"), safe(&kind.why)))
    });
    ReportSection::new("failed", "NOT copied").all(list).all(more).all(kinds)
}

fn losses(report: &CopyReport) -> ReportSection {
    let columns = ["what the target did not take", "for example of", "why"].map(TableColumn::words).into();
    let row = |loss: &CopyLoss| [loss_words(loss), entry_name(&loss.name_hex), safe(&loss.why)];
    let table = ReportTable::new("NOT kept", "", columns).rows(report.outcome.lost.iter().map(row));
    ReportSection::new("lost", "NOT kept").all(table.non_empty())
}

fn stages(report: &CopyReport) -> ReportSection {
    let names = ["", "processor", "queued", "disk", "starved", "blocked", "limited", "idle"];
    let row = |end: &str, of: &CopyStageReport| {
        let times = &of.times;
        let spent =
            [times.processor_ns, times.queued_ns, times.device_ns, times.starved_ns, times.blocked_ns];
        let name = TableCell::from(words::stage_of_end(end, of.stage));
        let spent = spent.into_iter().chain([times.limited_ns, times.idle_ns]).map(TableCell::from);
        std::iter::once(name).chain(spent).collect::<Vec<_>>()
    };
    let source = report.stages.source.iter().map(|of| row("source", of));
    let target = report.stages.target.iter().map(|of| row("target", of));
    let table = ReportTable::figures("Stages", &names).rows(source).rows(target);
    let note = "Times of all threads of an end together.";
    let note = (!table.rows.is_empty()).then(|| ReportBlock::aside(note));
    let is_untested = !report.held.by.is_empty() && words::test_words(report).is_none();
    let untested = is_untested.then(|| {
        ReportBlock::aside("Not tested: whether the copy is slower where what held it is slowed by 10 %.")
    });
    ReportSection::new("stages", "What the stages did with their time")
        .all(table.non_empty())
        .all(note)
        .all(untested)
        .in_full()
}

fn network(report: &CopyReport) -> ReportSection {
    let flows = &report.stages.network;
    if *flows == CopyNetworkTimes::default() {
        return ReportSection::default();
    }
    let rows: [(&str, TableCell); 5] = [
        ("time with data under way", flows.busy_ns.into()),
        ("of it, limited by the target's window", flows.window_limited_ns.into()),
        ("of it, limited by the send buffer", flows.buffer_limited_ns.into()),
        ("segments sent", flows.sent.into()),
        ("segments sent again", flows.resent.into()),
    ];
    let rows = rows.into_iter().map(|(name, cell)| [TableCell::from(name), cell]);
    let table = ReportTable::figures("What TCP said", &["of all flows", "figure"]).rows(rows);
    ReportSection::new("network", "What TCP said").with(table).in_full()
}

/// Returns the section on the hosts' processors, and on the relay's.
fn processors(report: &CopyReport) -> ReportSection {
    let stages = &report.stages;
    let host = |name: &str, host: &CopyHostTimes| {
        let CopyHostTimes { observed_ns, quota_ns, used_ns, stolen_ns } = *host;
        (observed_ns > Nanos(0)).then(|| {
            let cells: [TableCell; 4] =
                [quota_ns.into(), used_ns.into(), stolen_ns.into(), observed_ns.into()];
            std::iter::once(TableCell::from(name)).chain(cells).collect::<Vec<_>>()
        })
    };
    let rows = [host("source", &stages.source_host), host("target", &stages.target_host)];
    let names = ["host", "stopped by a quota", "worked", "given to other guests", "observed for"];
    let table = ReportTable::figures("Processors of the hosts", &names).rows(rows.into_iter().flatten());
    let relay = (stages.relay.relayed_ns > Nanos(0)).then(|| {
        let used = CpuNanos(stages.relay.source_processor_ns.0) + CpuNanos(stages.relay.target_processor_ns.0);
        ReportBlock::text(format!(
            "The relay used {used} of a processor in {}, and waited for {} until the target's session took data.",
            stages.relay.relayed_ns, stages.relay.handing_ns
        ))
    });
    ReportSection::new("processors", "Processors of the hosts").all(table.non_empty()).all(relay).in_full()
}

/// Returns the section on the disks under both ends, from the disks' counters.
fn disks(report: &CopyReport) -> ReportSection {
    let row = |end: &str, disk: CopyDiskUse| -> [TableCell; 6] {
        let queue = disk.mean_queue_requests;
        [
            format!("{end}, {}", disk.device).into(),
            disk.read_bytes_per_s.into(),
            disk.written_bytes_per_s.into(),
            percent(disk.busy_share),
            TableCell::number(queue, format!("{queue:.1}")),
            disk.mean_request_ns.into(),
        ]
    };
    let source = report.source_disk.map(|disk| row("source", disk));
    let target = report.target_disk.map(|disk| row("target", disk));
    let names = ["disk of", "read", "written", "busy", "requests at a time", "time of each"];
    let table = ReportTable::figures("Disks of the hosts", &names).rows(source).rows(target);
    let note = "By the disks' own counters, which do not tell programs apart.";
    let note = (!table.rows.is_empty()).then(|| ReportBlock::aside(note));
    ReportSection::new("disks", "Disks of the hosts").all(table.non_empty()).all(note).in_full()
}

fn settings(report: &CopyReport, plan: Option<&CopyPlan>) -> ReportSection {
    let flow = report.flow.iter().map(|(name, value)| (name.clone(), value.clone()));
    let controls = &report.conditions.controls;
    let used = controls.iter().cloned().collect::<Vec<_>>().join(", ");
    let used = (!used.is_empty()).then(|| ("congestion control used".to_owned(), used));
    let flows = [("flows".to_owned(), report.flows.to_string())];
    let pairs = flow.chain(flows).chain(used).chain(plan.into_iter().flat_map(asked));
    let rows = pairs.map(|(name, value)| [safe(&name), safe(&value)]);
    let columns = ["setting", "value"].map(TableColumn::words).into();
    let table = ReportTable::new("Settings", "", columns).rows(rows);
    ReportSection::new("settings", "Settings").with(table).in_full()
}

/// Returns the user's options, besides the settings of the flows.
fn asked(plan: &CopyPlan) -> Vec<(String, String)> {
    let word = |is_so: bool| String::from(if is_so { "yes" } else { "no" });
    let kinds: Vec<String> = plan.keeps.iter().map(|kind| format!("{kind:?}").to_lowercase()).collect();
    let mut pairs = vec![
        ("put on stable storage".to_owned(), word(plan.is_synced)),
        ("keeps".to_owned(), kinds.join(", ")),
        ("copies devices".to_owned(), word(plan.keeps_devices)),
        ("compares by content".to_owned(), word(plan.by_content)),
        ("deletes what only the target has".to_owned(), word(plan.deletes)),
        ("copies only what a list names".to_owned(), word(plan.only_named)),
        ("patterns of what is left alone".to_owned(), plan.ignore_rules.to_string()),
    ];
    pairs.extend(plan.limit_bps.map(|limit| ("limit".to_owned(), limit.to_string())));
    pairs
}

/// Returns the section of the record's notes and of its unread lines. If the copy was cut off, the reason comes first.
fn notes(report: &CopyReport, record: &Record) -> ReportSection {
    let said =
        lines_of!(record, Line::Note { text } => text).filter(|text| report.cut_off.as_ref() != Some(*text));
    let said = said.map(|text| format!("note: {}", safe(text)));
    let unread = record.unread.iter().map(|why| safe(why));
    ReportSection::new("notes", "").all(ReportBlock::asides(said.chain(unread)))
}

/// Returns the result of a copy in a few words, for a list: "3 files, 1.2 GiB, 2.10 Gb/s, 2 NOT copied".
pub(crate) fn brief(copied: u64, bytes: Bytes, took: Nanos, failed: u64) -> String {
    let failed = if failed > 0 { format!(", {failed} NOT copied") } else { String::new() };
    format!("{}, {bytes}, {}{failed}", counted(copied, "file"), bytes.per(took))
}

#[cfg(test)]
mod tests;
