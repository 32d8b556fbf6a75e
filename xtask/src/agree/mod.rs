//! The simulator held against the kernel, and the kernel against what is published.
//!
//! `agree` runs the study in both; `agree drops` gives both the same list of losses and compares windows round trip by
//! round trip; `agree responses` holds windows at given loss rates against the published functions; `agree beside` asks
//! what HSTCP-LP leaves to Reno. The last three use real sockets over `lab:wan`, and the congestion controls of this build.

mod beside;
mod drops;
mod path;
mod regions;
mod responses;
mod rounds;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// What is compared, by the first word; the study where it names none of the others.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("drops") => drops::run(&words[1..]),
        Some("responses") => responses::run(&words[1..]),
        Some("beside") => beside::run(),
        _ => regions::run(root, words),
    }
}

/// `--KEY A,B,C`, or what stands for it where the command line has none.
fn list<'a>(words: &'a [String], key: &str, default: &[&'a str]) -> Result<Vec<&'a str>> {
    ensure!(words.len().is_multiple_of(2), "each of {} needs a value", words.join(" "));
    for pair in words.chunks(2) {
        ensure!(
            ["--controls", "--segmentation", "--nth", "--spread", "--pace"].contains(&pair[0].as_str()),
            "unknown {}",
            pair[0]
        );
    }
    let given = words.chunks(2).find(|pair| pair[0] == key);
    Ok(given.map_or(default.to_vec(), |pair| pair[1].split(',').collect()))
}

/// `--KEY N`, or what stands for it.
fn number<T: std::str::FromStr>(words: &[String], key: &str, default: T) -> Result<T> {
    match list(words, key, &[])?[..] {
        [] => Ok(default),
        [given] => given.parse().ok().with_context(|| format!("{key} {given}: expected a number")),
        _ => bail!("{key} takes one number"),
    }
}

/// Says which rows of a table are not as they should be.
fn verdict(apart: &[String]) -> Result<()> {
    match apart {
        [] => Ok(()),
        _ => bail!("not as they should be: {}", apart.join(", ")),
    }
}

/// The release build beside this program.
fn landspeed() -> Result<std::path::PathBuf> {
    let own = std::env::current_exe().context("cannot find this program itself")?;
    let landspeed = own.with_file_name("landspeed");
    ensure!(
        !cfg!(debug_assertions) && landspeed.exists(),
        "build first: cargo build --release -p landspeed -p xtask"
    );
    Ok(landspeed)
}
