//! Developer tasks: `cargo run -p xtask -- agree|check|docs|bench|climb|honesty|zoo`.
//!
//! `check` holds what no compiler does: the arrows between crates, and that generated pages are as
//! their sources would make them. `docs` writes those pages. `bench`, `climb`, `honesty` and
//! `zoo` and `agree` measure; they are no tests.

mod agree;
mod arrows;
mod bench;
mod climb;
mod docs;
mod honesty;
mod zoo;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some("agree") => agree::run(root, &words[1..]),
        Some("check") => check(root),
        Some("docs") => docs::write(root),
        Some("bench") => bench::run(root, &words[1..]),
        Some("climb") => climb::run(root),
        Some("honesty") => honesty::run(root, &words[1..]),
        Some("zoo") => zoo::run(&words[1..]),
        _ => Err(anyhow::anyhow!(
            "usage: cargo run -p xtask -- agree [drops | responses | beside] | check | docs | bench | climb | honesty | zoo"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(root: &Path) -> Result<()> {
    let mut wrong = arrows::wrong(root)?;
    wrong.extend(docs::stale(root)?);
    for line in &wrong {
        eprintln!("{line}");
    }
    if !wrong.is_empty() {
        bail!("{} found", wrong.len());
    }
    println!("arrows point one way, generated pages are fresh");
    Ok(())
}
