//! The names of the entries to copy, if only some are copied. They arrive in several requests, because the size of a
//! request is limited.

use std::sync::Arc;

use landspeed_mover::{NameList, RelativeName};
use landspeed_record::{MOST_NAME_BYTES, MOST_NAMES, PathBytes};
use parking_lot::Mutex;

const TOO_MANY: &str =
    "the names of --files-from are longer than 64 MiB, or more than 4 million: name folders instead";

/// Names that have arrived and that no copy has used yet.
#[derive(Default)]
pub(super) struct NamedEntries(Mutex<Named>);

#[derive(Default)]
struct Named {
    names: Vec<RelativeName>,
    bytes: usize,
}

impl NamedEntries {
    /// Adds names. With `is_first`, first discards the names that arrived before.
    pub(super) fn add(&self, names: Vec<PathBytes>, is_first: bool) -> Result<(), String> {
        let mut named = self.0.lock();
        if is_first {
            *named = Named::default();
        }
        for PathBytes(bytes) in names {
            named.bytes += bytes.len();
            if named.bytes > MOST_NAME_BYTES || named.names.len() >= MOST_NAMES {
                return Err(TOO_MANY.to_owned());
            }
            let shown = || {
                format!(
                    "\"{}\" in --files-from leads out of the source folder, or is too long",
                    bytes.escape_ascii()
                )
            };
            named.names.push(RelativeName::parse(&bytes).ok_or_else(shown)?);
        }
        Ok(())
    }

    /// Takes the names and leaves none.
    pub(super) fn take(&self) -> Arc<NameList> {
        Arc::new(NameList::new(std::mem::take(&mut *self.0.lock()).names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_parts_and_lead_nowhere_else() {
        let named = NamedEntries::default();
        let bytes = |name: &[u8]| PathBytes(name.to_vec());
        let list = |names: &[&[u8]]| {
            let parse = |name: &&[u8]| RelativeName::parse(name).expect("a name");
            NameList::new(names.iter().map(parse).collect())
        };
        named.add(vec![bytes(b"old")], true).unwrap();
        named.add(vec![bytes(b"b\xff")], true).unwrap();
        named.add(vec![bytes(b"a/c")], false).unwrap();
        assert_eq!(*named.take(), list(&[b"a/c", b"b\xff"]));
        assert_eq!(*named.take(), list(&[]));
        let why = named.add(vec![bytes(b"../a\xff")], true).unwrap_err();
        assert!(why.starts_with("\"../a\\xff\" in --files-from"), "{why}");
        let long = || vec![PathBytes(vec![b'x'; 4_000]); 10_000];
        named.add(long(), true).unwrap();
        assert!(named.add(long(), false).unwrap_err().contains("64 MiB"));
        named.add(Vec::new(), true).unwrap();
        named.0.lock().names = vec![RelativeName::root(); MOST_NAMES];
        assert!(named.add(vec![PathBytes::default()], false).unwrap_err().contains("4 million"));
    }
}
