//! The turns of a comparison, and the sample that they copy.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_analysis::turn_order;
use landspeed_engine::{TimedCommand, cpu_of_children};
use landspeed_record::CopyConditions;
use landspeed_record::units::{Bytes, CpuNanos, Nanos};

use super::host::{AgainstHost, ThrowAway};
use super::report::{AgainstProgram, AgainstTurn, TreeCounts};
use super::{INCOMPLETE, LONGEST, OwnProgram};
use crate::failure::in_one_line;
use crate::output::ActivityLine;

/// The longest duration of another program's turn, as a multiple of landspeed's first turn, but at least [`LEAST`].
const TIMES: u32 = 20;
const LEAST: Duration = Duration::from_secs(120);
/// The time for sshd to reap a session that has ended.
const SETTLE: Duration = Duration::from_millis(300);

/// Runs the programs in turn.
pub(super) struct TurnTaker<'a> {
    pub(super) own: &'a OwnProgram<'a>,
    /// The host of the target.
    pub(super) to: &'a AgainstHost,
    /// The end that ssh reaches; `None` within this machine.
    pub(super) far: Option<&'a AgainstHost>,
    pub(super) thrown: &'a ThrowAway<'a>,
    /// The content that each copy must have.
    pub(super) content: TreeCounts,
    /// The conditions of both hosts in landspeed's last turn.
    pub(super) conditions: CopyConditions,
}

impl TurnTaker<'_> {
    /// Measures all programs, with landspeed first in the list. Returns the reason if processor time is unknown. The
    /// first turn of each program reads the source into memory and shows whether its copy is complete; it does not
    /// count. Ends early if all other programs are excluded.
    pub(super) fn measure(&mut self, programs: &mut [AgainstProgram], turns: u32) -> Result<Option<String>> {
        let line = ActivityLine::new();
        let mut limit = LONGEST;
        let first: Vec<usize> = (0..programs.len()).collect();
        let order = turn_order(programs.len(), turns, u64::from(std::process::id()));
        for (number, block) in std::iter::once(first).chain(order).enumerate() {
            if programs.iter().skip(1).all(|program| program.left_out.is_some()) {
                break;
            }
            for at in block {
                let program = &mut programs[at];
                line.begin(&format!("{}, turn {number} of {turns}", program.name));
                let took = self.next(program, number == 0, if at == 0 { LONGEST } else { limit });
                match took {
                    Err(error) if self.own.stop.asked() => return Err(error),
                    Err(error) if at == 0 => return Err(error.context("landspeed copy")),
                    Err(error) => program.left_out = Some(in_one_line(&error)),
                    Ok(took) if at == 0 && number == 0 => limit = took.saturating_mul(TIMES).max(LEAST),
                    Ok(_) => {}
                }
            }
        }
        let is_counted = programs[0].turns.iter().all(|turn| turn.cpu_ns.is_some());
        let far = self.far.filter(|_| !is_counted);
        Ok(far.map(|far| format!("no sshd is seen on {} that counts what its sessions take", far.name())))
    }

    /// Runs the next turn of a program that is not excluded, and returns its time.
    fn next(&mut self, program: &mut AgainstProgram, is_first: bool, limit: Duration) -> Result<Duration> {
        if program.left_out.is_some() {
            return Ok(Duration::ZERO);
        }
        let (done, turn) = self.turn(&program.words, limit)?;
        if program.words.first() == Some(&self.own.path) {
            self.conditions = landspeed_record::decode(&done.printed).unwrap_or_default();
        }
        if is_first {
            program.other_copy = self.other_copy()?;
            program.first_code = done.status.code();
        } else {
            // An incomplete copy takes less time, for example if the target is full.
            let is_same = done.status.code() == program.first_code;
            ensure!(is_same, "not as its first turn: {}: {}", done.status, done.last_line);
            program.turns.push(turn);
        }
        Ok(done.took)
    }

    fn turn(&self, words: &[String], limit: Duration) -> Result<(TimedCommand, AgainstTurn)> {
        self.thrown.renew("copy")?;
        let before = (self.sessions(), cpu_of_children()?);
        let also = INCOMPLETE.filter(|_| words.first() == Some(&self.own.path));
        let done = self.own.run(words, limit, also)?;
        let near = cpu_of_children()? - before.1;
        let far = self.far.map_or(Some(CpuNanos(0)), |_| {
            sleep(SETTLE);
            let ((process, before), (same, after)) = (before.0?, self.sessions()?);
            (process == same).then_some(after - before)
        });
        let turn = AgainstTurn { took_ns: Nanos::from(done.took), cpu_ns: far.map(|far| near + far) };
        Ok((done, turn))
    }

    fn sessions(&self) -> Option<(String, CpuNanos)> {
        self.far.and_then(AgainstHost::sessions)
    }

    /// Returns the content of the copy; `None` if it equals that of the source.
    fn other_copy(&self) -> Result<Option<TreeCounts>> {
        let [copy, none] = ["copy", "none"].map(|name| self.to.place(&self.thrown.path_of(name)));
        let counts = self.own.counts(&copy, &none).context("look at the copy")?;
        Ok((counts != self.content).then_some(counts))
    }
}

/// Draws files at random, up to `size` bytes together, and returns their names and their bytes. Skips a file that no
/// longer fits.
pub(super) fn sampled(mut files: Vec<(u64, Vec<u8>)>, size: Bytes) -> (Vec<Vec<u8>>, Bytes) {
    let order = turn_order(files.len(), 1, u64::from(std::process::id())).concat();
    let (mut names, mut bytes) = (Vec::new(), 0_u64);
    for at in order {
        let (length, name) = &mut files[at];
        let sum = bytes.saturating_add(*length);
        if sum <= size.0 {
            bytes = sum;
            names.push(std::mem::take(name));
        }
    }
    (names, Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_files_that_fit_its_size() {
        let files: Vec<(u64, Vec<u8>)> =
            (0..100_u8).map(|n| (10, vec![n])).chain([(5_000, vec![200])]).collect();
        let (names, bytes) = sampled(files.clone(), Bytes(255));
        assert_eq!((names.len(), bytes), (25, Bytes(250)));
        assert!(names.iter().all(|name| name[0] < 100));
        assert!(names.windows(2).any(|two| two[0] > two[1]), "not the first ones in their order");
        let mut all = sampled(files, Bytes(1 << 20)).0;
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 101);
        assert!(sampled(vec![(9, vec![1])], Bytes(8)).0.is_empty());
    }
}
