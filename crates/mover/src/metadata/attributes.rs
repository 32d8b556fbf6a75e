//! Extended attributes. An ACL is one of them, in the form in which the kernel hands it out.

use std::io;

use landspeed_record::CopyKept;
use rustix::io::Errno;

use super::Place;
use super::bounds::{AttributeCount, Attributes, bytes_of};

/// The longest name that the kernel takes (XATTR_NAME_MAX).
const LONGEST_NAME: usize = 255;

/// The ACL of an entry.
pub(super) const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// The ACL that new entries of a folder get.
const DEFAULT_LIST: &[u8] = b"system.posix_acl_default";
/// The capabilities of a program file.
pub(super) const CAPABILITY: &[u8] = b"security.capability";
/// The name spaces that are copied.
const SPACES: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];
/// Labels that a security module of the host gives, or that hold for this host alone: the target's host gives its own.
const LABELS: [&[u8]; 4] = [b"security.selinux", b"security.apparmor", b"security.SMACK64", b"security.evm"];

/// Returns the kind of an attribute; `None` if it is never copied.
pub(crate) fn kind(name: &[u8]) -> Option<CopyKept> {
    let begins = |beginnings: &[&[u8]]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    match name {
        ACCESS_LIST | DEFAULT_LIST => Some(CopyKept::Acls),
        _ if begins(&LABELS) => None,
        _ if begins(&SPACES) => Some(CopyKept::Xattrs),
        _ => None,
    }
}

/// Returns true if these are attributes that a copy knows, with names that the kernel takes, and as many as an entry may have.
pub(super) fn are_fine(attributes: &Attributes) -> bool {
    let is_name = |name: &[u8]| name.len() <= LONGEST_NAME && !name.contains(&0) && kind(name).is_some();
    let mut count = AttributeCount::default();
    attributes.iter().all(|(name, value)| is_name(name) && count.add(name, value))
}

/// Returns the bytes that attributes take in memory, at least as many as in a message.
pub(crate) fn bytes(attributes: &Attributes) -> usize {
    attributes.iter().map(|(name, value)| bytes_of(name, value)).sum()
}

/// Reads the attributes of an entry for which `is_wanted`, by name.
///
/// # Errors
/// Returns an error if they cannot be read, and E2BIG if they have more than [`super::MOST_OF_ENTRY`] bytes.
pub(crate) fn read(place: &Place<'_>, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<Attributes> {
    let (list, mut attributes, mut count) = (names(place)?, Attributes::new(), AttributeCount::default());
    for name in each(&list).filter(|name| is_wanted(name)) {
        let value = match place.get(name) {
            // It was removed meanwhile, or the file system lists an ACL where there is none.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => continue,
            value => value?,
        };
        if !count.add(name, &value) {
            return Err(Errno::TOOBIG.into());
        }
        attributes.insert(name.to_vec(), value);
    }
    Ok(attributes)
}

/// Returns the names of ACLs that an entry has.
pub(super) fn inherited(place: &Place<'_>) -> io::Result<Vec<&'static [u8]>> {
    let list = names(place)?;
    let mut lists = vec![ACCESS_LIST, DEFAULT_LIST];
    lists.retain(|own| each(&list).any(|name| name == *own));
    Ok(lists)
}

/// Returns the names of an entry's attributes, each with a NUL after it; none where the file system has no attributes.
fn names(place: &Place<'_>) -> io::Result<Vec<u8>> {
    match place.list() {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
        list => Ok(list?),
    }
}

fn each(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}
