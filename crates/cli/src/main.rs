//! The `landspeed` binary: arguments and wiring only.

mod command_line;
mod commands;
mod data;
mod exit;
mod failure;
mod groups;
mod habits;
mod hide;
mod hosts;
mod kept;
mod kernels;
mod kinds;
mod labs;
mod output;
mod place;
mod recorder;
mod schema;
mod shown;
mod stop;

use std::process::ExitCode;

use clap::Parser;
use landspeed_agent::session;
use landspeed_engine::Error;
use landspeed_lab::topology;
use landspeed_record::WrongKind;

use crate::commands::CliCommand;
use crate::exit::Exit;
use crate::failure::{StatusError, in_one_line, say, say_kept};

fn main() -> ExitCode {
    let words = match commands::app::load_named(std::env::args_os()) {
        Ok(words) => words,
        Err(error) => return fail(&error),
    };
    if let Some(said) = habits::split_time(&words) {
        return fail(&output::usage(said));
    }
    let command = match CliCommand::try_parse_from(&words) {
        Ok(command) => command,
        // A reader that has closed the pipe (`landspeed --help | head -1`) is not an error.
        Err(text) => {
            if let Some(said) = habits::answer(&text, &words) {
                return fail(&output::usage(said));
            }
            return match text.print().map_err(output::unwritten) {
                Err(error) if !text.use_stderr() && !is_broken_pipe(&error) => fail(&error),
                _ => ExitCode::from(u8::try_from(text.exit_code()).unwrap_or(2)),
            };
        }
    };
    // The tokens can be hidden now, because the parsed arguments contain them.
    let _ = hide::tokens();
    landspeed_lab::topology::lab::keep_with(landspeed_kernel::daemon::own_command("keeper"));
    let ended = command.run();
    stop::unless_leaving();
    say_kept();
    match ended {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Prints an error and returns its exit code.
fn fail(error: &anyhow::Error) -> ExitCode {
    say(&in_one_line(error));
    status(error).into()
}

fn status(error: &anyhow::Error) -> Exit {
    match error.downcast_ref() {
        Some(Error::NotRestored(_)) => Exit::NotRestored,
        Some(Error::Left(_)) => Exit::Left,
        _ if is_of_arguments(error) => Exit::Usage,
        _ => StatusError::exit_of(error).unwrap_or(Exit::Failed),
    }
}

/// Returns true for a library's error about the arguments: they are invalid, or they name something that does not exist
/// or is of another kind. clap exits with the same status.
fn is_of_arguments(error: &anyhow::Error) -> bool {
    error.is::<WrongKind>()
        || error.downcast_ref::<topology::Error>().is_some_and(topology::Error::is_about_words)
        || error.downcast_ref::<Error>().is_some_and(is_wrong_word)
}

/// Returns true if the engine could not begin because of a word of the command line: it names a record of another kind,
/// no host, or no file of tokens.
fn is_wrong_word(error: &Error) -> bool {
    match error {
        Error::Kind(_) => true,
        Error::Topology(error) => error.is_about_words(),
        Error::Reach { source } => is_of_invite(source),
        Error::Both { first, .. } => is_wrong_word(first),
        _ => false,
    }
}

fn is_of_invite(error: &session::Error) -> bool {
    matches!(error, session::Error::Invite { .. } | session::Error::TokenFile { .. })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
