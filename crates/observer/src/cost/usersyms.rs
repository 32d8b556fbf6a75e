//! Names for user addresses, from the programs' own symbol tables.
//!
//! Only flame graphs need them: whatever user code is called, its class is application.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use blazesym::symbolize::source::{Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};

use super::classify::NOWHERE;
use super::tally::Stack;
use crate::procfile;

/// Processes whose programs are opened, those with most addresses first. The symbols of a browser or of a
/// database take seconds to read; on a busy machine there are hundreds of processes with one sample each.
const MOST_PROCESSES: usize = 8;

/// Names of the user functions of a window's stacks.
#[derive(Debug, Default)]
pub(super) struct Programs {
    names: HashMap<(i32, u64), String>,
    unnamed: Vec<String>,
}

impl Programs {
    /// Looks up all user addresses of `stacks`, in processes that are still there.
    pub(super) fn of<'a>(stacks: impl Iterator<Item = &'a Stack>) -> Self {
        let mut addresses: BTreeMap<i32, BTreeSet<u64>> = BTreeMap::new();
        for stack in stacks.filter(|stack| !stack.user.is_empty()) {
            addresses.entry(stack.pid).or_default().extend(lookups(stack));
        }
        let mut processes: Vec<_> = addresses.into_iter().collect();
        processes.sort_by_key(|(_, addresses)| std::cmp::Reverse(addresses.len()));
        let mut programs = Programs::default();
        let symbolizer = Symbolizer::new();
        for (rank, (pid, addresses)) in processes.into_iter().enumerate() {
            let modules = Modules::of(pid);
            let addresses: Vec<u64> = addresses.into_iter().collect();
            let names = if rank < MOST_PROCESSES { named(&symbolizer, pid, &addresses) } else { Vec::new() };
            programs.add(pid, &modules, &addresses, &names);
        }
        programs
    }

    fn add(&mut self, pid: i32, modules: &Modules, addresses: &[u64], names: &[Option<String>]) {
        if names.is_empty() {
            self.unnamed.push(procfile::word(format!("/proc/{pid}/comm")).unwrap_or_else(|| pid.to_string()));
        }
        for (at, address) in addresses.iter().enumerate() {
            let name = names.get(at).cloned().flatten().unwrap_or_else(|| modules.of_address(*address));
            // ";" joins frames; Rust's array types have it too.
            self.names.insert((pid, *address), name.replace(';', ","));
        }
    }

    /// Names of a stack's user frames, innermost first.
    pub(super) fn names<'a>(&'a self, stack: &'a Stack) -> impl Iterator<Item = &'a str> {
        lookups(stack).map(|address| self.names.get(&(stack.pid, address)).map_or(NOWHERE, String::as_str))
    }

    /// What a reader of the stacks must know.
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

/// Addresses to look up: a return address may lie one past the function that called.
fn lookups(stack: &Stack) -> impl Iterator<Item = u64> {
    stack.user.iter().enumerate().map(|(depth, address)| address.saturating_sub(u64::from(depth > 0)))
}

/// Names in the order of `addresses`; empty where the process cannot be looked into.
fn named(symbolizer: &Symbolizer, pid: i32, addresses: &[u64]) -> Vec<Option<String>> {
    let Ok(pid) = u32::try_from(pid) else { return Vec::new() };
    // By the kernel's own links to the files (root only), which hold for deleted programs and in other mount
    // namespaces too; else by their paths.
    let found = [true, false].into_iter().find_map(|map_files| {
        let mut process = Process::new(pid.into());
        (process.debug_syms, process.map_files) = (false, map_files);
        symbolizer.symbolize(&Source::Process(process), Input::AbsAddr(addresses)).ok()
    });
    let name = |symbol: &Symbolized<'_>| symbol.as_sym().map(|symbol| symbol.name.to_string());
    found.iter().flatten().map(name).collect()
}

/// Files mapped by a process.
#[derive(Debug, Default)]
struct Modules {
    mapped: BTreeMap<u64, (u64, String)>,
}

impl Modules {
    fn of(pid: i32) -> Self {
        Self::parse(&procfile::read(&format!("/proc/{pid}/maps")).unwrap_or_default())
    }

    /// Lines are "start-end perms offset device inode path" (proc_pid_maps(5)).
    fn parse(text: &str) -> Self {
        let module = |line: &str| {
            let mut columns = line.split_ascii_whitespace();
            let (start, end) = columns.next()?.split_once('-')?;
            let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
            let path = columns.nth(4)?;
            let file = path.rsplit('/').next().unwrap_or(path).trim_matches(['[', ']']);
            Some((start, (end, file.to_owned())))
        };
        Modules { mapped: text.lines().filter_map(module).collect() }
    }

    /// "[libc.so.6]", or that nothing is known.
    fn of_address(&self, address: u64) -> String {
        match self.mapped.range(..=address).next_back() {
            Some((_, (end, file))) if address < *end => format!("[{file}]"),
            _ => NOWHERE.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Whose;
    use super::*;

    #[test]
    fn an_address_of_this_program_has_its_functions_name() {
        let own = i32::try_from(std::process::id()).unwrap();
        let inside = an_address_of_this_program_has_its_functions_name as fn() as usize as u64;
        let stack =
            Stack { whose: Whose::Watched, pid: own, kernel: [].into(), user: [inside + 1, 1].into() };
        let programs = Programs::of([&stack].into_iter());
        let names: Vec<_> = programs.names(&stack).collect();
        assert!(names[0].contains("an_address_of_this_program"), "{names:?}");
        assert_eq!(names[1], NOWHERE);
        assert_eq!(programs.notes().len(), 1, "{:?}", programs.notes());
    }

    #[test]
    fn a_process_that_is_gone_is_told() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        let stack = Stack { whose: Whose::Watched, pid, kernel: [].into(), user: [4096].into() };
        let programs = Programs::of([&stack].into_iter());
        assert_eq!(programs.names(&stack).collect::<Vec<_>>(), [NOWHERE]);
        assert!(programs.notes()[1].contains(&pid.to_string()), "{:?}", programs.notes());
    }

    #[test]
    fn code_without_symbols_is_called_by_its_file() {
        let modules = Modules::parse(
            "7f00-8f00 r-xp 00000000 fd:00 123 /usr/lib/libx.so.6\n9000-a000 rw-p 0 0 0\nb000-c000 r-xp 0 0 0 [vdso]\nx\n",
        );
        assert_eq!(modules.of_address(0x7f10), "[libx.so.6]");
        assert_eq!(modules.of_address(0xb000), "[vdso]");
        assert_eq!((modules.of_address(0x8f00), modules.of_address(1)), (NOWHERE.into(), NOWHERE.into()));
    }
}
