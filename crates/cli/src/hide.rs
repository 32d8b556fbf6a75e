//! Hides tokens on the command line, which every user of this machine can read.

use std::fs::{File, OpenOptions};
use std::io::{Error, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt;

const SCHEME: &[u8] = b"landspeed://";

/// Overwrites the tokens in this process's own arguments with `x`, so that `ps` does not show them. A token is a part
/// of the line that an agent printed. If the overwriting fails, other users can read each token, which is valid until
/// it is used.
pub(crate) fn tokens() -> Result<()> {
    let line = std::fs::read("/proc/self/cmdline")?;
    let tokens = tokens_in(&line);
    if tokens.is_empty() {
        return Ok(());
    }
    let start = arguments_start()?;
    let memory: File = OpenOptions::new().write(true).open("/proc/self/mem")?;
    tokens
        .into_iter()
        .try_for_each(|token| memory.write_all_at(&vec![b'x'; token.len()], start + token.start as u64))
}

/// Returns the address of this process's arguments: field 48 of /proc/PID/stat (proc_pid_stat(5)).
fn arguments_start() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The third field follows the command, which may itself contain spaces and brackets.
    let start = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(48 - 3)?.parse().ok());
    start.ok_or_else(|| Error::other("no start of the arguments in /proc/self/stat"))
}

/// Returns the ranges of the tokens in the arguments `line`: from after "landspeed://" to before '@'.
fn tokens_in(line: &[u8]) -> Vec<Range<usize>> {
    let schemes = (0..line.len()).filter(|at| line[*at..].starts_with(SCHEME));
    let token = |at: usize| {
        let begin = at + SCHEME.len();
        let end = line[begin..].iter().position(|byte| matches!(byte, b'@' | 0))?;
        (line[begin + end] == b'@').then_some(begin..begin + end)
    };
    schemes.filter_map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_part_before_the_address() {
        let line = b"landspeed\0landspeed://1.2.3.4:5/#pin\0'landspeed://abc@1.2.3.4:5/#pin'\0a@b\0";
        let found: Vec<&[u8]> = tokens_in(line).into_iter().map(|token| &line[token]).collect();
        assert_eq!(found, [b"abc"]);
    }
}
