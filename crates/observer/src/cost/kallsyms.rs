//! /proc/kallsyms: which kernel function an address lies in.
//!
//! Read when a window has closed, so that modules and BPF programs that came meanwhile are there. Lines are
//! "address type name [module]"; only code (types t and w) is kept.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::tally::Loaded;
use crate::Error;

/// Where it is.
pub(super) const PATH: &str = "/proc/kallsyms";

/// Symbols of the running kernel, ascending by address.
#[derive(Debug, Default)]
pub(super) struct Kallsyms {
    symbols: Vec<Symbol>,
    /// Names and modules, one after the other.
    text: String,
}

/// Code from `start` to the next symbol, or to `end` where that is known.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: u64,
    end: u64,
    name: (u32, u16),
    module: (u32, u16),
}

/// A kernel function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function<'a> {
    /// Its name as the source has it: without the suffixes that compilers add (".isra.0", ".cold").
    pub(super) name: &'a str,
    /// Its module; empty for the kernel itself.
    pub(super) module: &'a str,
}

impl Kallsyms {
    /// Those of the running kernel, and what was loaded within the window.
    pub(super) fn read(loaded: &[Loaded]) -> Result<Self, Error> {
        let file = File::open(PATH).map_err(|source| Error::io("open", PATH, source))?;
        let mut symbols = Self::parse(BufReader::with_capacity(1 << 16, file))?;
        for code in loaded {
            let (name, module) = (symbols.store(base(&code.name)), symbols.store("bpf"));
            let end = code.start.saturating_add(code.length.into());
            symbols.symbols.push(Symbol { start: code.start, end, name, module });
        }
        symbols.symbols.sort_by_key(|symbol| symbol.start);
        Ok(symbols)
    }

    /// From the file's text.
    pub(super) fn parse(mut lines: impl BufRead) -> Result<Self, Error> {
        let mut symbols = Kallsyms::default();
        let mut line = String::new();
        while lines.read_line(&mut line).map_err(|source| Error::io("read", PATH, source))? > 0 {
            symbols.add(&line);
            line.clear();
        }
        symbols.symbols.sort_by_key(|symbol| symbol.start);
        Ok(symbols)
    }

    /// A line that is no code, or no line of this file, is passed over.
    fn add(&mut self, line: &str) {
        let mut columns = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (columns.next(), columns.next(), columns.next()) else {
            return;
        };
        let Ok(start) = u64::from_str_radix(address, 16) else { return };
        // "__pfx_" is the padding before a function (CONFIG_FUNCTION_PADDING_BYTES), which never runs.
        if start == 0 || !matches!(kind, "t" | "T" | "w" | "W") || name.starts_with("__pfx_") {
            return;
        }
        let module = columns.next().map_or("", |module| module.trim_matches(['[', ']']));
        let (name, module) = (self.store(base(name)), self.store(module));
        self.symbols.push(Symbol { start, end: u64::MAX, name, module });
    }

    /// The function that `address` lies in; `None` below the first symbol, and in code of which nothing but
    /// the end is known.
    pub(super) fn function(&self, address: u64) -> Option<Function<'_>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let last = self.symbols[..after].last()?;
        // Of names for the same address, the first that kallsyms has.
        let first = self.symbols[..after].partition_point(|symbol| symbol.start < last.start);
        let symbol = &self.symbols[first];
        let text = |(at, length): (u32, u16)| &self.text[at as usize..at as usize + usize::from(length)];
        (address < symbol.end).then(|| Function { name: text(symbol.name), module: text(symbol.module) })
    }

    fn store(&mut self, text: &str) -> (u32, u16) {
        let at = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        // KSYM_NAME_LEN is 512, and a file of 4 GB of names is none: such a name is dropped.
        let Ok(length) = u16::try_from(text.len()) else { return (0, 0) };
        if at == u32::MAX {
            return (0, 0);
        }
        self.text.push_str(text);
        (at, length)
    }
}

/// Whether the running kernel shows addresses to this process; the reason and the remedy where not.
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
        "{PATH} hides the kernel's addresses (kernel.kptr_restrict is {restrict}), so that no sample could be told \
         from another; run it as root or with CAP_SYSLOG, and with kernel.kptr_restrict below 2"
    ))
}

/// The name without compilers' suffixes.
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
        let code = Loaded { start: 0xffff_ffff_c100_0000, length: 64, name: "bpf_prog_1_hop".into() };
        let Ok(symbols) = Kallsyms::read(&[code]) else {
            eprintln!("SKIP: {PATH} cannot be read here");
            return;
        };
        assert_eq!(function(&symbols, 0xffff_ffff_c100_0020).map(|f| f.0), Some("bpf_prog_1_hop"));
        assert_ne!(function(&symbols, 0xffff_ffff_c100_0040).map(|f| f.0), Some("bpf_prog_1_hop"));
    }

    #[test]
    fn this_kernel_shows_its_symbols_or_says_why_not() {
        let symbols = Kallsyms::read(&[]);
        match shown() {
            Ok(()) => assert!(symbols.unwrap().function(u64::MAX - 1).is_some()),
            Err(why) => assert!(why.contains(PATH), "{why}"),
        }
    }
}
