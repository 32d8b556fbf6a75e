//! Finds out why a socket of SMC (Shared Memory Communications) has fallen back to TCP: linux/smc_diag.h.

use super::{SOCK_DIAG_BY_FAMILY, SockDiag, id};
use crate::netlink::attr::{Attrs, MessageBody, u32_at, u64_at};
use crate::netlink::error::{Error, FailureContext, RequestFailure};

/// AF_SMC of linux/socket.h.
const AF_SMC: u8 = 43;
/// Size of struct smc_diag_msg in bytes, and the offsets of two of its fields.
const HEADER: usize = 64;
const MODE_AT: usize = 2;
const INODE_AT: usize = 56;
const SMC_DIAG_MODE_FALLBACK_TCP: u8 = 1;
const SMC_DIAG_FALLBACK: u16 = 5;

/// The reasons for which a socket of SMC has fallen back to TCP, as `SMC_CLC_DECL_*` of net/smc/smc_clc.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmcFallback {
    /// The reason of this end.
    pub reason: u32,
    /// The reason that the other end gave when it declined; 0 if it did not decline.
    pub peer: u32,
}

impl SmcFallback {
    /// Parses struct smc_diag_msg and its attributes. Returns the socket's inode number, and `None` for a socket that
    /// has not fallen back.
    fn parse(message: &[u8]) -> Result<(u64, Option<Self>), RequestFailure> {
        let short = || RequestFailure::Malformed("a message of an SMC socket cut short".into());
        let header: &[u8; HEADER] = message.first_chunk().ok_or_else(short)?;
        let inode = u64_at(header, INODE_AT).ok_or_else(short)?;
        let reasons = Attrs::after(message, HEADER).get(SMC_DIAG_FALLBACK).unwrap_or_default();
        let at = |offset| u32_at(reasons, offset).unwrap_or_default();
        let fell_back = header[MODE_AT] == SMC_DIAG_MODE_FALLBACK_TCP;
        Ok((inode, fell_back.then(|| SmcFallback { reason: at(0), peer: at(4) })))
    }
}

impl SockDiag {
    /// Returns why the SMC socket with this inode number has fallen back to TCP. Returns `None` if it has not, or if
    /// there is no such socket. The kernel lists all SMC sockets of the namespace, because it cannot look one up.
    ///
    /// # Errors
    /// Returns an error with [`Error::is_absent`] if the kernel lacks SMC or its module smc_diag.
    pub fn smc_fallback(&self, inode: u64) -> Result<Option<SmcFallback>, Error> {
        // struct smc_diag_req: family, padding, extensions, socket id.
        let mut request = [0; 4 + id::SIZE];
        request[0] = AF_SMC;
        let answers = self.channel.dump(SOCK_DIAG_BY_FAMILY, &MessageBody::new(&request));
        let parsed = answers.and_then(|all| all.iter().map(|m| SmcFallback::parse(m)).collect());
        let sockets: Vec<(u64, Option<SmcFallback>)> = parsed.during(|| "list SMC sockets".into())?;
        Ok(sockets.into_iter().find_map(|(of, why)| why.filter(|_| of == inode)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a message that describes a socket.
    fn message(mode: u8) -> Vec<u8> {
        let mut header = [0u8; HEADER];
        (header[0], header[MODE_AT]) = (AF_SMC, mode);
        header[INODE_AT..].copy_from_slice(&4711_u64.to_ne_bytes());
        let reasons = [0x0500_0000_u32, 0x0303_0000].map(u32::to_ne_bytes).concat();
        MessageBody::new(&header).u8(3, 0).attr(SMC_DIAG_FALLBACK, &reasons).bytes().to_vec()
    }

    #[test]
    fn the_reasons_of_a_socket_that_fell_back_are_read() {
        let why = SmcFallback { reason: 0x0500_0000, peer: 0x0303_0000 };
        assert_eq!(SmcFallback::parse(&message(1)).unwrap(), (4711, Some(why)));
        for carried_by in [0, 2] {
            assert_eq!(SmcFallback::parse(&message(carried_by)).unwrap(), (4711, None));
        }
    }

    #[test]
    fn a_message_cut_short_is_an_error_not_a_panic() {
        let whole = message(1);
        for end in 0..whole.len() {
            assert_eq!(SmcFallback::parse(&whole[..end]).is_ok(), end >= HEADER, "{end} bytes");
        }
    }

    #[test]
    fn a_kernel_without_smc_is_reported() {
        match SockDiag::open().unwrap().smc_fallback(0) {
            Ok(found) => assert_eq!(found, None, "no socket has the inode number 0"),
            Err(error) => assert!(error.is_absent(), "{error}"),
        }
    }
}
