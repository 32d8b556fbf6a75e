//! An ACL as the kernel writes it.

/// Returns an ACL that gives a further user the rights `named`, under the mask `mask`. With it, a mode has the bits 0o7x1, of
/// which `mask` is the middle.
pub(super) fn list(named: u16, mask: u16) -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, u32::MAX), (2, named, 4321), (4, 5, u32::MAX), (0x10, mask, u32::MAX), (0x20, 1, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend_from_slice(&tag.to_le_bytes());
        list.extend_from_slice(&rights.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
    }
    list
}
