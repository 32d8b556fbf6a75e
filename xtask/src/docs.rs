//! Generates, writes and checks the pages that come from the code.

use std::path::Path;

use anyhow::{Context, Result};
use landspeed_record::factor::reference::cell;
use landspeed_record::{KernelNeed, KernelVersion};

use crate::{claims, schemas};

/// The exit codes of `landspeed`. The file is included by path, because the crate `cli` has no library.
#[path = "../../crates/cli/src/exit.rs"]
#[expect(dead_code, reason = "a page needs the table alone")]
mod exit;

/// The needs of all parts, which the crate `cli` gathers.
#[path = "../../crates/cli/src/kernels.rs"]
mod kernels;

/// Returns every generated page: its path within the project, and its text.
fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let knobs = landspeed_knob::reference::pages();
    let tables = [
        landspeed_lab::topology::reference::page(),
        landspeed_transport::reference::page(),
        landspeed_workload::reference::page(),
        landspeed_observer::reference::page(),
    ];
    let pages = knobs.into_iter().chain(landspeed_congestion::reference::pages()).chain(tables);
    let of_program = schemas::pages(root)?.into_iter().chain(claims::pages(root)?);
    Ok(pages.chain([exit_codes(), kernel_page()]).chain(of_program).collect())
}

fn kernel_page() -> (String, String) {
    let row = |(part, need): &(String, KernelNeed)| {
        let instead = if need.instead.is_empty() { "–" } else { need.instead };
        format!("| {} | {} | {instead} |\n", cell(part), need.since)
    };
    let rows: String = kernels::needs().iter().map(row).collect();
    let oldest = KernelVersion::OLDEST;
    let text = format!(
        "<!-- Written from the rows of the parts by `make docs`. Edit the rows instead. -->\n\n# Kernels\n\n\
         landspeed measures and explains on {oldest} and newer. These parts need a newer kernel, or one whose distribution added what they \
         need: landspeed asks the kernel itself before it uses a part. `landspeed doctor` names the parts for which a host's kernel is too \
         old, by its version. [What was tested](../results/kernels.md).\n\n\
         | part | needs | on an older kernel |\n|---|---|---|\n{rows}"
    );
    (kernels::PAGE.to_owned(), text)
}

fn exit_codes() -> (String, String) {
    let row = |(exit, name, meaning): &(exit::Exit, &str, &str)| {
        format!("| {} | {name} | {meaning} |\n", *exit as u8)
    };
    let rows: String = exit::ALL.iter().map(row).collect();
    let text = format!(
        "<!-- Written from crates/cli/src/exit.rs by `make docs`. Edit the table there instead. -->\n\n# Exit codes\n\n| code | means | when |\n|---|---|---|\n{rows}\n\
         A command that a signal ends before it has anything to report exits with 128 and the signal's number.\n\n\
         `landspeed exec` and `lab enter` exit as the program that they run; as in a shell, with 127 where there is no such program,\n\
         and 126 where it cannot be run.\n"
    );
    ("docs/reference/exit-codes.md".to_owned(), text)
}

pub(crate) fn write(root: &Path) -> Result<()> {
    for (path, text) in pages(root)? {
        let path = root.join(path);
        let folder = path.parent().context("a page lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns one line for each page that differs from the text that its source generates.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>> {
    let differs = |(path, text): &(String, String)| {
        std::fs::read_to_string(root.join(path)).map_or(true, |found| found != *text)
    };
    Ok(pages(root)?
        .iter()
        .filter(|page| differs(page))
        .map(|(path, _)| format!("{path} is stale: make docs"))
        .collect())
}
