//! Finds the kernel function at an address, with the symbols in /proc/kallsyms.
//!
//! The file is read after a window has closed, so that it includes modules and BPF programs that were loaded in the
//! window. Its lines are "address type name [module]". Only symbols of code (types t, T, w and W) are kept.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::tally::LoadedCode;
use crate::Error;

pub(super) const PATH: &str = "/proc/kallsyms";

/// The symbols of the running kernel, ascending by address.
#[derive(Debug, Default)]
pub(super) struct Kallsyms(Vec<KernelSymbol>);

/// A symbol of code. The code ends at the next symbol, or at `end` if this is lower. `end` is `u64::MAX` if it is
/// unknown.
#[derive(Debug)]
struct KernelSymbol {
    start: u64,
    end: u64,
    name: Box<str>,
    module: Box<str>,
}

/// A kernel function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelFunction<'a> {
    /// The function's name as in the source, without the suffixes that compilers add (".isra.0", ".cold").
    pub(super) name: &'a str,
    /// The module that contains the function; empty for the kernel itself.
    pub(super) module: &'a str,
}

impl Kallsyms {
    /// Reads the symbols of the running kernel. Adds the symbols of `loaded`, the code that was loaded or unloaded in
    /// the window.
    pub(super) fn read(loaded: &[LoadedCode]) -> Result<Self, Error> {
        let file = File::open(PATH).map_err(|source| Error::io("open", PATH, source))?;
        let Kallsyms(mut symbols) = Self::parse(BufReader::with_capacity(1 << 16, file))?;
        symbols.extend(loaded.iter().map(|code| KernelSymbol {
            start: code.start,
            end: code.start.saturating_add(code.length.into()),
            name: base(&code.name).into(),
            module: "bpf".into(),
        }));
        symbols.sort_by_key(|symbol| symbol.start);
        Ok(Kallsyms(symbols))
    }

    /// Parses the lines of /proc/kallsyms.
    pub(super) fn parse(mut lines: impl BufRead) -> Result<Self, Error> {
        let (mut symbols, mut line) = (Vec::new(), String::new());
        while lines.read_line(&mut line).map_err(|source| Error::io("read", PATH, source))? > 0 {
            symbols.extend(symbol(&line));
            line.clear();
        }
        symbols.sort_by_key(|symbol| symbol.start);
        Ok(Kallsyms(symbols))
    }

    /// Returns the function at `address`. Returns `None` below the first symbol, and between the known end of a symbol
    /// and the next symbol.
    pub(super) fn function(&self, address: u64) -> Option<KernelFunction<'_>> {
        let Kallsyms(symbols) = self;
        let after = symbols.partition_point(|symbol| symbol.start <= address);
        let last = symbols[..after].last()?;
        // If an address has several names, the first one in kallsyms is used.
        let first = symbols[..after].partition_point(|symbol| symbol.start < last.start);
        let KernelSymbol { end, name, module, .. } = &symbols[first];
        (address < *end).then_some(KernelFunction { name, module })
    }
}

/// Parses a line of /proc/kallsyms; `None` if it is not code or not a valid line.
fn symbol(line: &str) -> Option<KernelSymbol> {
    let mut columns = line.split_ascii_whitespace();
    let (address, kind, name) = (columns.next()?, columns.next()?, columns.next()?);
    let start = u64::from_str_radix(address, 16).ok()?;
    // A symbol with the prefix "__pfx_" is the padding before a function (CONFIG_FUNCTION_PADDING_BYTES). It is never
    // executed.
    let runs = start > 0 && matches!(kind, "t" | "T" | "w" | "W") && !name.starts_with("__pfx_");
    let module = columns.next().map_or("", |module| module.trim_matches(['[', ']']));
    runs.then(|| KernelSymbol { start, end: u64::MAX, name: base(name).into(), module: module.into() })
}

/// Checks that the kernel shows the addresses of its symbols to this process. Returns the reason and the remedy if it
/// does not.
pub(super) fn shown() -> Result<(), String> {
    let file = File::open(PATH).map_err(|error| format!("cannot read {PATH}: {error}"))?;
    let some = BufReader::new(file).lines().take(100).map_while(Result::ok);
    let seen = some.filter_map(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    if seen.max().unwrap_or(0) > 0 {
        return Ok(());
    }
    let restrict =
        crate::procfile::word("/proc/sys/kernel/kptr_restrict").unwrap_or_else(|| "unknown".into());
    Err(format!(
        "{PATH} hides the kernel's addresses (kernel.kptr_restrict is {restrict}), so that samples cannot be \
         attributed to functions; run it as root or with CAP_SYSLOG, and with kernel.kptr_restrict below 2"
    ))
}

/// Returns the name without the suffixes that compilers add.
fn base(name: &str) -> &str {
    match name.find('.') {
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _text\n\
        ffffffff81000040 t tcp_ack.isra.0\n\
        ffffffff81000030 T __pfx_tcp_ack\n\
        ffffffff81000080 T memcpy\n\
        ffffffff81000080 W __memcpy\n\
        ffffffff81000100 D jiffies\n\
        ffffffffc0000000 t ixgbe_poll\t[ixgbe]\n\
        nonsense\n\
        0000000000000000 A fixed_percpu_data\n";

    fn function(symbols: &Kallsyms, address: u64) -> Option<(&str, &str)> {
        symbols.function(address).map(|found| (found.name, found.module))
    }

    #[test]
    fn an_address_lies_in_the_symbol_before_it() {
        let symbols = Kallsyms::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(function(&symbols, 0xffff_ffff_8100_0047), Some(("tcp_ack", "")));
        assert_eq!(function(&symbols, 0xffff_ffff_8100_0080), Some(("memcpy", "")), "first of two names");
        assert_eq!(function(&symbols, 0xffff_ffff_c000_0010), Some(("ixgbe_poll", "ixgbe")));
        assert_eq!(function(&symbols, 0x1000), None);
    }

    #[test]
    fn a_program_that_came_and_went_has_a_name_and_an_end() {
        let code = LoadedCode { start: 0xffff_ffff_c100_0000, length: 64, name: "bpf_prog_1_hop".into() };
        let Ok(symbols) = Kallsyms::read(&[code]) else {
            eprintln!("SKIP: {PATH} cannot be read here");
            return;
        };
        assert_eq!(function(&symbols, 0xffff_ffff_c100_0020).map(|f| f.0), Some("bpf_prog_1_hop"));
        assert_ne!(function(&symbols, 0xffff_ffff_c100_0040).map(|f| f.0), Some("bpf_prog_1_hop"));
    }

    #[test]
    fn this_kernel_shows_its_symbols_or_gives_the_reason() {
        let symbols = Kallsyms::read(&[]);
        match shown() {
            Ok(()) => assert!(symbols.unwrap().function(u64::MAX - 1).is_some()),
            Err(why) => assert!(why.contains(PATH), "{why}"),
        }
    }
}
