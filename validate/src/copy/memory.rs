//! `make copy-memory`: how much memory the ends of a copy take at their peak: with very many files, with a very long file with holes, and
//! with many flows over a long path.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use landspeed_record::units::Bytes;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::site::{Site, shell};
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};

/// The most memory that an end may take.
const MOST: u64 = 128 << 20;
/// The time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// The longest time of a copy.
const LONGEST: Duration = Duration::from_secs(1_800);
/// The length of the file with holes, and that of a shorter one which shows whether holes stay holes.
const SPARSE: [u64; 2] = [1 << 40, 1 << 30];
/// The most that a copy of such a file may take on the target's file system. It has 1 MiB of data.
const SPARSE_BLOCKS: u64 = 8 << 20;
const COPY: &str = "landspeed copy --no-record --json --flows NUMBER SSH_OPTIONS FROM/ HOST:TO";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Files of the copy of many
    #[arg(long, default_value_t = 1_000_000)]
    files: u64,
    /// The content of the copy over a long path, in MiB
    #[arg(long, default_value_t = 2_048)]
    mib: u64,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: std::path::PathBuf,
}

/// The peaks of the processes of a copy, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Peaks {
    controller: u64,
    source: u64,
    target: u64,
}

/// What a copy came to.
struct WatchedCopy {
    is_complete: bool,
    seconds: f64,
    peaks: Peaks,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let site = Site::new(&options.folder, &landspeed()?)?;
    let sshd = site.start_sshd()?;
    let mut broken = BrokenPromises::default();
    table::head("copy | complete | seconds | controller, peak | source, peak | target, peak | promise");
    many_files(&site.source(), options.files)?;
    row(&format!("{} files", options.files), &watched(&site, 4, &stop)?, &mut broken);
    sparse(&site, &stop, &mut broken)?;
    // 100 ms there and back.
    for end in 0..2 {
        let namespace = site.namespace(end);
        shell(&format!("tc -n {namespace} qdisc add dev d0 root netem delay 50ms limit 200000"))?;
    }
    empty(&site.source())?;
    site.fill(options.mib, 0)?;
    site.fill(0, 20_000)?;
    row("16 flows and 100 ms", &watched(&site, 16, &stop)?, &mut broken);
    sshd.end()?;
    broken.sum_up()
}

/// Copies a file of 1 TiB with 1 MiB of data, whose holes must stay holes. A shorter one is tried before, because without holes
/// the long one would fill the target.
fn sparse(site: &Site, stop: &AtomicBool, broken: &mut BrokenPromises) -> Result<()> {
    for length in SPARSE.into_iter().rev() {
        let title = format!("a file of {} with 1 MiB of data", Bytes(length));
        empty(&site.source())?;
        sparse_file(&site.source().join("sparse"), length)?;
        let copy = watched(site, 4, stop)?;
        let there = fs::metadata(site.target().join("sparse")).map_or(0, |seen| seen.blocks() * 512);
        if there > SPARSE_BLOCKS {
            let kept = broken.check(false);
            table::row(&[
                &title,
                &format!("{} there: holes are not kept", Bytes(there)),
                &"",
                &"",
                &"",
                &"",
                &kept,
            ]);
            return Ok(());
        }
        row(&title, &copy, broken);
    }
    Ok(())
}

fn row(title: &str, copy: &WatchedCopy, broken: &mut BrokenPromises) {
    let WatchedCopy { is_complete, seconds, peaks } = copy;
    let is_small =
        [peaks.controller, peaks.source, peaks.target].iter().all(|peak| (1..=MOST).contains(peak));
    let cells: [&dyn std::fmt::Display; 7] = [
        &title,
        is_complete,
        &format!("{seconds:.1}"),
        &Bytes(peaks.controller),
        &Bytes(peaks.source),
        &Bytes(peaks.target),
        &broken.check(*is_complete && is_small),
    ];
    table::row(&cells);
}

/// Makes so many files in folders of a thousand. Every fourth one has some content.
fn many_files(folder: &Path, files: u64) -> Result<()> {
    for number in 0..files {
        let own = folder.join((number / 1_000).to_string());
        if number % 1_000 == 0 {
            fs::create_dir(&own)?;
        }
        let content = if number % 4 == 0 { number.to_string() } else { String::new() };
        fs::write(own.join(number.to_string()), content)?;
    }
    Ok(())
}

/// Makes a file with four pieces of data, of which the last one is at its end.
fn sparse_file(path: &Path, length: u64) -> Result<()> {
    let (file, piece) = (File::create(path)?, vec![7; 256 << 10]);
    let last = length - piece.len() as u64;
    for offset in [0, length / 3 + 5, length / 2, last] {
        file.write_all_at(&piece, offset)?;
    }
    Ok(())
}

fn empty(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder)?;
    Ok(fs::create_dir(folder)?)
}

/// Copies into an empty folder, and watches the processes of both hosts meanwhile.
fn watched(site: &Site, flows: u32, stop: &AtomicBool) -> Result<WatchedCopy> {
    site.empty_target()?;
    let begun = Instant::now();
    let mut copy = site
        .command(&COPY.replace("NUMBER", &flows.to_string()))
        .stdout(Stdio::null())
        .spawn()
        .context("copy")?;
    let mut peaks = Peaks::default();
    let status = loop {
        if stop.load(Ordering::Relaxed) {
            copy.kill()?;
            bail!("stopped in a copy");
        }
        if let Some(status) = copy.try_wait()? {
            break status;
        }
        peaks.look(site)?;
        if begun.elapsed() > LONGEST {
            copy.kill()?;
            bail!("a copy takes longer than {LONGEST:?}");
        }
        thread::sleep(LOOK);
    };
    Ok(WatchedCopy { is_complete: status.success(), seconds: begun.elapsed().as_secs_f64(), peaks })
}

impl Peaks {
    /// Looks at all processes of landspeed on both hosts. Their own peaks include what was between two looks.
    fn look(&mut self, site: &Site) -> Result<()> {
        for end in 0..2 {
            let listed = Command::new("ip").args(["netns", "pids", site.namespace(end)]).output()?;
            for process in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
                let Some((is_agent, peak)) = peak(process) else { continue };
                let own = match (end, is_agent) {
                    (0, false) => &mut self.controller,
                    (0, true) => &mut self.source,
                    _ => &mut self.target,
                };
                *own = peak.max(*own);
            }
        }
        Ok(())
    }
}

/// Returns whether a process is an agent, and its peak in bytes; `None` if it is no landspeed, or is gone.
fn peak(process: &str) -> Option<(bool, u64)> {
    let about = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).ok();
    let program = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    if program.file_name()? != "landspeed" {
        return None;
    }
    let is_agent = about("cmdline")?.split('\0').any(|word| word == "agent");
    let status = about("status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((is_agent, kib << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_landspeed_is_watched() {
        assert_eq!(peak(&std::process::id().to_string()), None);
        assert_eq!(peak("0"), None);
    }

    #[test]
    fn a_file_with_holes_has_its_data_at_its_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        sparse_file(&path, 1 << 30).unwrap();
        let seen = fs::metadata(&path).unwrap();
        assert_eq!(seen.len(), 1 << 30);
        assert!(seen.blocks() * 512 <= SPARSE_BLOCKS, "{} blocks", seen.blocks());
    }
}
