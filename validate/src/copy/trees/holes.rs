//! Where a file has data, and where a copy of it has some in the place of a hole.

use std::fs::File;
use std::ops::Range;

use anyhow::Result;
use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Returns the ranges of a file that have data. A file system that does not tell holes has data everywhere.
pub(super) fn data(file: &File) -> Result<Vec<Range<u64>>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    loop {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole follows.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        ranges.push(start..at);
    }
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    Ok(ranges)
}

/// Returns the number of bytes that a copy has as data in holes of the source. A block of `block` bytes in which the source has any
/// data is one of data.
pub(super) fn filled(source: &[Range<u64>], copy: &[Range<u64>], block: u64) -> u64 {
    let block = block.max(1);
    let wide: Vec<Range<u64>> =
        source.iter().map(|one| one.start / block * block..one.end.div_ceil(block) * block).collect();
    copy.iter().map(|one| outside(one, &wide)).sum()
}

/// Returns the number of bytes of a range that are in none of the ordered ranges, which may overlap.
fn outside(range: &Range<u64>, ranges: &[Range<u64>]) -> u64 {
    let (mut at, mut bytes) = (range.start, 0);
    for one in ranges {
        bytes += one.start.min(range.end).saturating_sub(at);
        at = at.max(one.end);
    }
    bytes + range.end.saturating_sub(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_that_became_data_is_found() {
        let source = [4_096..8_192, 20_000..20_001, 40_960..45_056];
        assert_eq!(filled(&source, &source, 4_096), 0);
        // A block of which the source has a part is one of data.
        assert_eq!(filled(&source, &[4_096..8_192, 16_384..20_480, 40_960..45_056], 4_096), 0);
        assert_eq!(filled(&source, &[0..20_000, 20_000..45_056], 4_096), 4_096 + 8_192 + 20_480);
        assert_eq!(filled(&source, &[0..1, 50_000..50_002], 4_096), 3);
        assert_eq!((filled(&[], &[0..3, 3..7], 4_096), filled(&source, &[], 4_096)), (7, 0));
    }
}
