//! `landspeed persist`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_advice::{File, Kept, persist};
use landspeed_knob as knob;
use landspeed_record::{Line, LinkFacts, Record, Side, TuneSummary};

use crate::args::{PersistArgs, SideArg};
use crate::commands::show::{out, summary};

/// Runs the command.
pub(crate) fn run(args: &PersistArgs) -> Result<ExitCode> {
    let record = landspeed_record::read(&args.record)?;
    let summary = summary(&record, &args.record)?;
    let side = match args.host {
        SideArg::A => Side::A,
        SideArg::B => Side::B,
    };
    let kept = Kept {
        start: &summary.start_cell,
        end: &summary.final_cell,
        side,
        link: link(&record, &summary, side),
        origin: &format!("{} of {}", summary.record, summary.started),
    };
    let persisted = persist(&kept, &|name| knob::find(name).ok().and_then(knob::Knob::sysctl))?;
    for file in &persisted.files {
        match &args.write {
            Some(root) => write(root, file)?,
            None => out(&shown(file))?,
        }
    }
    if !persisted.application.is_empty() {
        out(&persisted.application)?;
    }
    for left in &persisted.left_out {
        out(&format!("not in a file: {}: {}", left.knob, left.why))?;
    }
    if args.write.is_none() && !persisted.files.is_empty() {
        eprintln!("nothing was written: --write / puts these files in place");
    }
    Ok(ExitCode::SUCCESS)
}

/// The host's link on the path, as the record names it.
fn link<'a>(record: &Record, summary: &'a TuneSummary, side: Side) -> Option<&'a LinkFacts> {
    let name = record.lines.iter().find_map(|line| match (line, side) {
        (Line::Path(path), Side::A) => Some(&path.link_a),
        (Line::Path(path), Side::B) => Some(&path.link_b),
        _ => None,
    })?;
    let host = match side {
        Side::A => &summary.host_a,
        Side::B => &summary.host_b,
    };
    host.links.iter().find(|link| link.name == *name)
}

fn shown(file: &File) -> String {
    let rule = "-".repeat(file.path.len());
    format!(
        "{}\n{rule}\n{}\napply now: {}\nremove: {}\n",
        file.path,
        file.text,
        file.apply.join("; "),
        file.remove.join("; ")
    )
}

fn write(root: &Path, file: &File) -> Result<()> {
    let path = root.join(file.path.trim_start_matches('/'));
    let shown = path.display();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, &file.text).with_context(|| format!("cannot write {shown}"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file.mode))
        .with_context(|| format!("cannot set the mode of {shown}"))?;
    out(&format!(
        "wrote {shown}\n  apply now: {}\n  remove: {}",
        file.apply.join("; "),
        file.remove.join("; ")
    ))
}
