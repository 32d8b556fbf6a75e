//! BPF objects that no process holds.

use std::collections::BTreeSet;
use std::time::Duration;

use super::ours::within;

type NextIdFn = unsafe extern "C" fn(u32, *mut u32) -> i32;

/// The kernel's iterators for each kind of object, by the kind's name in a holder's /proc/PID/fdinfo.
const KINDS: [(&str, NextIdFn); 3] = [
    ("prog_id", libbpf_sys::bpf_prog_get_next_id),
    ("map_id", libbpf_sys::bpf_map_get_next_id),
    ("link_id", libbpf_sys::bpf_link_get_next_id),
];

/// Returns the programs, maps and links that no process has open, such as "prog_id 7".
pub(crate) fn unheld() -> BTreeSet<String> {
    let all: BTreeSet<String> = KINDS.iter().flat_map(|(kind, next)| ids(kind, *next)).collect();
    let held = held();
    all.difference(&held).cloned().collect()
}

/// Returns the objects, other than those in `before`, that no process has open for longer than the kernel needs to free
/// the objects of a dead process.
pub(crate) fn left(before: &BTreeSet<String>) -> BTreeSet<String> {
    let left = std::cell::RefCell::new(&unheld() - before);
    within(Duration::from_secs(10), || {
        let now = unheld();
        // Objects of other programs come and go, so only an object that no process has open in every check is left.
        left.borrow_mut().retain(|one| now.contains(one));
        left.borrow().is_empty()
    });
    left.into_inner()
}

fn ids(kind: &str, next: NextIdFn) -> Vec<String> {
    let mut found = Vec::new();
    let mut id = 0;
    // SAFETY: the call writes one number through the pointer, which is valid for it.
    while unsafe { next(id, &raw mut id) } == 0 {
        found.push(format!("{kind} {id}"));
    }
    found
}

fn held() -> BTreeSet<String> {
    let list = |path: String| std::fs::read_dir(path).into_iter().flatten().flatten();
    let processes = list("/proc".into()).filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let descriptors = processes.flat_map(|pid| list(format!("/proc/{pid}/fdinfo")));
    let infos = descriptors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    infos.flat_map(|info| info.lines().filter_map(object).collect::<Vec<_>>()).collect()
}

/// Returns the object that a line of fdinfo names, such as "prog_id 7".
fn object(line: &str) -> Option<String> {
    let (kind, id) = line.split_once(':')?;
    KINDS.iter().any(|(known, _)| *known == kind).then(|| format!("{kind} {}", id.trim()))
}
