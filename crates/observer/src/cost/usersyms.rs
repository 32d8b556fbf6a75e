//! Finds the names of the functions at user addresses, in the symbol tables of the programs.
//!
//! Only the stacks for flame graphs need these names: the class of a sample in user code is always "application".

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use rustix::fs::{FileType, Mode, OFlags};

use super::classify::NOWHERE;
use super::tally::CallStack;
use crate::procfile;

/// The largest number of processes whose symbols are read. The processes with the most addresses are preferred. The
/// limit saves time: reading the symbols of a browser or a database takes seconds, and a busy machine has hundreds of
/// processes with one sample each.
const MOST_PROCESSES: usize = 8;

/// The names of the user functions in a window's stacks.
#[derive(Debug, Default)]
pub(super) struct UserSymbols {
    names: HashMap<(i32, u64), String>,
    unnamed: Vec<String>,
}

impl UserSymbols {
    /// Looks up all user addresses of `stacks`. Addresses of processes that no longer exist get no names.
    pub(super) fn of<'a>(stacks: impl Iterator<Item = &'a CallStack>) -> Self {
        let mut addresses: BTreeMap<i32, BTreeSet<u64>> = BTreeMap::new();
        for stack in stacks.filter(|stack| !stack.user.is_empty()) {
            addresses.entry(stack.pid).or_default().extend(lookups(stack));
        }
        let mut processes: Vec<_> = addresses.into_iter().collect();
        processes.sort_by_key(|(_, addresses)| std::cmp::Reverse(addresses.len()));
        let mut user_symbols = UserSymbols::default();
        let symbolizer = Symbolizer::new();
        for (rank, (pid, addresses)) in processes.into_iter().enumerate() {
            let modules = MappedFiles::of(pid);
            let addresses: Vec<u64> = addresses.into_iter().collect();
            let names = if rank < MOST_PROCESSES {
                modules.names(&symbolizer, pid, &addresses)
            } else {
                BTreeMap::new()
            };
            user_symbols.add(pid, &modules, &addresses, names);
        }
        user_symbols
    }

    fn add(&mut self, pid: i32, modules: &MappedFiles, addresses: &[u64], mut names: BTreeMap<u64, String>) {
        if names.is_empty() {
            self.unnamed.push(procfile::word(format!("/proc/{pid}/comm")).unwrap_or_else(|| pid.to_string()));
        }
        for address in addresses {
            let name = names.remove(address).unwrap_or_else(|| modules.of_address(*address));
            // ";" separates frames in a folded stack, but names with Rust's array types contain it too.
            self.names.insert((pid, *address), name.replace(';', ","));
        }
    }

    /// Returns the names of a stack's user frames, innermost first.
    pub(super) fn names<'a>(&'a self, stack: &'a CallStack) -> impl Iterator<Item = &'a str> {
        lookups(stack).map(|address| self.names.get(&(stack.pid, address)).map_or(NOWHERE, String::as_str))
    }

    /// Returns notes on the limits of the user frames and their names, for a reader of the stacks.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "user frames are followed by frame pointers: callers of code that was built without are missing or wrong"
                .to_owned(),
        ];
        if !self.unnamed.is_empty() {
            let (some, more) = self.unnamed.split_at(self.unnamed.len().min(5));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            notes.push(format!(
                "user frames of {}{more} have no names: they ended, cannot be read, or have few samples",
                some.join(", ")
            ));
        }
        notes
    }
}

/// Returns the user addresses to look up for a stack. Subtracts one from each return address, because a return address
/// may be one byte past the end of the calling function.
fn lookups(stack: &CallStack) -> impl Iterator<Item = u64> {
    stack.user.iter().enumerate().map(|(depth, address)| address.saturating_sub(u64::from(depth > 0)))
}

/// The files that a process has mapped into its memory, by the start address of each mapping.
#[derive(Debug, Default)]
struct MappedFiles(BTreeMap<u64, MappedFile>);

/// A mapping: a range of a process's memory that contains a part of a file.
#[derive(Debug, PartialEq, Eq)]
struct MappedFile {
    end: u64,
    /// The offset in the file at which the mapping begins, in bytes.
    offset: u64,
    path: String,
}

impl MappedFiles {
    fn of(pid: i32) -> Self {
        Self::parse(&procfile::read(&format!("/proc/{pid}/maps")).unwrap_or_default())
    }

    /// Parses the text of /proc/PID/maps, with lines of the form "start-end perms offset device inode path"
    /// (proc_pid_maps(5)).
    fn parse(text: &str) -> Self {
        let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let module = |line: &str| {
            let mut columns = line.splitn(6, ' ');
            let (start, end) = columns.next()?.split_once('-')?;
            let offset = hex(columns.nth(1)?)?;
            let path = columns.nth(2)?.trim_start().to_owned();
            (!path.is_empty()).then_some((hex(start)?, MappedFile { end: hex(end)?, offset, path }))
        };
        MappedFiles(text.lines().filter_map(module).collect())
    }

    /// Returns the start address of the mapping that contains `address`, and the mapping.
    fn at(&self, address: u64) -> Option<(u64, &MappedFile)> {
        let (start, module) = self.0.range(..=address).next_back()?;
        (address < module.end).then_some((*start, module))
    }

    /// Returns the name of the file that is mapped at `address`, such as "[libc.so.6]", or [`NOWHERE`].
    fn of_address(&self, address: u64) -> String {
        let Some((_, module)) = self.at(address) else { return NOWHERE.to_owned() };
        let file = module.path.rsplit('/').next().unwrap_or(&module.path);
        format!("[{}]", file.trim_matches(['[', ']']))
    }

    /// Returns the names of the functions at `addresses`, from the symbol tables of the mapped files. Addresses without
    /// a name are left out.
    fn names(&self, symbolizer: &Symbolizer, pid: i32, addresses: &[u64]) -> BTreeMap<u64, String> {
        let mut by_module: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (address, (start, _)) in
            addresses.iter().filter_map(|address| Some((*address, self.at(*address)?)))
        {
            by_module.entry(start).or_default().push(address);
        }
        let of_module = |(start, addresses): (u64, Vec<u64>)| {
            let module = &self.0[&start];
            let file = module.open(pid, start)?;
            let offsets: Vec<u64> = addresses.iter().map(|address| address - start + module.offset).collect();
            let mut elf = Elf::new(own(file.as_raw_fd()));
            elf.debug_syms = false;
            let found = symbolizer.symbolize(&Source::Elf(elf), Input::FileOffset(&offsets)).ok()?;
            let name = |symbol: &Symbolized<'_>| symbol.as_sym().map(|symbol| symbol.name.to_string());
            let named = addresses.into_iter().zip(found.iter().map(name));
            Some(named.filter_map(|(address, name)| Some((address, name?))).collect::<Vec<_>>())
        };
        by_module.into_iter().filter_map(of_module).flatten().collect()
    }
}

impl MappedFile {
    /// Opens the mapped file through /proc/PID/map_files. This needs root, but works for deleted files and for files in
    /// other mount namespaces. If it fails, opens the file by its path.
    fn open(&self, pid: i32, start: u64) -> Option<File> {
        let linked = format!("/proc/{pid}/map_files/{start:x}-{:x}", self.end);
        regular(&linked).or_else(|| self.path.starts_with('/').then(|| regular(&self.path))?)
    }
}

/// Opens a regular file; returns `None` for any other type. Other users may control the file at `path`: opening a FIFO
/// would block, and opening a device may have side effects. So this function opens the path with O_PATH, checks the
/// type, and then opens the same file for reading.
fn regular(path: &str) -> Option<File> {
    let found: OwnedFd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let about = rustix::fs::fstat(&found).ok()?;
    let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
    is_file.then(|| File::open(own(found.as_raw_fd())).ok())?
}

/// Returns the path in /proc of the descriptor `fd` of this process.
fn own(fd: i32) -> String {
    format!("/proc/self/fd/{fd}")
}

#[cfg(test)]
mod tests {
    use super::super::tally::SampleOwner;
    use super::*;

    #[test]
    fn an_address_of_this_program_has_its_functions_name() {
        let own = i32::try_from(std::process::id()).unwrap();
        let inside = an_address_of_this_program_has_its_functions_name as fn() as usize as u64;
        let stack = CallStack {
            owner: SampleOwner::Watched,
            pid: own,
            kernel: [].into(),
            user: [inside + 1, 1].into(),
        };
        let user_symbols = UserSymbols::of([&stack].into_iter());
        let names: Vec<_> = user_symbols.names(&stack).collect();
        assert!(names[0].contains("an_address_of_this_program"), "{names:?}");
        assert_eq!(names[1], NOWHERE);
        assert_eq!(user_symbols.notes().len(), 1, "{:?}", user_symbols.notes());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("file"), "here").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(regular(&path("file")).is_some() && regular(&path("link")).is_some());
        for other in [path("fifo"), path(""), path("none"), "/dev/null".to_owned()] {
            assert!(regular(&other).is_none(), "{other}");
        }
    }

    /// A symbol map in /tmp must not be read, because another user may have written it.
    #[test]
    fn a_fifo_in_place_of_a_map_of_symbols_does_not_block() {
        let (may, how) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh private mapping, which is never unmapped.
        let code = unsafe { libc::mmap(std::ptr::null_mut(), 4096, may, how, -1, 0) };
        assert_ne!(code, libc::MAP_FAILED);
        let pid = i32::try_from(std::process::id()).unwrap();
        let map = format!("/tmp/perf-{pid}.map");
        rustix::fs::mknodat(rustix::fs::CWD, &map, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (done, ended) = std::sync::mpsc::channel();
        let address = code as u64 + 16;
        std::thread::spawn(move || {
            let stack =
                CallStack { owner: SampleOwner::Watched, pid, kernel: [].into(), user: [address].into() };
            let names: Vec<String> =
                UserSymbols::of([&stack].into_iter()).names(&stack).map(str::to_owned).collect();
            let _ = done.send(names);
        });
        let named = ended.recv_timeout(std::time::Duration::from_secs(20));
        std::fs::remove_file(&map).unwrap();
        assert_eq!(named.expect("it waits for somebody to write the map"), [NOWHERE]);
    }

    #[test]
    fn a_process_that_is_gone_is_reported() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        let stack = CallStack { owner: SampleOwner::Watched, pid, kernel: [].into(), user: [4096].into() };
        let user_symbols = UserSymbols::of([&stack].into_iter());
        assert_eq!(user_symbols.names(&stack).collect::<Vec<_>>(), [NOWHERE]);
        assert!(user_symbols.notes()[1].contains(&pid.to_string()), "{:?}", user_symbols.notes());
    }

    #[test]
    fn code_without_symbols_is_called_by_its_file() {
        let modules = MappedFiles::parse(
            "7f00-8f00 r-xp 00000000 fd:00 123 /usr/lib/libx.so.6\n9000-a000 rw-p 0 0 0\nb000-c000 r-xp 0 0 0 [vdso]\nx\n",
        );
        assert_eq!(modules.of_address(0x7f10), "[libx.so.6]");
        assert_eq!(modules.of_address(0xb000), "[vdso]");
        assert_eq!((modules.of_address(0x8f00), modules.of_address(1)), (NOWHERE.into(), NOWHERE.into()));
    }
}
