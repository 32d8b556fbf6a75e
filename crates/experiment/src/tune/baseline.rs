//! Where a ladder starts.

/// As SC'03 started (feng-2003 3.3.1, the stock configuration): MTU 1500, no offloads, 64 KB windows, Reno,
/// 8 KB writes, sender and receiver on different processors. Coalescing stays as it is: at its default.
///
/// Each knob goes to the hosts that its row's [`crate::Factor::on`] names; what a host lacks is left out. A
/// receive buffer of 128 KB makes a window of 64 KB: the other half is for what packets cost beyond their
/// payload.
pub(crate) fn sc03() -> Vec<(&'static str, String)> {
    const START: &[(&str, &str)] = &[
        ("placement", "neighbours"),
        ("write-size", "8192"),
        ("tcp-rmem", "4096 131072 131072"),
        ("tcp-wmem", "4096 131072 131072"),
        ("congestion-control", "reno"),
        ("mtu", "1500"),
        ("tx-checksum", "off"),
        ("scatter-gather", "off"),
        ("tso", "off"),
        ("gso", "off"),
        ("rx-checksum", "off"),
        ("gro", "off"),
        ("lro", "off"),
        ("hw-gro", "off"),
    ];
    START.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_lies_in_the_table() {
        for (name, value) in sc03() {
            crate::all_factors().check(name, &value).unwrap();
        }
    }
}
