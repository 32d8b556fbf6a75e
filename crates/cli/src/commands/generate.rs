//! `landspeed generate`: writes man pages and completions from the tables behind the command line, and the schemas of
//! JSON documents.

use std::fs::create_dir_all;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

use super::{DOCUMENTS, whole};
use crate::schema;

/// Write man pages, completions for bash, zsh and fish, and JSON Schemas
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct GenerateArgs {
    /// Write below this folder, laid out as /usr/share is
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Folders for the completions of each shell, below a prefix's `share`.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];

pub(crate) fn run(args: &GenerateArgs) -> Result<ExitCode> {
    let into = |folder: &str, write: &dyn Fn(&Path) -> io::Result<()>| {
        let folder = args.folder.join(folder);
        create_dir_all(&folder)
            .and_then(|()| write(&folder))
            .with_context(|| format!("cannot write into {}", folder.display()))
    };
    let mut command = whole().disable_help_subcommand(true);
    command.build();
    into("man/man1", &|folder| pages(&command, folder))?;
    into("landspeed/schemas", &|folder| schema::write(DOCUMENTS, folder))?;
    for (shell, folder) in SHELLS {
        into(folder, &|folder| generate_to(shell, &mut shown(), "landspeed", folder).map(drop))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line without its hidden commands, because bash completion would include them.
fn shown() -> Command {
    let all = whole();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("landspeed").version(env!("CARGO_PKG_VERSION")).subcommands(shown)
}

/// Writes the page of a command, and those of its subcommands.
fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    // An application is documented by its file: `landspeed app show NAME`.
    let has_page = |command: &&Command| !command.is_hide_set() && !command.get_name().contains(':');
    for subcommand in command.get_subcommands().filter(has_page) {
        pages(subcommand, folder)?;
    }
    // An empty date would be left out, and the next field would take its place.
    let page = Man::new(command.clone()).date(" ").source(concat!("landspeed ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text)?;
    // Text is left-aligned: synopses are long words, and examples have their own columns.
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\n", ".SH NOTES\n");
    let text = text.replacen(".SH NAME\n", ".ds AD l\n.ad l\n.SH NAME\n", 1);
    std::fs::write(folder.join(page.get_filename()), text)
}
