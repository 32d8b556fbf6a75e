//! Checks that JSON from outside the process is decoded by `landspeed_record::decode`, which limits its size and
//! escapes its texts.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The other places below `crates` where JSON may be decoded. None of that JSON comes from a peer or from a record.
const ELSEWHERE: [&str; 9] = [
    "record/src/incoming.rs",
    // A value that `decode` has returned.
    "agent/src/session/hello.rs",
    // JSON from the program that started this one.
    "lab/src/faults/app/mod.rs",
    // JSON that the agent and the process that it started exchange. A program's output is kept byte by byte for its
    // figures.
    "workload/src/app/figure.rs",
    "workload/src/app/play/",
    "workload/src/app/role.rs",
    // JSON from a process that this process forked.
    "path/src/exec.rs",
    // Root's own files, and the guardian's pipe; their contents are written back byte by byte.
    "knob/src/journal/",
    "lab/src/topology/lab/",
];
const MAKERS: [&str; 2] = ["serde_json::from_", "serde_json::Deserializer"];

/// Returns one line for each place that decodes JSON without `landspeed_record::decode`.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for krate in entries(&root.join("crates"))? {
        let sources = krate.join("src");
        if sources.is_dir() {
            look(&sources, &root.join("crates"), &mut wrong)?;
        }
    }
    wrong.sort();
    Ok(wrong)
}

fn look(path: &Path, crates: &Path, wrong: &mut Vec<String>) -> Result<()> {
    if path.is_dir() {
        return entries(path)?.iter().try_for_each(|entry| look(entry, crates, wrong));
    }
    let name = path.strip_prefix(crates).unwrap_or(path).display().to_string();
    let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
    if !name.ends_with(".rs") || is_test || ELSEWHERE.iter().any(|known| name.starts_with(known)) {
        return Ok(());
    }
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    // Tests come last in a file, and decode only JSON that they made themselves.
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let found = (1..).zip(lines).filter(|(_, line)| MAKERS.iter().any(|maker| line.contains(maker)));
    wrong.extend(
        found.map(|(number, _)| format!("{name}:{number} takes JSON in: use landspeed_record::decode")),
    );
    Ok(())
}

/// Returns the paths of the entries of a folder, sorted by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("look into {}", folder.display()))?;
    let mut entries = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_way_in_is_found_and_a_test_is_none() {
        let root = tempfile::tempdir().unwrap();
        let sources = root.path().join("crates/report/src");
        fs::create_dir_all(&sources).unwrap();
        let tested = "#[cfg(test)]\nmod tests { fn f() { serde_json::from_str(x) } }\n";
        fs::write(sources.join("good.rs"), tested).unwrap();
        assert_eq!(wrong(root.path()).unwrap(), Vec::<String>::new());
        fs::write(sources.join("bad.rs"), format!("fn f() {{\n    serde_json::from_str(x)\n}}\n{tested}"))
            .unwrap();
        let said = wrong(root.path()).unwrap();
        assert_eq!(said, ["report/src/bad.rs:2 takes JSON in: use landspeed_record::decode"]);
    }
}
