//! Names where letters of both cases are one.

use std::ffi::{OsStr, OsString};
use std::io;

use fuser::INodeNo;

use super::nodes::path_of;
use super::passthrough::Passthrough;

impl Passthrough {
    /// Returns the name under which the folder below has an entry: the same one, unless letters of both cases are one.
    pub(super) fn spelled(&self, parent: INodeNo, name: &OsStr) -> io::Result<OsString> {
        if !self.has_one_case {
            return Ok(name.to_owned());
        }
        let folder = self.nodes.get(parent)?;
        for entry in std::fs::read_dir(path_of(&folder))? {
            let own = entry?.file_name();
            if own.eq_ignore_ascii_case(name) {
                return Ok(own);
            }
        }
        Ok(name.to_owned())
    }
}
