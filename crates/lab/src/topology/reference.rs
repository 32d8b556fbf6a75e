//! Writes docs/reference/topologies.md from the table of topologies.

use std::fmt::Write;

use crate::topology::registry::TopologyDescription;
use crate::topology::{Parameter, TOPOLOGIES};

const HEAD: &str = "<!-- Written from the table of topologies by `make docs`. Edit the table instead. -->\n\n\
                    Which hosts a command works on, and what joins them. Without hosts, most commands take the first.\n";

/// Returns the page as (path within the project, Markdown).
pub fn page() -> (String, String) {
    let mut page = HEAD.to_owned();
    for topology in TOPOLOGIES {
        let TopologyDescription { name, syntax, examples, line, drawing } = topology.about();
        let _ = write!(page, "\n# {name}\n\nWritten `{syntax}`");
        let examples = examples.iter().filter(|text| !text.is_empty());
        let examples: Vec<String> = examples.map(|text| format!("`{text}`")).collect();
        let _ = writeln!(page, "; for example {}: {line}.\n\n```\n{drawing}```", examples.join(", "));
        if let Some(caveat) = topology.caveat() {
            let _ = writeln!(page, "\nEvery report of such a lab says: {caveat}.");
        }
        for (whose, parameters) in topology.parameters() {
            let _ = writeln!(page, "\n{whose}:\n\n| key | value | default | is |\n|---|---|---|---|");
            parameters.iter().for_each(|parameter| page.push_str(&row(parameter)));
        }
    }
    ("docs/reference/topologies.md".to_owned(), page)
}

fn row(parameter: &Parameter) -> String {
    let Parameter { name, values, default, about } = parameter;
    let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
    format!("| `{name}` | {values} | {default} | {about} |\n")
}
