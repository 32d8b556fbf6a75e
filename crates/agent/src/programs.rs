//! Which programs a controller may have this host run.

use std::path::{Path, PathBuf};

use landspeed_record::Program;

/// The permission to run programs, given where the agent is started.
#[derive(Debug, Clone, Default)]
pub enum MayRun {
    /// None: the agent's owner said nothing.
    #[default]
    Nothing,
    /// The application files of this folder.
    Folder(PathBuf),
    /// Any: the controller is the user's own session, which could run them anyway.
    Anything,
}

impl MayRun {
    /// Whether the program may run here.
    ///
    /// # Errors
    /// Why not, and what allows it.
    pub(crate) fn check(&self, program: &Program) -> Result<(), String> {
        match self {
            MayRun::Anything => Ok(()),
            MayRun::Nothing => Err(format!(
                "this agent may not run programs: start it with --allow-run DIR, where DIR has {}.toml",
                plain(&program.name)?
            )),
            MayRun::Folder(folder) => same(folder, program),
        }
    }
}

/// Only the agent's own copy of a file counts, so that no controller brings commands.
fn same(folder: &Path, program: &Program) -> Result<(), String> {
    let path = folder.join(format!("{}.toml", plain(&program.name)?));
    let own = std::fs::read_to_string(&path).map_err(|error| {
        format!("this agent runs only what {} has: {}: {error}", folder.display(), path.display())
    })?;
    if own == program.text {
        return Ok(());
    }
    Err(format!("{} differs from the controller's file: copy one over the other", path.display()))
}

/// A name that leads out of no folder.
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
        let in_folder = MayRun::Folder(folder.path().to_owned());
        assert_eq!(in_folder.check(&program("mine", "own")), Ok(()));
        let refused = |name: &str, text: &str| in_folder.check(&program(name, text)).unwrap_err();
        assert!(refused("mine", "another").contains("differs from the controller's"));
        assert!(refused("none", "own").contains("runs only what"));
        assert!(refused("../mine", "own").contains("is called by letters"));
        assert!(MayRun::Nothing.check(&program("mine", "own")).unwrap_err().contains("--allow-run DIR"));
        assert_eq!(MayRun::Anything.check(&program("mine", "own")), Ok(()));
    }
}
