//! Pages that are made from the code.

use std::path::Path;

use anyhow::{Context, Result};

/// Every generated page: path within the project, and its text.
fn pages() -> Vec<(String, String)> {
    let knobs = landspeed_knob::reference::pages();
    let tables = [
        landspeed_topology::reference::page(),
        landspeed_transport::reference::page(),
        landspeed_workload::reference::page(),
        landspeed_observer::reference::page(),
    ];
    knobs.into_iter().chain(landspeed_congestion::reference::pages()).chain(tables).collect()
}

pub(crate) fn write(root: &Path) -> Result<()> {
    for (path, text) in pages() {
        let path = root.join(path);
        let folder = path.parent().context("a page lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// One line for each page that is not as its source would make it.
pub(crate) fn stale(root: &Path) -> Result<Vec<String>> {
    let differs = |(path, text): &(String, String)| {
        std::fs::read_to_string(root.join(path)).map_or(true, |found| found != *text)
    };
    Ok(pages()
        .iter()
        .filter(|page| differs(page))
        .map(|(path, _)| format!("{path} is stale: make docs"))
        .collect())
}
