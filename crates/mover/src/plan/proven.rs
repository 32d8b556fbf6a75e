//! The files whose copy is proven, with their digests.

use landspeed_record::{CopyProven, FileDigest, PathBytes};

use super::Plan;

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
        let (Some(proven), Some(open)) = (&mut self.proven, self.open.get(&entry)) else { return };
        if let Some(digest) = open.only.or_else(|| open.done.as_ref()?.digest()) {
            let name_hex = PathBytes(open.found.offered.name.as_bytes().to_vec());
            proven.push(CopyProven { name_hex, digest_hex: FileDigest(digest.0) });
        }
    }
}
