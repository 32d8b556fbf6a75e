//! The version of what two ends say to each other, in a copy and in a comparison.

use crate::Error;

/// The version. Another message, field or order of them is another version.
const VERSION: u8 = 2;

/// The first bytes of each end on a flow: what it speaks, and in which version.
pub(super) const GREETING: [u8; 4] = [b'L', b'S', b'm', VERSION];

/// Returns an error if the other end does not speak as this one does.
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
    fn another_version_is_told_with_the_remedy() {
        check(GREETING).unwrap();
        let told = check([b'L', b'S', b'm', VERSION + 1]).unwrap_err().to_string();
        assert!(told.contains("in version 3, and this one in version 2"), "{told}");
        assert!(told.contains("use one landspeed on both hosts"), "{told}");
        // An end of before there were versions begins with the lengths of a frame.
        assert!(matches!(check([0; 4]), Err(Error::Protocol(_))));
    }
}
