//! The version of the protocol between two ends, in a copy and in a comparison.

use crate::Error;

/// The version. Another message, field or order of them is another version.
const VERSION: u8 = 2;

/// The first bytes of each end on a flow: the protocol and its version.
pub(super) const GREETING: [u8; 4] = [b'L', b'S', b'm', VERSION];

/// Returns an error if the other end's protocol or version differs.
pub(super) fn check(greeting: [u8; 4]) -> Result<(), Error> {
    match greeting {
        GREETING => Ok(()),
        [b'L', b'S', b'm', theirs] => Err(Error::Version { own: VERSION, theirs }),
        _ => Err(Error::Protocol("it does not begin as an end of a copy does")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_refused_with_the_remedy() {
        check(GREETING).unwrap();
        let text = check([b'L', b'S', b'm', VERSION + 1]).unwrap_err().to_string();
        assert!(text.contains("in version 3, and this one in version 2"), "{text}");
        assert!(text.contains("use one landspeed on both hosts"), "{text}");
        // An end from before versions existed begins with the lengths of a frame.
        assert!(matches!(check([0; 4]), Err(Error::Protocol(_))));
    }
}
