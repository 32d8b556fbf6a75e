//! `landspeed persist`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_experiment::all_factors;
use landspeed_knob as knob;
use landspeed_knob::persist::{File, Kept, LeftOut, confirmed, persist};
use landspeed_record::{Cell, Line, LinkFacts, Record, Side, StepLine, StepSummary, TuneSummary};

use crate::args::{PersistArgs, SideArg};
use crate::commands::show::summary;
use crate::output::out;
use crate::place::put_in_place;

pub(crate) fn run(args: &PersistArgs) -> Result<ExitCode> {
    let record = landspeed_record::read(&args.record)?;
    let summary = summary(&record, &args.record)?;
    let side = match args.host {
        SideArg::A => Side::A,
        SideArg::B => Side::B,
    };
    let (end, unconfirmed) = end(&record, &summary, args.unconfirmed);
    let kept = Kept {
        start: &summary.start_cell,
        end: &end,
        side,
        link: link(&record, &summary, side),
        origin: &format!("{} of {}", summary.record, summary.started),
    };
    let persisted = persist(&kept, all_factors())?;
    for file in &persisted.files {
        match &args.write {
            Some(root) => write(root, file)?,
            None => out(&shown(file))?,
        }
    }
    if !persisted.application.is_empty() {
        out(&persisted.application)?;
    }
    for left in unconfirmed.iter().chain(&persisted.left_out) {
        out(&format!("not in a file: {}: {}", left.knob, left.why))?;
    }
    if args.write.is_none() && !persisted.files.is_empty() {
        eprintln!("nothing was written: --write / puts these files in place");
    }
    Ok(ExitCode::SUCCESS)
}

/// The setting to write: the final one, by default less what was not confirmed, which comes second.
fn end(record: &Record, summary: &TuneSummary, unconfirmed: bool) -> (Cell, Vec<LeftOut>) {
    if unconfirmed {
        return (summary.final_cell.clone(), Vec::new());
    }
    let line = |step: &StepSummary| {
        record.lines.iter().rev().find_map(|line| match line {
            Line::Step(line) if line.summary.id == step.id => Some(&**line),
            _ => None,
        })
    };
    let steps: Vec<&StepLine> = summary.steps.iter().filter_map(line).collect();
    let needs = |name: &str| knob::find(name).map_or(&[][..], |knob| knob.factor.needs);
    confirmed(&summary.start_cell, &summary.final_cell, &steps, &needs)
}

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
    put_in_place(&path, &file.text, file.mode).with_context(|| format!("cannot write {shown}"))?;
    out(&format!(
        "wrote {shown}\n  apply now: {}\n  remove: {}",
        file.apply.join("; "),
        file.remove.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const FOLDER: &str = "LANDSPEED_TEST_PERSIST";

    fn file(text: &str) -> File {
        let (apply, remove) = (Vec::new(), Vec::new());
        File { path: "/etc/sysctl.d/90-landspeed.conf".into(), text: text.into(), mode: 0o644, apply, remove }
    }

    /// Not a test: the program whose write is cut short.
    #[test]
    fn role() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            let written = write(Path::new(&folder), &file(&"net.ipv4.tcp_sack = 0\n".repeat(1000)));
            eprintln!("{written:?}");
            std::process::exit(i32::from(written.is_err()));
        }
    }

    #[test]
    fn a_write_that_is_cut_short_leaves_the_old_file() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), &file("old")).unwrap();
        let etc = root.path().join("etc/sysctl.d");
        let mode = || etc.join("90-landspeed.conf").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o644);
        // The file may grow to one block of 512 bytes; the signal that says so is ignored, so that the write fails.
        let script =
            "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact commands::persist::tests::role --nocapture";
        let mut cut = std::process::Command::new("sh");
        cut.args(["-c", script]).arg(std::env::current_exe().unwrap()).env(FOLDER, root.path());
        let output = cut.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        assert_eq!(std::fs::read_to_string(etc.join("90-landspeed.conf")).unwrap(), "old");
        let names: Vec<_> = std::fs::read_dir(&etc).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "{names:?}");

        write(root.path(), &file("new")).unwrap();
        assert_eq!(std::fs::read_to_string(etc.join("90-landspeed.conf")).unwrap(), "new");
        assert_eq!(mode(), 0o644);
    }
}
