//! Reads netlink attributes from a message without copying them, and appends attributes to a message.
//!
//! Layout: <https://docs.kernel.org/userspace-api/netlink/intro.html>. Attributes of unknown kinds are kept unchanged,
//! so that an object can be restored exactly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HEADER: usize = 4;
/// Flag of an attribute that contains attributes.
const NESTED: u16 = 0x8000;
const KIND_MASK: u16 = 0x3fff;

const fn aligned(len: usize) -> usize {
    (len + 3) & !3
}

/// A sequence of attributes. Iteration stops at the first attribute with an impossible length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attrs<'a>(pub(crate) &'a [u8]);

impl<'a> Attrs<'a> {
    /// Returns the attributes after a message's fixed header of `len` bytes; none if the message is shorter.
    pub(crate) fn after(message: &'a [u8], len: usize) -> Self {
        Attrs(message.get(aligned(len)..).unwrap_or_default())
    }

    /// Returns the value of the last attribute of this kind. If a kind occurs several times, the kernel uses the last
    /// one too.
    pub(crate) fn get(self, kind: u16) -> Option<&'a [u8]> {
        self.filter(|(k, _)| *k == kind).last().map(|(_, value)| value)
    }

    pub(crate) fn nested(self, kind: u16) -> Option<Attrs<'a>> {
        self.get(kind).map(Attrs)
    }

    pub(crate) fn u8(self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    pub(crate) fn u16(self, kind: u16) -> Option<u16> {
        Some(u16::from_ne_bytes(self.get(kind)?.get(..2)?.try_into().ok()?))
    }

    pub(crate) fn u32(self, kind: u16) -> Option<u32> {
        u32_at(self.get(kind)?, 0)
    }

    pub(crate) fn i32(self, kind: u16) -> Option<i32> {
        self.u32(kind).map(u32::cast_signed)
    }

    /// Returns the value of a text attribute up to its NUL. Bytes that are not UTF-8 are replaced.
    pub(crate) fn string(self, kind: u16) -> Option<String> {
        let bytes = self.get(kind)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Returns the value of an attribute that is an IPv4 or IPv6 address, depending on its length.
    pub(crate) fn ip(self, kind: u16) -> Option<IpAddr> {
        ip_of(self.get(kind)?)
    }
}

impl<'a> Iterator for Attrs<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(u16::from_ne_bytes(self.0.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(self.0.get(2..4)?.try_into().ok()?) & KIND_MASK;
        let value = self.0.get(HEADER..len)?;
        self.0 = self.0.get(aligned(len)..).unwrap_or_default();
        Some((kind, value))
    }
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// Returns 32-bit words as bytes.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the IPv4 address in four bytes or the IPv6 address in 16 bytes; `None` for any other length.
fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| Ipv6Addr::from(v6).into())
}

/// A message body under construction: a fixed header, then attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageBody(Vec<u8>);

impl MessageBody {
    /// Returns a body that starts with a fixed header (struct ifinfomsg, rtmsg, ...), padded to four bytes.
    pub(crate) fn new(header: &[u8]) -> Self {
        let mut body = MessageBody(header.to_vec());
        body.0.resize(aligned(header.len()), 0);
        body
    }

    /// Returns a body that starts with a fixed header of 32-bit words.
    pub(crate) fn of_words(header: &[u32]) -> Self {
        MessageBody(words(header))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn attr(mut self, kind: u16, value: &[u8]) -> Self {
        let len = u16::try_from(HEADER + value.len()).expect("bug: attribute over 64 KiB");
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    pub(crate) fn u8(self, kind: u16, value: u8) -> Self {
        self.attr(kind, &[value])
    }

    pub(crate) fn u32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    pub(crate) fn string(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attr(kind, &bytes)
    }

    pub(crate) fn ip(self, kind: u16, value: IpAddr) -> Self {
        match value {
            IpAddr::V4(v4) => self.attr(kind, &v4.octets()),
            IpAddr::V6(v6) => self.attr(kind, &v6.octets()),
        }
    }

    /// Appends an attribute of this kind that contains the attributes of `inner`.
    pub(crate) fn nest(self, kind: u16, inner: MessageBody) -> Self {
        self.attr(kind | NESTED, &inner.0)
    }

    pub(crate) fn with<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let body = MessageBody::new(&[1, 2, 3])
            .u32(5, 77)
            .string(6, "veth")
            .nest(7, MessageBody::default().u8(1, 9));
        let attrs = Attrs::after(body.bytes(), 3);
        assert_eq!((attrs.u32(5), attrs.string(6).as_deref()), (Some(77), Some("veth")));
        assert_eq!(attrs.nested(7).unwrap().u8(1), Some(9));
        assert_eq!(attrs.u32(8), None);
    }

    #[test]
    fn impossible_lengths_end_the_run() {
        for bytes in [&[0u8; 3][..], &[3, 0, 1, 0], &[9, 0, 1, 0, 1, 2, 3, 4], &[0, 0, 0, 0, 0, 0]] {
            assert_eq!(Attrs(bytes).count(), 0, "{bytes:?}");
        }
        assert_eq!(
            Attrs(&[5, 0, 1, 0, 42]).collect::<Vec<_>>(),
            [(1, &[42u8][..])],
            "a short last pad is fine"
        );
    }

    proptest! {
        /// Every message of the kernel is read through these functions.
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..400_usize) {
            let attrs = Attrs::after(&bytes, at);
            prop_assert!(attrs.count() <= bytes.len());
            let _ = (attrs.ip(1), attrs.string(2), attrs.u16(3), u32_at(&bytes, at), u64_at(&bytes, at));
        }
    }
}
