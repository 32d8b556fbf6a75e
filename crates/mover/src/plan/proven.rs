//! The files whose copy is proven, with their digests.

use landspeed_record::{CopyProven, FileDigest, PathBytes};

use super::{OpenEntry, Plan};
use crate::digest::WholeDigest;
use crate::wire::HardLink;

impl Plan {
    /// Returns the plan of a copy that lists the digests of its files, if this is asked for.
    pub(crate) fn proving(mut self, lists_digests: bool) -> Self {
        self.proven = lists_digests.then(Vec::new);
        self
    }

    /// Returns the files whose copy is proven, and that no earlier call has returned.
    pub(crate) fn take_proven(&mut self) -> Vec<CopyProven> {
        self.proven.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Lists a file that the target has put in place, or had there. The target has compared its digest with this end's.
    pub(super) fn prove(&mut self, entry: u64) {
        let Some(open) = self.open.get_mut(&entry).filter(|_| self.proven.is_some()) else { return };
        let only = open.only.map(WholeDigest::Plain);
        open.found.proven = only.or_else(|| open.done.as_ref()?.whole_digest());
        self.list(entry);
    }

    /// Lists a further name of a file, which the target has as a link now: it has the content of the first one.
    pub(super) fn prove_link(&mut self, entry: u64) {
        let is_link = |open: &OpenEntry| matches!(open.found.offered.link, HardLink::To(_)) && !open.is_apart;
        if self.open.get(&entry).is_some_and(is_link) {
            self.list(entry);
        }
    }

    fn list(&mut self, entry: u64) {
        let (Some(proven), Some(open)) = (&mut self.proven, self.open.get(&entry)) else { return };
        let Some(digest) = open.found.proven else { return };
        let name_hex = PathBytes(open.found.offered.name.as_bytes().to_vec());
        let digest_hex = match digest {
            WholeDigest::Plain(digest) => Some(FileDigest(digest.0)),
            WholeDigest::WithHoles => None,
        };
        proven.push(CopyProven { name_hex, digest_hex });
    }
}
