//! Writes docs/reference/workloads.md from the table of workloads.

use std::fmt::Write;

use landspeed_record::factor::reference::{capital, entry};

use crate::WORKLOADS;

const HEAD: &str = "<!-- Written from the table of workloads by `make docs`. Edit the table instead. -->\n\n\
                    What `landspeed measure WORKLOAD` runs, with the parameters of each as its options. \
                    [Settings of the flow](flow.md) go with all of them, and so do [observers](observers.md).\n";

/// Returns the page as (path within the project, Markdown).
pub fn page() -> (String, String) {
    let mut page = HEAD.to_owned();
    for workload in WORKLOADS.iter().filter(|workload| workload.application().is_none()) {
        let _ = write!(page, "\n# {}\n\n{}.\n\n", workload.name(), capital(workload.describe()));
        for role in workload.roles() {
            let _ = writeln!(
                page,
                "- Role {}: {}; {} host{} at most.",
                role.name,
                role.about,
                role.most,
                if role.most == 1 { "" } else { "s" }
            );
        }
        for headline in workload.headlines() {
            let _ = writeln!(page, "- Prints {}: {}.", headline.name, headline.about);
        }
        workload.parameters().iter().for_each(|parameter| page.push_str(&entry(parameter)));
    }
    ("docs/reference/workloads.md".to_owned(), page)
}
