//! Removal of debug sections from a program.

/// Constants of a 64-bit ELF file (System V ABI, gABI 4.1, "ELF Header" and "Sections").
const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const HEADER: usize = 64;
const NULL: u64 = 0;
const NOBITS: u64 = 8;
const ALLOC: u64 = 2;

/// Returns the program `file` without its debug sections. Its symbols stay, so that a backtrace has names. A file that
/// is not a 64-bit little-endian ELF file is returned unchanged.
pub(crate) fn lean(file: Vec<u8>) -> Vec<u8> {
    without_debug(&file).unwrap_or(file)
}

/// A section and the offset of its header.
#[derive(Debug, Clone, Copy)]
struct ElfSection {
    header: usize,
    kind: u64,
    flags: u64,
    offset: usize,
    size: usize,
    align: usize,
}

fn without_debug(file: &[u8]) -> Option<Vec<u8>> {
    if !file.starts_with(MAGIC) {
        return None;
    }
    let sections = sections(file)?;
    let names = sections.get(number(file, 62, 2)? as usize)?;
    let is_loaded = |section: &&ElfSection| section.flags & ALLOC != 0 && section.kind != NOBITS;
    let loaded = sections.iter().filter(is_loaded).map(|section| section.offset + section.size).max()?;
    // What is loaded does not move; the remaining sections follow it.
    let mut out = file.get(..loaded)?.to_vec();
    let mut headers = Vec::new();
    for section in &sections {
        let mut header = file.get(section.header..section.header + HEADER)?.to_vec();
        if section.flags & ALLOC == 0 && section.kind != NULL {
            if name(file, names, section)?.starts_with(b".debug_") {
                header.fill(0);
            } else {
                out.resize(out.len().next_multiple_of(section.align.max(1)), 0);
                header[24..32].copy_from_slice(&(out.len() as u64).to_le_bytes());
                out.extend(file.get(section.offset..section.offset + section.size)?);
            }
        }
        headers.extend(header);
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len() as u64;
    out.get_mut(40..48)?.copy_from_slice(&at.to_le_bytes());
    out.extend(headers);
    Some(out)
}

fn sections(file: &[u8]) -> Option<Vec<ElfSection>> {
    let (first, count) = (number(file, 40, 8)? as usize, number(file, 60, 2)? as usize);
    let section = |index: usize| {
        let header = first.checked_add(index * HEADER)?;
        let field = |at: usize, size: usize| number(file, header.checked_add(at)?, size);
        let (offset, size) = (field(24, 8)? as usize, field(32, 8)? as usize);
        let kind = field(4, 4)?;
        (kind == NOBITS || offset.checked_add(size)? <= file.len()).then_some(ElfSection {
            header,
            kind,
            flags: field(8, 8)?,
            offset,
            size: if kind == NOBITS { 0 } else { size },
            align: (field(48, 8)? as usize).min(4096),
        })
    };
    (0..count).map(section).collect()
}

/// Returns the bytes of the file from the start of the name of `section` to the end of the file.
fn name<'f>(file: &'f [u8], names: &ElfSection, section: &ElfSection) -> Option<&'f [u8]> {
    file.get(names.offset + number(file, section.header, 4)? as usize..)
}

/// Reads a little-endian number of `size` bytes at the offset `at`; `None` if it is not within the file.
fn number(file: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Output};

    use super::*;

    fn symbols(file: &[u8]) -> Vec<u8> {
        let (sections, names) = (sections(file).unwrap(), number(file, 62, 2).unwrap() as usize);
        let is_it =
            |section: &&ElfSection| name(file, &sections[names], section).unwrap().starts_with(b".symtab\0");
        let found = sections.iter().find(is_it).unwrap();
        file[found.offset..found.offset + found.size].to_vec()
    }

    const DEBUG: usize = 1 << 20;

    /// Returns this program with one more debug section, because the profile of the tests makes none.
    fn debuggable() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let [section, program] = ["section", "program"].map(|name| folder.path().join(name));
        std::fs::write(&section, vec![7_u8; DEBUG]).unwrap();
        let added = format!("--add-section=.debug_test={}", section.display());
        let own = std::env::current_exe().unwrap();
        let made = Command::new("objcopy").arg(added).arg(own).arg(&program).status();
        assert!(made.is_ok_and(|status| status.success()), "binutils adds it");
        std::fs::read(program).unwrap()
    }

    #[test]
    fn a_lean_program_runs_and_keeps_its_symbols() {
        let whole = debuggable();
        let lean = lean(whole.clone());
        assert!(lean.len() + DEBUG / 2 < whole.len(), "{} of {} bytes", lean.len(), whole.len());
        assert_eq!(symbols(&lean), symbols(&whole));
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&file, &lean).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        // While this file was open for writing, another test's thread may have forked. Until the child runs its own
        // program, it has the file open too, and the kernel refuses to run the file.
        let busy = |listed: &std::io::Result<Output>| {
            listed.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
        };
        let mut runs = (0..500).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Command::new(&*file).arg("--list").output()
        });
        let listed = runs.find(|listed| !busy(listed)).expect("a run").unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("a_lean_program_runs"), "{listed}");
        let checked = Command::new("strip").arg("-g").arg("-o").arg("/dev/null").arg(&*file).status();
        assert!(checked.is_ok_and(|status| status.success()), "binutils read it");
    }

    #[test]
    fn a_file_that_is_no_complete_program_stays_unchanged() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for file in [b"#!/bin/sh\n".to_vec(), Vec::new(), MAGIC.to_vec(), whole[..5000].to_vec()] {
            assert_eq!(lean(file.clone()), file);
        }
    }
}
