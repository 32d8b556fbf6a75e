//! Finds whether a file system treats two names as one, where the source has one of them and the target's folder lists
//! the other. Such an entry is no extra: it is the source's own entry. Nor does a copy replace it under the other name.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::beneath::Root;
use crate::name::RelativeName;

/// The name of a probe file. If one is left in the work folder of a copy, it is removed like a short file.
const COMPOSED: &[u8] = ".landspeed-\u{e9}.short".as_bytes();
/// The same name with the accent as a character of its own, as macOS writes it.
const DECOMPOSED: &[u8] = ".landspeed-e\u{301}.short".as_bytes();

/// Held while that name is there: messages about one folder may come on two flows.
static MADE: Mutex<()> = Mutex::new(());

/// Returns true if the folder ignores the case of letters in names. Some file systems know letters of ASCII alone.
pub(super) fn ignores_case<'a>(base: &Root, names: impl Iterator<Item = &'a RelativeName> + Clone) -> bool {
    [with_other_ascii, with_other_letters].into_iter().any(|with_other| {
        let mut pairs = names.clone().map(|name| (name.as_bytes(), with_other(name.as_bytes())));
        // The first name that has letters shows it.
        let is_one = pairs
            .find_map(|(name, other)| if other == name { None } else { is_one(base.as_fd(), name, &other) });
        is_one.unwrap_or(false)
    })
}

/// Returns true if there is an entry with this name in letters of the other case; `None` if the name has no letters. If there is one
/// with the name itself, both may be the same, also where they have other inodes: CIFS may make one up for each name.
pub(crate) fn is_in_other_case(folder: BorrowedFd<'_>, name: &[u8]) -> Option<bool> {
    [with_other_ascii, with_other_letters].into_iter().find_map(|with_other| {
        let other = with_other(name);
        let is_there = || rustix::fs::statat(folder, other.as_slice(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        (other != name).then(is_there)
    })
}

/// Returns true if the folder treats composed and decomposed accents as the same (Unicode normalisation), as ZFS and
/// HFS+ can. No existing entry need have such a name, so the function creates a probe file.
///
/// # Errors
/// Returns an error if none can be made.
pub(crate) fn ignores_form(base: BorrowedFd<'_>) -> io::Result<bool> {
    let _made = MADE.lock();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(base, COMPOSED, flags, Mode::empty());
    let is_one = is_one(base, COMPOSED, DECOMPOSED);
    match made {
        Ok(_) => rustix::fs::unlinkat(base, COMPOSED, AtFlags::empty())?,
        // An existing file shows it too.
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    is_one.ok_or_else(|| Errno::NOENT.into())
}

/// Returns true if both names are of one entry; `None` if there is none with the first name.
fn is_one(base: BorrowedFd<'_>, name: &[u8], other: &[u8]) -> Option<bool> {
    let look = |name: &[u8]| rustix::fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let one = look(name)?;
    Some(look(other).is_some_and(|other| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)))
}

/// Returns a name with its letters of ASCII in the other case.
fn with_other_ascii(name: &[u8]) -> Vec<u8> {
    let swap = |byte: &u8| {
        if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
    };
    name.iter().map(swap).collect()
}

/// Returns a name with its other letters in the other case; the same name if it has none, or is no text.
fn with_other_letters(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() => text.chars().map(in_other_case).collect::<String>().into_bytes(),
        _ => name.to_vec(),
    }
}

/// Returns a letter beyond ASCII in the other case, if that is one letter.
fn in_other_case(letter: char) -> char {
    let cases = [only(letter.to_lowercase()), only(letter.to_uppercase())];
    let other = cases.into_iter().flatten().find(|other| *other != letter);
    other.filter(|_| !letter.is_ascii()).unwrap_or(letter)
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    first.filter(|_| letters.next().is_none())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn letters_of_all_scripts_have_another_case() {
        for (name, ascii, others) in [
            ("a7-B", "A7-b", "a7-B"),
            ("\u{e9}a", "\u{e9}A", "\u{c9}a"),
            ("\u{41f}\u{440}", "\u{41f}\u{440}", "\u{43f}\u{420}"),
            // It has no other case of one letter.
            ("\u{df}", "\u{df}", "\u{df}"),
            ("\u{65e5}", "\u{65e5}", "\u{65e5}"),
        ] {
            assert_eq!(with_other_ascii(name.as_bytes()), ascii.as_bytes(), "{name}");
            assert_eq!(with_other_letters(name.as_bytes()), others.as_bytes(), "{name}");
        }
        assert_eq!(with_other_letters(b"a\xe9"), b"a\xe9");
    }

    /// Two names of one file look as one entry does where the file system does not tell them apart.
    #[test]
    fn names_that_are_one_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let base = Root::open(folder.path()).unwrap();
        let names = ["7", "\u{43f}"].map(|name| RelativeName::parse(name.as_bytes()).expect("a name"));
        std::fs::write(folder.path().join("\u{43f}"), "").unwrap();
        let tell = || names.each_ref().map(|name| is_in_other_case(base.as_fd(), name.as_bytes()));
        assert!(!ignores_case(&base, names.iter()));
        assert_eq!(tell(), [None, Some(false)]);
        std::fs::hard_link(folder.path().join("\u{43f}"), folder.path().join("\u{41f}")).unwrap();
        assert!(ignores_case(&base, names.iter()));
        assert_eq!(tell(), [None, Some(true)]);
    }

    #[test]
    fn forms_that_are_one_are_found_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let base = Root::open(folder.path()).unwrap();
        assert!(!ignores_form(base.as_fd()).unwrap(), "or this is such a file system");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let [composed, decomposed] =
            [COMPOSED, DECOMPOSED].map(|name| folder.path().join(OsStr::from_bytes(name)));
        std::fs::write(&composed, "").unwrap();
        std::fs::hard_link(&composed, &decomposed).unwrap();
        assert!(ignores_form(base.as_fd()).unwrap());
        assert!(composed.exists() && decomposed.exists(), "they are not this end's");
    }
}
