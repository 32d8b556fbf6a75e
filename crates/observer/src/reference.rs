//! Writes docs/reference/observers.md from the table of observers.

use std::fmt::Write;

use crate::{OBSERVERS, Observer, RunPolicy};

const HEAD: &str = "<!-- Written from the table of observers by `make docs`. Edit the table instead. -->\n\n\
                    # Observers\n\n\
                    What landspeed watches on each host while a workload runs. `landspeed measure WORKLOAD --watch \
                    NAME,...` runs observers that do not always run, and prints the figures of all that are named. \
                    `landspeed show --full`, its page and its CSV have the figures of the trial that most observers \
                    watched.\n";

/// Returns the page's path within the project, and its Markdown.
pub fn page() -> (String, String) {
    let sections: String = OBSERVERS.iter().map(|row| section(row)).collect();
    ("docs/reference/observers.md".to_owned(), HEAD.to_owned() + &sections)
}

fn section(row: &Observer) -> String {
    let runs = match row.runs {
        RunPolicy::Always => "It always runs",
        RunPolicy::Explaining => "It runs where a path or a flow is explained, or where it is asked for",
        RunPolicy::OnRequest => "It runs where it is asked for",
    };
    let own = if row.own_sockets_only { ", over landspeed's own flows only" } else { "" };
    let mut section = format!("\n## {}\n\nWatches {}. {runs}{own}.\n", row.name, row.about);
    if !row.headlines.is_empty() {
        section += "\n| figure | is |\n|---|---|\n";
    }
    for headline in row.headlines {
        let _ = writeln!(section, "| {} | {} |", headline.name, headline.about);
    }
    section += "\nIt cannot see:\n\n";
    for blind in row.cannot_see {
        let _ = writeln!(section, "- {blind}");
    }
    section
}
