//! The pages of docs/reference/knobs, written from the table.

use std::fmt::Write;

use crate::table::{FAMILIES, Family};
use crate::{Disturbs, Knob, On, Row};

const HEAD: &str = "<!-- Written from the knob table by `make docs`. Edit the table instead. -->\n\n";

const INTRODUCTION: &str = "Every setting that landspeed can probe, turn, verify and put back. \
                            `landspeed knobs` shows what this host's are set to.";

/// Every page as (path within the project, Markdown), the index first. Pure: the same table gives the
/// same text.
pub fn pages() -> Vec<(String, String)> {
    let path = |name: &str| format!("docs/reference/knobs/{name}.md");
    let family = |family: &Family| (path(family.name), family_page(family));
    std::iter::once((path("README"), index())).chain(FAMILIES.iter().map(family)).collect()
}

fn index() -> String {
    let mut page = format!("{HEAD}# Knobs\n\n{INTRODUCTION}\n\n");
    for family in FAMILIES {
        let _ = writeln!(
            page,
            "## [{0}]({0}.md)\n\n{1}.\n\n| knob | does | scope |\n|---|---|---|",
            family.name,
            capital(family.about)
        );
        for knob in family.knobs() {
            let Row { name, about, scope, .. } = knob.row;
            let link = format!("[{name}]({}.md#{name})", family.name);
            let _ = writeln!(page, "| {link} | {} | {} |", cell(about), scope);
        }
        page.push('\n');
    }
    page
}

fn family_page(family: &Family) -> String {
    let mut page =
        format!("{HEAD}# Knobs: {}\n\n{}. [All knobs](README.md).\n", family.name, capital(family.about));
    for knob in family.knobs() {
        let _ = write!(page, "\n## {}\n\n{}.\n\n{}", knob.row.name, capital(knob.row.about), facts(knob));
    }
    page
}

fn facts(knob: &Knob) -> String {
    let row = knob.row;
    let mut lines = vec![
        ("Values", row.domain.to_string()),
        ("Scope", row.scope.to_string()),
        ("Turned on", on_word(row.on).to_owned()),
        (
            "One turn takes",
            if row.toggle.0 == 0 { "nothing".into() } else { format!("about {}", row.toggle) },
        ),
    ];
    if !row.needs.is_empty() {
        let needs: Vec<String> = row.needs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        lines.push(("Needs", needs.join(", ")));
    }
    if !row.disturbs.is_empty() {
        let disturbed: Vec<&str> = row.disturbs.iter().map(|what| disturbs_word(*what)).collect();
        lines.push((
            "Can disturb",
            format!("{}; saved before, restored and compared after", disturbed.join(", ")),
        ));
    }
    if row.placebo.is_some() {
        lines.push(("Placebo", "yes: a run may toggle it between two equivalent values".into()));
    }
    if row.can_cut {
        lines.push(("Can cut the path", "yes: tried under a short lease".into()));
    }
    lines.push(("Interacts with", row.interacts.join(", ")));
    lines.push(("Source", row.source.to_owned()));
    lines.iter().fold(String::new(), |mut text, (what, value)| {
        let _ = writeln!(text, "- {what}: {value}");
        text
    })
}

fn on_word(on: On) -> &'static str {
    match on {
        On::Flow => "the flow itself",
        On::Sender => "the sender",
        On::Receiver => "the receiver",
        On::Both => "both hosts",
    }
}

fn disturbs_word(disturbs: Disturbs) -> &'static str {
    match disturbs {
        Disturbs::Addresses => "addresses",
        Disturbs::Routes => "routes",
        Disturbs::DeviceSysctls => "sysctls of the device",
        Disturbs::Features => "other offloads",
        Disturbs::Queues => "settings of the queues",
        Disturbs::Qdisc => "the queueing discipline",
        Disturbs::Sysctl(name) => name,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_has_its_place() {
        let pages = pages();
        assert_eq!(pages.len(), FAMILIES.len() + 1);
        for family in FAMILIES {
            let page =
                &pages.iter().find(|(path, _)| path.ends_with(&format!("/{}.md", family.name))).unwrap().1;
            for knob in family.knobs() {
                assert!(page.contains(&format!("\n## {}\n", knob.row.name)));
                assert!(page.contains(knob.row.source));
                assert!(pages[0].1.contains(&format!("[{}]", knob.row.name)));
            }
        }
    }
}
