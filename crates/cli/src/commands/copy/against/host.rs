//! A host of the comparison as other programs reach it: this machine, or one that ssh reaches. Scripts for its /bin/sh
//! replace the agent.

use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use landspeed_engine::{CPU_TICK, THIS_HOST, timed};
use landspeed_lab::topology::HostSpec;
use landspeed_record::units::{Bytes, CpuNanos, quoted};

use crate::failure::{in_one_line, warn};
use crate::output::usage;

/// The line that precedes the answer of a script, because a login shell may print something first.
const MARK: &[u8] = b"\n@landspeed\n";
/// The longest duration of a script.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest time to remove or list a tree.
const LONGEST_OF_TREES: Duration = Duration::from_secs(3_600);
/// Scripts run to their end even after Ctrl-C, because they remove the copies.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Prints the process that waits for the sessions of ssh (the common parent, sshd), and the processor time of the
/// sessions that have ended.
const SESSIONS: &str = r#"
p=$$ found= ticks=0
while [ "$p" -gt 1 ] && read -r line < "/proc/$p/stat"; do
    name=${line#*\(}
    set -- ${line##*\) }
    case $name in
        sshd*) found=$p ticks=$((${14} + ${15})) ;;
        *) [ -z "$found" ] || break ;;
    esac
    p=$2
done
echo "$found $ticks"
"#;

/// The option that gives a session its own connection, so that sshd counts its time when it ends.
pub(super) const UNSHARED: &str = "ControlPath=none";

/// The prefix of a folder that is removed later, with an unguessable suffix.
const THROW_AWAY: &str = ".landspeed-against-XXXXXXXXXXXX";

pub(super) struct AgainstHost {
    /// "local", or `[user@]host`.
    word: String,
    /// Options for ssh, without -o.
    options: Vec<String>,
}

impl AgainstHost {
    /// Returns the host that a path names.
    pub(super) fn new(word: &str, options: &[String]) -> Result<AgainstHost> {
        match word.parse::<HostSpec>().map_err(usage)? {
            HostSpec::Local | HostSpec::Ssh(_) => {
                Ok(AgainstHost { word: word.to_owned(), options: options.to_vec() })
            }
            other => {
                Err(usage(format!("{other} is not reached by ssh, so other programs cannot copy there")))
            }
        }
    }

    pub(super) fn is_local(&self) -> bool {
        self.word == THIS_HOST
    }

    pub(super) fn name(&self) -> &str {
        &self.word
    }

    /// Formats a path of this host as programs accept it: HOST:PATH, with an IPv6 address in brackets.
    pub(super) fn place(&self, path: &str) -> String {
        let (user, host) = self.word.rsplit_once('@').unwrap_or(("", self.word.as_str()));
        let at = if user.is_empty() { "" } else { "@" };
        match (self.is_local(), host.contains(':')) {
            (true, _) => path.to_owned(),
            (_, true) => format!("{user}{at}[{host}]:{path}"),
            (_, false) => format!("{}:{path}", self.word),
        }
    }

    /// Returns the options of ssh and scp. A program that would ask for a password fails instead.
    pub(super) fn ssh_options(&self) -> Vec<String> {
        let given = self.options.iter().map(String::as_str);
        let all = given.chain(["BatchMode=yes", "ConnectTimeout=15", UNSHARED]);
        all.flat_map(|option| ["-o".to_owned(), option.to_owned()]).collect()
    }

    /// Returns the folder's path without symbolic links.
    pub(super) fn resolved(&self, folder: &str) -> Result<String> {
        // The script must not run "cd -" or use CDPATH.
        let folder = if folder.starts_with('/') { folder.to_owned() } else { format!("./{folder}") };
        let path = self.ask(&format!("cd -P -- {} && pwd -P", quoted(&folder)));
        let path = path.with_context(|| format!("look at the folder {}", self.place(&folder)))?;
        ensure!(path.starts_with('/'), "{}: not a path", self.place(&path));
        if quoted(&path) != path {
            return Err(usage(format!(
                "{path}: --against takes paths of letters, digits and / . _ - + = : , @ % alone, because programs give them to a \
                 shell: name it by a link"
            )));
        }
        Ok(path)
    }

    /// Returns the free space for a user in a folder.
    pub(super) fn room(&self, folder: &str) -> Result<Bytes> {
        let line = self.ask(&format!("df -P -k {folder} | tail -n 1"))?;
        // The available blocks precede the share in use (POSIX.1-2024, df).
        let words: Vec<&str> = line.split_whitespace().collect();
        let free =
            words.windows(2).find(|two| two[1].ends_with('%')).and_then(|two| two[0].parse::<u64>().ok());
        let free = free.with_context(|| format!("{}: df prints no room: {line}", self.word))?;
        Ok(Bytes(free.saturating_mul(1024)))
    }

    /// Returns the process that waits for the sessions of ssh, and the processor time of the sessions that have ended;
    /// `None` if it is not found.
    pub(super) fn sessions(&self) -> Option<(String, CpuNanos)> {
        let said = self.ask(SESSIONS).ok()?;
        let (process, ticks) = said.split_once(' ').filter(|(process, _)| !process.is_empty())?;
        Some((process.to_owned(), CpuNanos(ticks.parse::<u64>().ok()?.saturating_mul(CPU_TICK.0))))
    }

    /// Returns the regular files below a folder, with their lengths.
    pub(super) fn files(&self, folder: &str) -> Result<Vec<(u64, Vec<u8>)>> {
        let script = format!("cd -P -- {folder} && find . -type f -printf '%s %P\\0'");
        let said = self.output(&script, LONGEST_OF_TREES)?;
        let file = |line: &[u8]| {
            let at = line.iter().position(|byte| *byte == b' ')?;
            Some((std::str::from_utf8(&line[..at]).ok()?.parse::<u64>().ok()?, line[at + 1..].to_vec()))
        };
        // If there are very many names, the last one may be cut off.
        let whole = said.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        Ok(said[..whole].split(|byte| *byte == 0).filter_map(file).collect())
    }

    /// Runs a script, and returns the line that it prints.
    fn ask(&self, script: &str) -> Result<String> {
        let said = self.output(script, LONGEST)?;
        let said = String::from_utf8(said).context("what a script prints is no text")?;
        Ok(said.strip_suffix('\n').unwrap_or(&said).to_owned())
    }

    /// Runs a script with this host's /bin/sh, and returns its output.
    fn output(&self, script: &str, limit: Duration) -> Result<Vec<u8>> {
        let mut stdin = tempfile::tempfile()?;
        write!(stdin, "printf '\\n@landspeed\\n'\n{script}\n")?;
        stdin.rewind()?;
        let mut shell = self.shell();
        shell.stdin(stdin).process_group(0);
        let done = timed(&mut shell, limit, &NEVER).and_then(|done| done.succeeded(None));
        let said = done.with_context(|| self.word.clone())?.printed;
        let at = said.windows(MARK.len()).position(|bytes| bytes == MARK);
        let at = at.with_context(|| format!("{}: its shell does not answer", self.word))?;
        Ok(said[at + MARK.len()..].to_vec())
    }

    fn shell(&self) -> Command {
        if self.is_local() {
            return Command::new("/bin/sh");
        }
        let mut ssh = Command::new("ssh");
        ssh.args(self.ssh_options()).args([
            "-T",
            "-x",
            "-a",
            "-oClearAllForwardings=yes",
            "-oRemoteCommand=none",
            // Removing a tree may take an hour, but the loss of a host must show earlier.
            "-oServerAliveInterval=15",
        ]);
        ssh.args(["--", &self.word, "exec /bin/sh"]);
        ssh
    }
}

/// A folder that is removed with its content when this is dropped.
pub(super) struct ThrowAway<'h> {
    host: &'h AgainstHost,
    path: String,
}

impl<'h> ThrowAway<'h> {
    /// Creates the folder beneath another one, whose path is resolved. Its name cannot be guessed, and no other user
    /// can enter it.
    pub(super) fn make(host: &'h AgainstHost, above: &str) -> Result<ThrowAway<'h>> {
        let above = above.trim_end_matches('/');
        let path = host.ask(&format!("mktemp -d {above}/{THROW_AWAY}"))?;
        let prefix = format!("{above}/{}", THROW_AWAY.trim_end_matches('X'));
        let is_ours = path
            .strip_prefix(&prefix)
            .is_some_and(|end| end.len() == 12 && quoted(end) == end && !end.contains('/'));
        ensure!(is_ours, "{}: mktemp made another folder than asked for", host.place(&path));
        Ok(ThrowAway { host, path })
    }

    /// Returns the path of the entry with this name in the folder.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Replaces the entry of this name by an empty folder, and waits for the disk.
    pub(super) fn renew(&self, name: &str) -> Result<()> {
        let path = self.path_of(name);
        self.remove(&path, &format!("mkdir {path} && {{ sync -f {path} 2> /dev/null || sync; }}"))
    }

    /// Removes a path, and then runs a script. Tries again if a program that was ended still writes, or if the copy has
    /// a folder that its user may not write. Files keep their modes, because they may be hard links to the source's
    /// files.
    fn remove(&self, path: &str, then: &str) -> Result<()> {
        let open = format!("find {path} -type d ! -perm -700 -exec chmod u+rwx {{}} \\;");
        let script = format!(
            "n=0; until rm -rf -- {path}; do n=$((n + 1)); [ $n -lt 30 ] || exit 1; {open}; sleep 1; done; {then}"
        );
        self.host.output(&script, LONGEST_OF_TREES).map(drop)
    }
}

impl Drop for ThrowAway<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.remove(&self.path, "true") {
            let place = self.host.place(&self.path);
            // The other folder is removed next, so this must neither wait for a reader nor panic.
            warn(&format!("{place} is left, remove it: {}", in_one_line(&error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(word: &str) -> AgainstHost {
        AgainstHost::new(word, &["Port=2222".to_owned()]).unwrap()
    }

    #[test]
    fn a_place_is_written_as_programs_take_it() {
        for (word, place) in [
            ("local", "/a"),
            ("dtn2", "dtn2:/a"),
            ("me@dtn2", "me@dtn2:/a"),
            ("me@fd00::1", "me@[fd00::1]:/a"),
            ("fd00::1", "[fd00::1]:/a"),
        ] {
            assert_eq!(host(word).place("/a"), place);
        }
        assert_eq!(host("dtn2").ssh_options()[..2], ["-o", "Port=2222"]);
        assert!(
            AgainstHost::new("netns:a", &[]).is_err() && AgainstHost::new("-oProxyCommand=x", &[]).is_err()
        );
    }

    #[test]
    fn a_folder_that_is_thrown_away_leaves_what_is_beside_it() {
        let (folder, here) = (tempfile::tempdir().unwrap(), host("local"));
        let above = here.resolved(folder.path().to_str().unwrap()).unwrap();
        std::fs::write(folder.path().join("kept"), "kept").unwrap();
        let thrown = ThrowAway::make(&here, &above).unwrap();
        assert_ne!(thrown.path, ThrowAway::make(&here, &above).unwrap().path);
        thrown.renew("copy").unwrap();
        std::fs::write(thrown.path_of("copy/a file"), "abc").unwrap();
        assert_eq!(here.files(&thrown.path).unwrap(), vec![(3_u64, b"copy/a file".to_vec())]);
        thrown.renew("copy").unwrap();
        assert!(here.files(&thrown.path).unwrap().is_empty());
        assert!(here.room(&above).unwrap() > Bytes(0));
        drop(thrown);
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().flatten().map(|one| one.file_name()).collect();
        assert_eq!(left, ["kept"]);
        assert!(ThrowAway::make(&here, "/no/such/folder").is_err() && here.resolved("/etc/passwd").is_err());
    }

    #[test]
    fn a_path_that_a_shell_would_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        for odd in ["a; touch b", "a ", "a\n", " a"] {
            let odd = folder.path().join(odd);
            std::fs::create_dir(&odd).unwrap();
            let error = host("local").resolved(odd.to_str().unwrap()).unwrap_err();
            assert!(error.to_string().contains("name it by a link"), "{error}");
        }
        // The name means the folder "-", and not the previous directory.
        assert!(host("local").resolved("-").is_err());
    }
}
