//! Two hosts of a comparison: network namespaces with a pair of veth or an emulated link between them, and an sshd in the second one.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landspeed_analysis::wan::unfit;
use landspeed_lab::topology::{HostSet, Lab};
use landspeed_record::units::Bytes;
use rustix::fs::statvfs;

/// The address of the second host, unless a lab gives it one.
const ADDRESS: &str = "10.97.0.2";
/// The folder of what `landspeed copy` keeps at a target for itself.
const OWN_FOLDER: &str = ".landspeed-copy";
/// A firewall that lets in only logins, replies, and what a host sends to itself.
const FIREWALL: &str = "table inet f { chain c { type filter hook input priority 0; policy drop; iif lo accept; \
    ct state established,related accept; tcp dport 22 accept; }; }";

/// Ends what still runs there when dropped, and removes the namespaces and the folder.
pub(super) struct Site {
    folder: tempfile::TempDir,
    landspeed: PathBuf,
    /// The names of the namespaces.
    names: [String; 2],
    /// The address of the second host.
    address: String,
    /// The lab that the namespaces belong to, if a link between them is emulated.
    lab: Option<Lab>,
    /// The folder in which programs are looked for before those of PATH.
    programs: Option<PathBuf>,
}

impl Site {
    /// Joins the hosts by a pair of veth, which is as fast as this machine.
    pub(super) fn new(above: &Path, landspeed: &Path) -> Result<Site> {
        let names = ["a", "b"].map(|end| format!("cb{}{end}", std::process::id()));
        let site = Site::unfurnished(above, landspeed, names)?;
        let [a, b] = &site.names;
        shell(&format!(
            "set -e
            ip netns add {a}; ip netns add {b}
            ip link add d0 netns {a} type veth peer name d0 netns {b}
            ip -n {a} addr add 10.97.0.1/24 dev d0; ip -n {b} addr add {ADDRESS}/24 dev d0
            for one in {a} {b}; do ip -n $one link set lo up; ip -n $one link set d0 up; done"
        ))?;
        site.furnish()?;
        Ok(site)
    }

    /// Joins the hosts by a link that landspeed emulates, such as lab:wan:rate=1G,rtt=40ms.
    pub(super) fn over(above: &Path, landspeed: &Path, link: &str) -> Result<Site> {
        let lab = Lab::open(link)?;
        let [a, b] = lab.hosts() else { bail!("{link} is no link between two hosts") };
        let (names, address) = ([a.netns.clone(), b.netns.clone()], b.v4.to_string());
        // The lab is the site's before anything can fail, so that the site leaves the namespaces to it.
        let mut site = Site::unfurnished(above, landspeed, names)?;
        (site.address, site.lab) = (address, Some(lab));
        site.furnish()?;
        Ok(site)
    }

    fn unfurnished(above: &Path, landspeed: &Path, names: [String; 2]) -> Result<Site> {
        // Its name has no capital letters, which are words of commands.
        let name = format!("copy-bench.{}", std::process::id());
        let folder = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(above)?;
        let (landspeed, address) = (landspeed.to_path_buf(), ADDRESS.to_owned());
        Ok(Site { folder, landspeed, names, address, lab: None, programs: None })
    }

    /// Makes the folders, keys and configurations.
    fn furnish(&self) -> Result<()> {
        let (folder, address) = (self.folder.path().display(), &self.address);
        shell(&format!(
            "set -e
            mkdir -p /run/sshd {folder}/from {folder}/to
            ssh-keygen -q -t ed25519 -N '' -f {folder}/host
            ssh-keygen -q -t ed25519 -N '' -f {folder}/user
            cp {folder}/user.pub {folder}/authorized
            echo \"{address} $(cat {folder}/host.pub)\" > {folder}/known"
        ))?;
        self.write_configurations()
    }

    /// Writes the configurations of sshd, of a program with an ssh of its own, and of rsync's daemon.
    fn write_configurations(&self) -> Result<()> {
        let (folder, address) = (self.folder.path().display(), &self.address);
        let sshd = format!(
            "ListenAddress {address}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nMaxStartups 100\nSubsystem sftp internal-sftp\n\
             SetEnv {}\n",
            self.state().map(|(name, folder)| format!("{name}={folder}")).join(" ")
        );
        let ssh = format!("Host *\n{}\n", self.ssh_options().join("\n").replace('=', " "));
        let rsyncd = format!(
            "use chroot = no\nuid = root\ngid = root\nreverse lookup = no\nlog file = /dev/null\n\
             [to]\npath = {folder}/to\nread only = no\n"
        );
        for (name, text) in [("sshd_config", sshd), ("ssh_config", ssh), ("rsyncd_config", rsyncd)] {
            fs::write(self.folder.path().join(name), text)?;
        }
        Ok(())
    }

    /// Looks for programs in this folder first.
    pub(super) fn with_programs(mut self, programs: Option<PathBuf>) -> Site {
        self.programs = programs;
        self
    }

    /// Writes content that does not compress: one file, or `files` small ones of 4 KiB. Returns the bytes.
    pub(super) fn fill(&self, mib: u64, files: u64) -> Result<u64> {
        if files > 0 {
            return self.fill_files(files, 4096);
        }
        let mut random = fs::File::open("/dev/urandom")?.take(mib << 20);
        let mut file = fs::File::create(self.source().join("large"))?;
        Ok(std::io::copy(&mut random, &mut file)?)
    }

    /// Writes files of `length` bytes that do not compress. Returns the bytes of all.
    pub(super) fn fill_files(&self, files: u64, length: usize) -> Result<u64> {
        let mut content = vec![0_u8; length];
        fs::File::open("/dev/urandom")?.read_exact(&mut content)?;
        for number in 0..files {
            content[..8].copy_from_slice(&number.to_le_bytes());
            fs::File::create(self.source().join(number.to_string()))?.write_all(&content)?;
        }
        Ok(files * length as u64)
    }

    /// Returns true if this program is installed.
    pub(super) fn has(&self, program: &str) -> bool {
        let mut look = Command::new("bash");
        look.args(["-c", &format!("command -v {program} > /dev/null")]).env("PATH", self.path());
        program == "landspeed" || look.status().is_ok_and(|status| status.success())
    }

    /// Returns PATH with the folder of further programs before it.
    fn path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.programs.iter().cloned().chain(std::env::split_paths(&path));
        std::env::join_paths(folders).unwrap_or_default()
    }

    pub(super) fn empty_target(&self) -> Result<()> {
        let to = self.folder.path().join("to");
        fs::remove_dir_all(&to)?;
        Ok(fs::create_dir(&to)?)
    }

    /// Writes as many bytes into the target's folder as a copy does, and removes them. A virtual machine may give its free memory
    /// back to its host (free page reporting). The next program that takes such memory pays for it, whatever it copies.
    pub(super) fn use_memory(&self, bytes: u64) -> Result<()> {
        let file = self.target().join("memory");
        io::copy(&mut io::repeat(0).take(bytes), &mut fs::File::create(&file)?)?;
        Ok(fs::remove_file(&file)?)
    }

    pub(super) fn start_sshd(&self) -> Result<Sshd> {
        self.start(&format!("/usr/sbin/sshd -D -f {}/sshd_config", self.folder.path().display()), 22)
    }

    /// Starts rsync's own daemon, whose module `to` is the target's folder.
    pub(super) fn start_rsyncd(&self) -> Result<Sshd> {
        let (folder, address) = (self.folder.path().display(), &self.address);
        let daemon =
            format!("rsync --daemon --no-detach --config={folder}/rsyncd_config --address={address}");
        self.start(&daemon, 873)
    }

    /// Starts a server on the second host, and waits until it listens at this port.
    fn start(&self, command: &str, port: u16) -> Result<Sshd> {
        let mut server = Command::new("ip");
        server.args(["netns", "exec", &self.names[1]]).args(command.split(' '));
        let server = server.stdin(Stdio::null()).stderr(Stdio::null()).env("PATH", self.path()).spawn();
        let server = Sshd(server.with_context(|| command.to_owned())?);
        let end = Instant::now() + Duration::from_secs(10);
        let listens = format!("ip netns exec {} ss -Hltn 'sport = :{port}' | grep -q .", self.names[1]);
        while shell(&listens).is_err() {
            ensure!(Instant::now() < end, "{command}: does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Returns a command on the first host, with the words of [`super::rivals::Rival`] filled in.
    pub(super) fn command(&self, command: &str) -> Command {
        let mut shell = Command::new("ip");
        let command = self.filled_in(command);
        shell.args(["netns", "exec", &self.names[0], "bash", "-o", "pipefail", "-c", &command]);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).env("PATH", self.path());
        shell.envs(self.state());
        shell
    }

    /// Returns the variables that keep what landspeed must restore in this site, and not among the journals of this
    /// machine.
    fn state(&self) -> [(&'static str, String); 2] {
        let folder = |name: &str| self.folder.path().join(name).display().to_string();
        [("LANDSPEED_STATE_DIR", folder("state")), ("LANDSPEED_RUN_DIR", folder("run"))]
    }

    /// Returns a command line with the words of [`super::rivals::Rival`] filled in. RECORDS is a folder for landspeed's
    /// records.
    pub(super) fn filled_in(&self, command: &str) -> String {
        let folder = self.folder.path().display().to_string();
        let options = self.ssh_options();
        let each =
            |option: &str| options.iter().map(|one| format!("{option} {one}")).collect::<Vec<_>>().join(" ");
        let landspeed = self.landspeed.display().to_string();
        command
            .replace("LOGIN_OPTIONS", &each("--ssh-option"))
            .replace("SSH_OPTIONS", &format!("--remote-path {landspeed} {}", each("--ssh-option")))
            .replace("SCP_OPTIONS", &each("-o"))
            .replace("SSH_CONFIG", &format!("{folder}/ssh_config"))
            .replace("SSH", &format!("ssh {}", each("-o")))
            .replace("landspeed copy", &format!("{landspeed} copy"))
            .replace("landspeed measure", &format!("{landspeed} measure"))
            .replace("FROM", &format!("{folder}/from"))
            .replace("TO", &format!("{folder}/to"))
            .replace("HOST", &format!("root@{}", self.address))
            .replace("ADDRESS", &self.address)
            .replace("RECORDS", &self.records().display().to_string())
    }

    /// Returns the options by which ssh logs in to the second host.
    fn ssh_options(&self) -> [String; 5] {
        let folder = self.folder.path().display();
        [
            format!("IdentityFile={folder}/user"),
            format!("UserKnownHostsFile={folder}/known"),
            "IdentitiesOnly=yes".to_owned(),
            "StrictHostKeyChecking=no".to_owned(),
            "LogLevel=ERROR".to_owned(),
        ]
    }

    /// Returns the name of a host's namespace.
    pub(super) fn namespace(&self, end: usize) -> &str {
        &self.names[end]
    }

    /// Returns the source's folder.
    pub(super) fn source(&self) -> PathBuf {
        self.folder.path().join("from")
    }

    /// Returns the folder of landspeed's records, which a command makes that keeps one there.
    pub(super) fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    /// Returns the target's folder.
    pub(super) fn target(&self) -> PathBuf {
        self.folder.path().join("to")
    }

    /// Returns the name of a file at the target that is not as at the source; `None` if each that is there is whole.
    pub(super) fn differing(&self) -> Result<Option<PathBuf>> {
        differing(&self.source(), &self.target())
    }

    /// Returns the processes of landspeed on a host whose first argument is this word.
    pub(super) fn pids(&self, end: usize, word: &str) -> Result<Vec<u32>> {
        let pids = printed_by(&format!("ip netns pids {}", self.names[end]))?;
        let is = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|program| program.ends_with(b"landspeed"))
                && words.next() == Some(word.as_bytes())
        };
        Ok(pids.lines().filter_map(|pid| pid.trim().parse::<u32>().ok()).filter(is).collect())
    }

    /// Kills the processes of a host whose command line matches the pattern. There may be none.
    pub(super) fn kill(&self, end: usize, pattern: &str) -> Result<()> {
        let name = &self.names[end];
        shell(&format!(
            "for one in $(ip netns pids {name}); do \
             tr '\\0' ' ' < /proc/$one/cmdline 2> /dev/null | grep -q '{pattern}' && kill -9 $one; done; true"
        ))
    }

    /// Restores what killed processes have left changed on a host, as `landspeed undo` does.
    pub(super) fn undo(&self, end: usize) -> Result<()> {
        let mut undo = Command::new("ip");
        undo.args(["netns", "exec", &self.names[end]]).arg(&self.landspeed).args(["undo", "--here"]);
        undo.envs(self.state()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Its exit status also speaks of what others have changed.
        undo.status()?;
        Ok(())
    }

    /// Sets the link between the hosts up or down.
    pub(super) fn link(&self, to: &str) -> Result<()> {
        shell(&format!("ip -n {} link set d0 {to}", self.names[0]))
    }

    /// Runs `work` while neither host lets the other in, except for logins.
    pub(super) fn shut<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let each = |rules: &str| {
            self.names.iter().try_for_each(|host| shell(&format!("ip netns exec {host} nft {rules}")))
        };
        let done = each(&format!("'{FIREWALL}'")).and_then(|()| work());
        each("flush ruleset")?;
        done
    }

    /// Begins a run over the emulated link.
    pub(super) fn mark(&self) {
        if let Some(link) = self.lab.as_ref().and_then(|lab| lab.link()) {
            link.mark();
        }
    }

    /// Returns why the emulated link was another path than it was to be since the mark; empty if it was that one.
    pub(super) fn unfit(&self) -> Vec<String> {
        let link = self.lab.as_ref().and_then(|lab| lab.link());
        link.map(|link| unfit(&link.since_mark().0)).unwrap_or_default()
    }

    /// Returns true if an agent, or another process of landspeed, runs on a host.
    pub(super) fn has_agent(&self, end: usize) -> bool {
        let name = &self.names[end];
        let runs = format!(
            "for one in $(ip netns pids {name}); do \
             tr '\\0' ' ' < /proc/$one/cmdline 2> /dev/null; echo; done | grep -q '[l]andspeed'"
        );
        shell(&runs).is_ok()
    }

    /// Waits until no agent runs on either host.
    pub(super) fn wait_for_agents(&self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        while [0, 1].into_iter().any(|host| self.has_agent(host)) {
            ensure!(Instant::now() < end, "an agent still runs {within:?} after its copy was ended");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Returns an error if what has arrived is not the source.
    pub(super) fn compare(&self) -> Result<()> {
        let folder = self.folder.path().display();
        shell(&format!("diff -r {folder}/from {folder}/to > /dev/null"))
            .context("the copy differs from its source")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A lab removes its own.
        if self.lab.is_some() {
            return;
        }
        for (end, name) in self.names.iter().enumerate() {
            // What a turn that was stopped has left could write into the folder while it is removed.
            let _ = self.kill(end, ".");
            let _ = shell(&format!("ip netns del {name}"));
        }
    }
}

/// A running sshd, or another server.
pub(super) struct Sshd(Child);

impl Sshd {
    /// Ends it, so that the processor time of its sessions counts as that of this program's children.
    pub(super) fn end(mut self) -> Result<()> {
        // Its sessions have ended with their clients, or are about to.
        thread::sleep(Duration::from_millis(200));
        shell(&format!("kill -TERM {}", self.0.id()))?;
        wait(&mut self.0, Duration::from_secs(10)).map(drop)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the path of the only record in a folder.
pub(super) fn record_in(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let mut records = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let record = records.next().context("the copy has kept no record")?;
    ensure!(records.next().is_none(), "{} has several records", folder.display());
    Ok(record)
}

/// Returns the name of a file of a copy that is not as at its source. What the copy keeps for itself has no final name.
fn differing(source: &Path, copy: &Path) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(copy)? {
        let entry = entry?;
        let (own, there, kind) = (source.join(entry.file_name()), entry.path(), entry.file_type()?);
        let found = match () {
            () if entry.file_name() == OWN_FOLDER => None,
            () if kind.is_dir() => differing(&own, &there)?,
            // A name that the source does not have is of no whole file either.
            () if kind.is_file() && fs::read(&own).ok() != Some(fs::read(&there)?) => Some(there),
            () => None,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns an error if a folder has fewer free bytes than these.
pub(super) fn ensure_free(folder: &Path, needed: Bytes) -> Result<()> {
    let room = statvfs(folder)?;
    let (at, free) = (folder.display(), Bytes(room.f_bavail.saturating_mul(room.f_frsize)));
    ensure!(free >= needed, "{at} has {free}, and {needed} are needed: --folder names another one");
    Ok(())
}

/// Returns what a script prints.
pub(super) fn printed_by(script: &str) -> Result<String> {
    let output = Command::new("bash").args(["-c", script]).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{script}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn shell(script: &str) -> Result<()> {
    let status = Command::new("bash").args(["-c", script]).stdin(Stdio::null()).status()?;
    ensure!(status.success(), "{script}: {status}");
    Ok(())
}

/// Waits for the end of a process, and kills it if it takes longer than this. A copy that outlasts the cut of its link
/// ends by itself.
pub(super) fn wait(process: &mut Child, within: Duration) -> Result<ExitStatus> {
    let end = Instant::now() + within;
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > end {
            process.kill()?;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_and_a_name_of_no_source_differ_and_what_the_copy_keeps_for_itself_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        for (above, below) in [(&from, "deep"), (&to, "deep"), (&to, OWN_FOLDER)] {
            fs::create_dir_all(above.join(below)).unwrap();
        }
        fs::write(from.join("deep/file"), "whole").unwrap();
        fs::write(to.join(OWN_FOLDER).join("1.part"), "who").unwrap();
        assert_eq!(differing(&from, &to).unwrap(), None);
        fs::write(to.join("deep/file"), "who").unwrap();
        assert_eq!(differing(&from, &to).unwrap(), Some(to.join("deep/file")));
        fs::rename(to.join("deep/file"), to.join("deep/other")).unwrap();
        assert_eq!(differing(&from, &to).unwrap(), Some(to.join("deep/other")));
        fs::rename(to.join("deep/other"), to.join("deep/file")).unwrap();
        fs::write(to.join("deep/file"), "whole").unwrap();
        assert_eq!(differing(&from, &to).unwrap(), None);
    }
}
