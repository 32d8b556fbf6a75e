//! The report of `landspeed compare`, and a progress line for each run of a study.
//!
//! The report begins with the validity of the study and its conclusions in words. Then follow the real differences, the
//! two tables of the paper that the study repeats (Cottrell et al. 2005) with the paper's values where they are
//! comparable, further questions, and the paper's findings. A record may come from a stranger, so values that no
//! measurement could give are left out.

mod chart;
mod matrix;
mod parallel;
mod progress;
mod runs;
mod tables;
mod words;

use landspeed_record::units::BitRate;
use landspeed_record::{CompareReport, ContestFigures, PaperFinding, Record};

use crate::block::{
    ABSENT, Article, Card, Chart, CollapsibleGroup, Document, DocumentHead, List, ParagraphStyle,
    ReportBlock, ReportSection, ReportTable, StyledText, TextStyle, Visibility,
};
use crate::conditions::{self, NamedHost};
use crate::output::Tone;
use crate::{gauges, glossary, safe};
pub use progress::{about, compare_progress};

/// Styles of this page alone, in addition to those of every page.
const STYLE: &str = include_str!("compare.css");
/// Largest number of invalid runs that are listed.
const LISTED: usize = 200;
/// Largest number of invalid runs whose list is unfolded when a page opens.
const OPEN: usize = 6;

/// Returns the report of a study as a document. `record` is the record behind the report; its runs are drawn over
/// time.
pub fn compare(report: &CompareReport, record: &Record) -> Document {
    let sections = [
        rankings(report),
        paper_tables(report),
        ReportSection::new("trade-offs", "The trade-offs").all(parallel::chart(report).map(Chart)),
        courses(report, record),
        meetings(report),
        ReportSection::new("round-trips", "Two round trips on one path")
            .all(tables::round_trips(report).non_empty()),
        ReportSection::new("short-flows", "Short flows beside a long one")
            .all(tables::short_flows(report).non_empty()),
        ReportSection::new("streams", "What a bit costs by the number of streams")
            .all(tables::streams(report).non_empty()),
        findings(report),
        runs(report, record),
        conditions::section(&hosts(report)),
        reproduce(report, record),
        glossary::of("compare"),
    ];
    Document {
        head: head(report, record),
        sections: sections.into_iter().filter_map(ReportSection::non_empty).collect(),
        version: report.landspeed.clone(),
        styles: &[STYLE],
        gauges: gauges::of_study(report),
    }
}

/// Returns the hosts with their names; empty in the simulator.
fn hosts(report: &CompareReport) -> Vec<NamedHost<'_>> {
    ["A", "B"].into_iter().zip(&report.hosts).collect()
}

fn head(report: &CompareReport, record: &Record) -> DocumentHead {
    let void = |why: &String| {
        StyledText::default().with(TextStyle::Strong, "✗ This study does not count: ").and(safe(why))
    };
    let facts = words::setting(report).into_iter().chain([report.started.clone()]);
    DocumentHead {
        kind: "comparison",
        warnings: report.void.iter().map(void).collect(),
        title: words::headline(report).into(),
        lead: words::conclusions(report).join(" ").into(),
        facts: facts.map(StyledText::from).collect(),
        remarks: conditions::lines(&hosts(report), &record.controls()),
        blocks: cards(report),
        ..DocumentHead::default()
    }
}

fn cards(report: &CompareReport) -> Vec<ReportBlock> {
    let counted: Vec<&ContestFigures> = report.protocols.iter().filter(|p| p.runs > 0).collect();
    if counted.len() < 2 {
        return Vec::new();
    }
    let cards = vec![
        card("Highest throughput", &counted, |p| Some(-p.mean_bps.0), |rate| BitRate(-rate).to_string()),
        card("Smallest S (steadiest)", &counted, |p| p.stability, words::hundredths),
        card("Least deviation of the RTT", &counted, |p| p.rtt_sd_s, |s| format!("{} ms", words::ms(s))),
    ];
    let under = ReportBlock::aside("By the figure alone; which differences are real is below.");
    vec![ReportBlock::Cards("Best figures", cards), ReportBlock::Only(Visibility::OnPage, vec![under])]
}

/// Returns the card of the protocol with the least value of a figure.
fn card(
    name: &'static str,
    protocols: &[&ContestFigures],
    of: fn(&ContestFigures) -> Option<f64>,
    say: impl Fn(f64) -> String,
) -> Card {
    let figures = protocols.iter().filter_map(|p| Some((p, words::sane(of(p))?)));
    let best = figures.min_by(|a, b| a.1.total_cmp(&b.1));
    let who = best.map_or_else(|| ABSENT.to_owned(), |(p, _)| safe(&p.title));
    let figure = best.map(|(_, value)| say(value)).unwrap_or_default();
    Card {
        name,
        figure: StyledText::default().with(TextStyle::Strong, who),
        under: StyledText::default().with(TextStyle::Quiet, figure),
    }
}

/// Returns the section with the ranking by each figure, which shows the differences that are proven.
fn rankings(report: &CompareReport) -> ReportSection {
    let section = ReportSection::new("rankings", "Who is better");
    if report.rankings.is_empty() {
        return section;
    }
    let order = |ranking: &landspeed_record::Ranking| {
        let groups = words::groups(&report.study, ranking);
        let text =
            groups.iter().fold(StyledText::default(), |text, group| text.with(TextStyle::Group, group));
        (safe(&ranking.by).into(), text)
    };
    section
        .with(ReportBlock::text(
            "Best first. Those of one group could not be told apart; between two groups at least one difference is real.",
        ))
        .with(ReportBlock::Pairs("orders", report.rankings.iter().map(order).collect()))
        .all(ReportBlock::asides(words::ranking_notes(report)))
        .all(ReportBlock::only(Visibility::InFull, [ReportBlock::aside(RANKED)]))
}

const RANKED: &str = "Statistics: Student's test of the differences repeat by repeat, Holm's correction over all pairs of a row, 5 %.";

/// Returns Tables 1 and 2 as the paper prints them, and the table of intervals over repeats.
fn paper_tables(report: &CompareReport) -> ReportSection {
    let section = ReportSection::new("tables", "The paper's two tables");
    if report.protocols.is_empty() {
        return section;
    }
    let intervals = (report.study.independent_repeats() > 1).then(|| tables::intervals(report));
    let headed = |heading: &str, table: ReportTable| [ReportBlock::heading(heading), table.into()];
    let of_paper = |heading: &str, claims: &str| match report.paper.is_empty() {
        true => heading.to_owned(),
        false => format!("{heading} (landspeed papers {claims})"),
    };
    let overall = of_paper("Table 1: all regions, throughput in Mb/s", "cottrell.t1");
    let by_region = of_paper("Table 2: stability (S) and fairness (F) by region", "cottrell.t2");
    section
        .all(headed(&overall, tables::overall(report)))
        .all(headed(&by_region, tables::by_region(report)))
        .all(
            intervals
                .into_iter()
                .flat_map(|table| headed("Over repeats: mean ± half of its 95 % range", table)),
        )
}

fn courses(report: &CompareReport, record: &Record) -> ReportSection {
    let section = ReportSection::new("courses", "Over time");
    let courses = runs::courses(report, record);
    if courses.is_empty() {
        return section;
    }
    let queue = if courses.iter().any(|course| !course.queue.is_empty()) { " and the queue" } else { "" };
    let about = format!(
        "Of each protocol the repeat with the middle mean: goodput of its flows on top of each other (means over five samples \
         and at least a second), beneath it the probe's round trip{queue}, on one axis of time; upright lines are where a flow \
         enters or leaves. All drawings share their scales."
    );
    section.all(ReportBlock::only(
        Visibility::OnPage,
        [ReportBlock::text(about), Chart(chart::courses(report, &courses)).into()],
    ))
}

fn meetings(report: &CompareReport) -> ReportSection {
    let about = "The goodput of a flow of the row's protocol over that of the column's while all flows run; in brackets where the \
                 repeats do not bear out a difference.";
    let fill = ReportBlock::text(
        "A filled cell is a difference that they bear out; blue is the row's, amber the column's.",
    );
    let section = ReportSection::new("meetings", "Two protocols on one path");
    match matrix::matrix(report).non_empty() {
        Some(matrix) => section
            .with(ReportBlock::text(about))
            .with(ReportBlock::Only(Visibility::OnPage, vec![fill]))
            .with(matrix),
        None => section,
    }
}

fn findings(report: &CompareReport) -> ReportSection {
    let section = ReportSection::new("findings", "What the paper found");
    let (decided, undecided): (Vec<_>, Vec<_>) = report.findings.iter().partition(|f| f.reproduces.is_some());
    if report.findings.is_empty() {
        return section;
    }
    let shown = decided.iter().filter(|finding| finding.reproduces == Some(true)).count();
    let about = format!(
        "Of the paper's {} findings {shown} hold here, {} do not, and {} need another study.",
        report.findings.len(),
        decided.len() - shown,
        undecided.len()
    );
    let title = format!("{} that need another study, and why", undecided.len());
    let rest = CollapsibleGroup {
        title: title.into(),
        open: false,
        blocks: undecided.into_iter().map(finding).collect(),
    };
    section
        .with(ReportBlock::text(about))
        .all(ReportBlock::only(Visibility::InFull, [ReportBlock::aside(HOLDS)]))
        .all(decided.into_iter().map(finding))
        .all((!rest.blocks.is_empty()).then_some(rest))
}

const HOLDS: &str =
    "Statistics: a finding holds where its margin over all repeats lies above zero (95 % interval).";

fn finding(finding: &PaperFinding) -> ReportBlock {
    let (sign, word) = words::shows(finding.reproduces);
    let (class, tone) = match finding.reproduces {
        Some(true) => ("found shows", Tone::Good),
        Some(false) => ("found shows-not", Tone::Bad),
        None => ("found untold", Tone::Dim),
    };
    let perhaps = finding.reason.as_ref().map(|reason| format!(" Perhaps (untested): {}.", safe(reason)));
    let perhaps = perhaps.unwrap_or_default();
    let place = crate::words::with_claims(&finding.place, &finding.claims);
    let lead = StyledText::from(format!("{}.{perhaps} ", safe(&finding.evidence)))
        .with(TextStyle::Quiet, safe(&place));
    let title =
        StyledText::default().with(TextStyle::Toned, format!("{sign} {word}: ")).and(safe(&finding.claim));
    Article { class, title, lead, tone: Some(tone), ..Article::default() }.into()
}

/// Returns the section with the invalid runs, the lateness of the link, and further notes.
fn runs(report: &CompareReport, record: &Record) -> ReportSection {
    let invalid = runs::invalid(record);
    let made = format!("{} of {} runs were made", report.runs, report.runs_planned);
    let counted = match report.invalid_runs {
        0 => ReportBlock::text(format!("{made}, and all of them count.")),
        n => {
            let text = format!("{made}, {n} of them do not count and are in no figure.");
            ReportBlock::Paragraph(ParagraphStyle::Bad, text.into())
        }
    };
    let late = runs::lateness(record).map(|(links, p99, worst)| {
        ReportBlock::text(format!(
            "The link, landspeed's own, was set to be the path above. In the {links} runs over it that count, 99 % of the frames \
             of a direction were at most {p99} late, and the worst {worst}."
        ))
    });
    let item = |(which, why): &(String, Vec<String>)| {
        StyledText::default().with(TextStyle::Strong, which).and(format!(": {}", why.join("; ")))
    };
    let items: Vec<StyledText> = invalid.iter().take(LISTED).map(item).collect();
    let title = format!("{} runs that do not count, and why", invalid.len());
    let open = invalid.len() <= OPEN;
    let group = (!items.is_empty()).then(|| CollapsibleGroup {
        title: title.into(),
        open,
        blocks: vec![List { items, ..List::default() }.into()],
    });
    ReportSection::new("runs", "The runs")
        .with(counted)
        .all(ReportBlock::only(Visibility::InFull, late))
        .all(ReportBlock::only(Visibility::InFull, runs::controls(record).map(ReportBlock::text)))
        .all(group)
        .all(ReportBlock::asides(report.notes.iter().map(|note| safe(note))))
}

fn reproduce(report: &CompareReport, record: &Record) -> ReportSection {
    let mut commands = vec![(StyledText::from("Run it again"), report.command.clone())];
    let path = report.record.as_ref().map(|path| crate::words::quoted(path));
    commands.extend(path.map(|path| ("Show this record".into(), format!("landspeed show {path}"))));
    let mut pairs = vec![
        ("Seed of orders and entry times", report.study.seed.to_string()),
        ("Time between samples", report.study.sample_ns.to_string()),
    ];
    pairs.extend(report.took_ns.map(|took| ("Took", crate::words::duration(took))));
    pairs.push(("landspeed", report.landspeed.clone()));
    pairs.push(("Format of record and document", format!("{}, {}", record.header.format, report.format)));
    let pairs = pairs.into_iter().map(|(what, value)| (what.into(), value.into())).collect();
    ReportSection::new("reproduce", "How to reproduce")
        .minor()
        .all(ReportBlock::only(Visibility::InFull, [ReportBlock::Commands(commands)]))
        .all(ReportBlock::only(Visibility::InFull, [ReportBlock::Pairs("", pairs)]))
        .with(ReportBlock::Commands(vec![("next:".into(), next(report))]))
}

/// Returns the command to run next, which makes the missing runs, repeats the study, or writes its page.
fn next(report: &CompareReport) -> String {
    let record = report.record.as_ref().map(|path| crate::words::quoted(path));
    let invalid = report.invalid_runs > 0;
    match (&report.void, record) {
        (Some(_), _) if invalid => {
            format!("{}   # on a quieter machine, or over a slower path", report.command)
        }
        (Some(_), Some(record)) => format!("landspeed compare --resume {record}   # make the missing runs"),
        (Some(_), None) | (None, None) => report.command.clone(),
        (None, Some(record)) => {
            format!("landspeed show {record} --html report.html   # the courses of all runs")
        }
    }
}
