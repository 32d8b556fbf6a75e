//! The pages of docs/reference/knobs, generated from the table.

use std::fmt::Write;

use crate::table::{FAMILIES, KnobFamily};
use landspeed_record::factor::reference::{capital, cell, entry};

use crate::Factor;

const HEAD: &str = "<!-- Written from the knob table by `make docs`. Edit the table instead. -->\n\n";

const INTRODUCTION: &str = "Every setting that landspeed can probe, turn, verify and put back. \
                            `landspeed knobs` shows what this host's are set to.";

/// Returns every page as (path within the project, Markdown), the index first. The same table always gives the same
/// text.
pub fn pages() -> Vec<(String, String)> {
    let path = |name: &str| format!("docs/reference/knobs/{name}.md");
    let family = |family: &KnobFamily| (path(family.name), family_page(family));
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
            let Factor { name, about, scope, .. } = knob.factor;
            let link = format!("[{name}]({}.md#{name})", family.name);
            let _ = writeln!(page, "| {link} | {} | {} |", cell(about), scope);
        }
        page.push('\n');
    }
    page
}

fn family_page(family: &KnobFamily) -> String {
    let mut page =
        format!("{HEAD}# Knobs: {}\n\n{}. [All knobs](README.md).\n", family.name, capital(family.about));
    for knob in family.knobs() {
        page.push_str(&entry(&knob.factor));
    }
    page
}
