//! Generates docs/reference/flow.md from the table of transports.

use std::fmt::Write;

use landspeed_record::factor::reference::{capital, entry};

use crate::settings::EVERY_FLOW;
use crate::{TRANSPORTS, ports};

const HEAD: &str = "<!-- Written from the table of transports by `make docs`. Edit the table instead. -->\n\n\
                    # Settings of a flow\n\n\
                    `--set NAME=VALUE,...` sets them for `measure` and `explain`, and those of its transport for \
                    `copy`; `tune` tries them. A new flow takes them, so there is nothing to put back.\n";

const PORTS: &str = "\nWith `--data-port N` the second host takes these ports";

/// Returns the page as (path within the project, Markdown).
pub fn page() -> (String, String) {
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "{PORTS}: {}.", ports());
    EVERY_FLOW.iter().for_each(|factor| page.push_str(&entry(factor)));
    for transport in TRANSPORTS {
        let _ = write!(page, "\n# {}\n\n{}.\n", transport.name(), capital(transport.about().line));
        for headline in transport.about().headlines {
            let _ = writeln!(page, "\n`measure` prints {}: {}.", headline.name, headline.about);
        }
        transport.factors().into_iter().for_each(|factor| page.push_str(&entry(factor)));
    }
    ("docs/reference/flow.md".to_owned(), page)
}
