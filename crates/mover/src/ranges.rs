//! Ranges: pairs of (first, number), of pieces of a file or of bytes of a piece: in order, and with something between
//! them.

/// Returns what is between ranges and around them, before `end`.
pub(crate) fn between(ranges: &[(u32, u32)], end: u32) -> Vec<(u32, u32)> {
    let (mut others, mut next) = (Vec::new(), 0);
    for &(first, number) in ranges.iter().chain([&(end, 0)]) {
        if next < first {
            others.push((next, first - next));
        }
        next = first + number;
    }
    others
}

/// Returns true if ranges are in order before `end`, and each has something between itself and the next one.
pub(crate) fn are_ranges(ranges: &[(u32, u32)], end: u32) -> bool {
    let mut next = Some(0);
    ranges.iter().all(|&(first, number)| {
        let is_after = next.is_some_and(|next| first >= next) && number > 0;
        let last = first.checked_add(number).filter(|last| *last <= end);
        next = last.and_then(|last| last.checked_add(1));
        is_after && last.is_some()
    })
}

/// Returns a range as one that indexes.
pub(crate) fn range(first: u32, number: u32) -> std::ops::Range<usize> {
    first as usize..first as usize + number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_order_with_something_between_them() {
        for fine in [&[][..], &[(0, 9)], &[(0, 1), (2, 7)], &[(8, 1)]] {
            assert!(are_ranges(fine, 9), "{fine:?}");
        }
        for bad in
            [&[(0, 10)][..], &[(0, 0)], &[(0, 1), (1, 1)], &[(3, 1), (1, 1)], &[(u32::MAX, 2)], &[(9, 1)]]
        {
            assert!(!are_ranges(bad, 9), "{bad:?}");
        }
        assert!(are_ranges(&[(0, u32::MAX)], u32::MAX) && !are_ranges(&[(0, u32::MAX), (0, 1)], u32::MAX));
        assert_eq!(between(&[(1, 2), (5, 4)], 9), [(0, 1), (3, 2)]);
        assert_eq!((between(&[], 9), between(&[(0, 9)], 9)), (vec![(0, 9)], vec![]));
    }
}
