//! The exit statuses. docs/reference/exit-codes.md is generated from this table.

use std::process::ExitCode;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotRestored = 3,
    NothingProven = 4,
    Left = 5,
    Incomplete = 6,
    TooNoisy = 7,
}

/// Each exit status with its name and its meaning.
pub(crate) const ALL: [(Exit, &str, &str); 8] = [
    (Exit::Done, "done", "The command did what was asked. `landspeed verify` found no difference."),
    (
        Exit::Failed,
        "failed",
        "The command could not do it, its figures do not count, `landspeed verify` found a difference, or `landspeed doctor` \
         something wrong. The reason is on standard error or in the report.",
    ),
    (
        Exit::Usage,
        "wrong usage",
        "Arguments are wrong, or name what is not there or is something else on this machine: a record, a file to read, a file \
         that cannot be written, an application, a setting, a lab, a network namespace. Or `landspeed verify` cannot check: the \
         record or the host is another one. Nothing was started. Other hosts, and the paths of a copy, are looked at while a \
         command runs: what is wrong with them counts as 1.",
    ),
    (
        Exit::NotRestored,
        "not everything restored",
        "A setting that landspeed changed could not be restored, or a host was lost before it confirmed so. The output names it; `landspeed undo` restores it, or confirms that it is.",
    ),
    (
        Exit::NothingProven,
        "nothing proven (with --exit-code)",
        "`landspeed tune --exit-code`: everything was restored, and the final check does not prove a gain.",
    ),
    (
        Exit::Left,
        "changed by another program",
        "The command is done, and a setting does not read back as it was before: another program changed it meanwhile, \
         so it was left. The output names it. Everything else was restored, and nothing is to undo.",
    ),
    (
        Exit::Incomplete,
        "incomplete",
        "`landspeed copy`: some of what was to be copied is not at the target, or not known to be on stable storage; or the \
         target did not take an owner, attributes, a hard link or the like of it; or `--delete` has deleted nothing. The \
         output names it. The same command goes on from there. With `--dry-run`: some could not be copied, or `--delete` would \
         delete nothing. With `--verify`: some is not the same there.",
    ),
    (
        Exit::TooNoisy,
        "too noisy",
        "`landspeed run`: the look at the machine says that the planned blocks could answer none of the file's questions. The file, or \
         with `--occasions` this occasion, was not measured, and what the look has changed was restored. The output names the \
         blocks that could; `--anyway` measures without the look.",
    ),
];

/// Returns all exit statuses in one line for help.
pub(crate) fn line() -> String {
    let each: Vec<String> = ALL.iter().map(|(exit, name, _)| format!("{} {name}", *exit as u8)).collect();
    format!("Exit status: {}", each.join(", "))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
