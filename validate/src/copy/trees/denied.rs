//! A copy under a filter that refuses openat2(2), as some containers have one: it refuses too, and says so.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};

use super::Study;
use super::attributes::Ownership;
use super::generate::empty_folder;
use super::programs::Medium;
use crate::table;

/// The subcommand of this program that runs another one under the filter.
pub(crate) const DENIED: &str = "without-openat2";
/// What a copy must say of it.
const TOLD: &str = "a copy needs openat2(2)";
/// The longest time of this copy in seconds, which is to end at once.
const LONGEST: &str = "60";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The program to run, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Becomes the program of the options, under the filter.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (program, args) = options.command.split_first().context("name a program")?;
    deny_openat2().context("deny openat2(2)")?;
    Err(Command::new(program).args(args).exec()).with_context(|| program.display().to_string())
}

/// Denies openat2(2) to this process and to what it becomes, as a kernel before 5.6 does.
fn deny_openat2() -> io::Result<()> {
    let instruction = |code: u32, k: u32, jf: u8| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    let mut filter = [
        // The number of the call comes first in struct seccomp_data.
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_openat2 as u32, 1),
        instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 0),
        instruction(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    rustix::thread::set_no_new_privs(true)?;
    let mode = libc::c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: the program and its instructions live until the call returns, and the kernel copies them.
    match unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Study {
    /// Copies under the filter, and prints a row: nothing may be copied, and one line must say why.
    pub(super) fn denied(&mut self) -> Result<()> {
        self.empty_target(Medium::Memory, Ownership::Anybody)?;
        let [from, to] = ["denied", "out/to"].map(|name| self.at(Medium::Memory).join(name));
        empty_folder(&from)?;
        fs::write(from.join("file"), "content")?;
        let own = std::env::current_exe().context("cannot find this program itself")?;
        let mut copy = Command::new("timeout");
        copy.arg(LONGEST).arg(own).arg(DENIED).arg(self.disk.path().join("landspeed"));
        let output = copy
            .args(["copy", "--no-record"])
            .arg(from.join(""))
            .arg(&to)
            .output()
            .context("copy under a filter")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!said.contains("validate: "), "no copy was tried: {said}");
        let (code, is_empty) = (output.status.code(), is_empty(&to)?);
        let promise = self.broken.check(code == Some(1) && said.contains(TOLD) && is_empty);
        println!();
        table::head("under a filter that refuses openat2 | exit | what it says | copied | promise");
        table::row(&[
            &"to a folder",
            &code.map_or("-".to_owned(), |code| code.to_string()),
            &said.lines().last().unwrap_or_default(),
            &if is_empty { "nothing" } else { "something" },
            &promise,
        ]);
        Ok(())
    }
}

fn is_empty(folder: &Path) -> Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}
