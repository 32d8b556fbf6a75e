//! The programs that a controller may run on this host.

use std::path::Path;

use landspeed_record::Program;
use landspeed_workload::app::{play::runs_as_root, read};

use crate::trusted::TrustedFolder;

/// The permission to run programs, given when the agent is started.
#[derive(Debug, Default)]
pub enum RunPermission {
    /// No program, because the agent's owner allowed none.
    #[default]
    Nothing,
    /// The application files of a folder.
    Folder(AllowedFolder),
    /// Any program: the controller is the user's own session, which could run it anyway.
    Anything,
}

/// A folder with the application files that may run.
#[derive(Debug)]
pub struct AllowedFolder {
    folder: TrustedFolder,
    as_root: bool,
}

impl RunPermission {
    /// Allows the application files of `folder`; if `as_root`, also the roles that run as root.
    ///
    /// # Errors
    /// Returns an error if another user may change the folder.
    pub fn folder(folder: &Path, as_root: bool) -> Result<RunPermission, String> {
        Ok(RunPermission::Folder(AllowedFolder { folder: TrustedFolder::open(folder)?, as_root }))
    }

    /// Checks that the program may run here.
    ///
    /// # Errors
    /// Returns an error if the program may not run, with the reason and what would allow it.
    pub(crate) fn check(&self, program: &Program) -> Result<(), String> {
        match self {
            RunPermission::Anything => Ok(()),
            RunPermission::Nothing => Err(format!(
                "this agent may not run programs: start it with --allow-run DIR, where DIR has {}.toml",
                plain(&program.name)?
            )),
            RunPermission::Folder(allowed) => allowed.check(program),
        }
    }
}

impl AllowedFolder {
    /// Checks that the folder has the application file of `program` with the same text, so that a controller cannot
    /// bring its own commands. Also checks that no role runs as root, unless that is allowed.
    fn check(&self, program: &Program) -> Result<(), String> {
        let name = format!("{}.toml", plain(&program.name)?);
        if self.folder.read(&name)? != program.text {
            return Err(format!("{name} differs from the controller's file: copy one over the other"));
        }
        if self.as_root {
            return Ok(());
        }
        // A file with a mistake counts as a file without roles. The mistake is reported when the file is read to be
        // run.
        let roles =
            read(Path::new(&name), &program.text).map(|application| application.roles).unwrap_or_default();
        match roles.iter().find(|role| runs_as_root(&role.user)) {
            Some(role) => {
                Err(format!("{} of {name} runs as root: start the agent with --allow-root", role.name))
            }
            None => Ok(()),
        }
    }
}

/// Returns `name` if it consists of 1 to 64 letters, digits, '-' and '_', so that it cannot lead out of a folder.
fn plain(name: &str) -> Result<&str, String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fine) {
        return Err("an application is called by letters, digits, '-' and '_'".to_owned());
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, text: &str) -> Program {
        Program { name: name.into(), text: text.into(), ..Program::default() }
    }

    #[test]
    fn a_program_runs_only_where_its_host_allows_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), "own").unwrap();
        let in_folder = RunPermission::folder(folder.path(), false).unwrap();
        assert_eq!(in_folder.check(&program("mine", "own")), Ok(()));
        let refused = |name: &str, text: &str| in_folder.check(&program(name, text)).unwrap_err();
        assert!(refused("mine", "another").contains("differs from the controller's"));
        assert!(refused("none", "own").contains("runs only what"));
        assert!(refused("../mine", "own").contains("is called by letters"));
        assert!(
            RunPermission::Nothing.check(&program("mine", "own")).unwrap_err().contains("--allow-run DIR")
        );
        assert_eq!(RunPermission::Anything.check(&program("mine", "own")), Ok(()));
    }

    #[test]
    fn a_role_is_root_only_where_that_was_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let text = |user: &str| {
            format!(
                "title = \"a shell's\"\n[[role]]\nname = \"one\"\non = \"client\"\ncommand = [\"true\"]\nuser = \"{user}\"\n\
                 [[figure]]\nname = \"answers\"\nunit = \"answers/s\"\nmore = \"better\"\nrole = \"one\"\nline = \"([0-9]+)\"\n"
            )
        };
        let check = |user: &str, as_root| {
            std::fs::write(folder.path().join("mine.toml"), text(user)).unwrap();
            RunPermission::folder(folder.path(), as_root).unwrap().check(&program("mine", &text(user)))
        };
        assert_eq!(check("nobody", false), Ok(()));
        assert_eq!(check("root", true), Ok(()));
        let refused = check("root", false);
        if rustix::process::geteuid().is_root() {
            assert!(
                refused
                    .unwrap_err()
                    .contains("one of mine.toml runs as root: start the agent with --allow-root")
            );
        } else {
            assert_eq!(refused, Ok(()), "an agent of another user has no root to give");
        }
    }
}
