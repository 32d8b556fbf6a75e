//! `landspeed agent`, which serves one controller.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use landspeed_agent::session::{ServeOptions, ZonedSocketAddress, listen, serve_stdio};
use landspeed_agent::{Agent, CopyPermission, Permissions, RunPermission};
use landspeed_record::units::{Nanos, parse_duration};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::notices;
use crate::output::usage;

/// Serve one controller on this host
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("way").args(["stdio", "listen"]).required(true)),
    group(ArgGroup::new("folders").args(["allow_run", "allow_read", "allow_write"]).multiple(true)),
    after_help = "ssh starts an agent by itself. Start one by hand where there is no ssh.\n\n\
             Examples:\n  \
             sudo landspeed agent --listen 192.0.2.1:4711 --allow-tune\n  \
             landspeed agent --listen 192.0.2.1:4711 --allow-read /data --allow-write /scratch"
)]
pub(crate) struct AgentArgs {
    /// Serve the controller on standard input and output, as ssh starts it
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Listen for one controller by TLS, and print the line to paste there
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<ZonedSocketAddress>,
    /// Allow the controller to change this host's settings (needs root)
    #[arg(long)]
    pub(crate) allow_tune: bool,
    /// With --listen: allow the controller to run the applications whose files are in this folder
    ///
    /// If the agent is root, a program runs as the user that its file names, `nobody` by default. `landspeed app list`
    /// shows the applications that ship. The folder, its parent folders and its files must belong to root or to the
    /// user that the agent runs as, and no other user may be able to write to them.
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    pub(crate) allow_run: Option<PathBuf>,
    /// With --listen: allow the controller to copy files out of this folder and everything below it
    ///
    /// No symbolic link and no ".." leads out of the folder. A file system that is mounted below it belongs to it. Give
    /// the option once for each folder.
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    pub(crate) allow_read: Vec<PathBuf>,
    /// With --listen: allow the controller to create, replace and delete files in this folder and below it
    ///
    /// It does not permit the controller to copy them out. The controller learns what a copy must know about them:
    /// names, lengths, times, other attributes that a copy keeps, and whether their content equals content that it
    /// already has. Give the option once for each folder.
    #[arg(long, value_name = "DIR", conflicts_with = "stdio")]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Allow what needs root: programs whose files say so, and copies as root
    ///
    /// For --allow-run, --allow-read and --allow-write. Without it, an agent that runs as root copies nothing, because
    /// the entries that it creates below the folder may have any owner and set-user-ID bits, and may be devices.
    #[arg(long, requires = "folders")]
    pub(crate) allow_root: bool,
    /// With --listen: let the token expire after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub(crate) expires: Nanos,
    /// Run in this named network namespace
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Option<String>,
    /// Set by take.sh: this program runs from a nameless file on descriptor 9, and starts again without it
    #[arg(long, hide = true)]
    pub(crate) sent: bool,
}

pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode> {
    if args.sent {
        let words = std::env::args_os().skip(1).filter(|word| word != "--sent");
        return Err(landspeed_kernel::daemon::start_over(words)).context("cannot start over");
    }
    if args.allow_tune && args.listen.is_some() && !rustix::process::geteuid().is_root() {
        bail!("--allow-tune needs root: start the agent with sudo, or leave the option out to measure alone");
    }
    // The name that `ps` and `top` show, even if the program was started from a descriptor.
    let _ = rustix::thread::set_name(c"landspeed");
    if let Some(name) = &args.netns {
        landspeed_lab::topology::enter(name)?;
    }
    raise_open_files();
    let may_run = match &args.allow_run {
        // The controller is the user's own session, so it could run anything there without the agent.
        _ if args.stdio => RunPermission::Anything,
        Some(folder) => {
            let refused = |why: String| usage(format!("--allow-run: {why}"));
            RunPermission::folder(folder, args.allow_root).map_err(refused)?
        }
        None => RunPermission::Nothing,
    };
    let permissions = Permissions { run: may_run, copy: may_copy(args)?, tune: args.allow_tune };
    let agent = Agent::permitting(permissions);
    let options = ServeOptions { must_restore: args.allow_tune, lines: notices(), ..ServeOptions::default() };
    let Some(address) = &args.listen else {
        serve_stdio(agent, &options)?;
        return Ok(ExitCode::SUCCESS);
    };
    let address = address.here().context("cannot listen")?;
    let listening = listen(address, agent, &ServeOptions { expires: args.expires, ..options })?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listening.ticket().reveal())?;
    out.flush()?;
    listening.run().context("agent")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the permission for the controller to copy files.
fn may_copy(args: &AgentArgs) -> Result<CopyPermission> {
    // The user's own session could read and write the files without the agent.
    if args.stdio {
        return Ok(CopyPermission::Anything);
    }
    let is_asked = !args.allow_read.is_empty() || !args.allow_write.is_empty();
    if is_asked && !args.allow_root && rustix::process::geteuid().is_root() {
        bail!(
            "this agent would copy as root: start it as the user to whom the files belong, or add --allow-root to copy as root"
        );
    }
    CopyPermission::beneath(&args.allow_read, &args.allow_write).map_err(usage)
}

/// Raises the soft limit of open files (usually 1024) to the hard one, because each flow needs a descriptor. A failure
/// is ignored, because an open beyond the limit returns its own error.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
