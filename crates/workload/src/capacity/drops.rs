//! Counts the buffers that a host dropped outside its sockets. A buffer contains one packet, or several that the
//! stack had joined.

use std::fs::read_to_string;

/// Columns of /proc/net/dev after the device's name (net/core/net-procfs.c, dev_seq_printf_stats).
const RECEIVED_DROP: usize = 3;
const RECEIVED_FIFO: usize = 4;
const SENT_DROP: usize = 11;

/// Returns the number of buffers dropped on receipt since boot: by the devices of this network namespace, and by the
/// processors' backlogs, which belong to the whole machine. Unreadable counters count as zero.
pub(super) fn received() -> u64 {
    devices(&[RECEIVED_DROP, RECEIVED_FIFO]) + backlogs()
}

/// Returns the number of buffers that the devices of this network namespace have dropped on sending so far.
pub(super) fn sent() -> u64 {
    devices(&[SENT_DROP])
}

fn devices(columns: &[usize]) -> u64 {
    sum(&read_to_string("/proc/net/dev").unwrap_or_default(), columns)
}

fn sum(text: &str, columns: &[usize]) -> u64 {
    let counters = text.lines().filter_map(|line| line.split_once(':')).map(|(_, counters)| counters);
    let of = |line: &str| {
        let values: Vec<u64> = line.split_whitespace().map(|value| value.parse().unwrap_or(0)).collect();
        columns.iter().filter_map(|column| values.get(*column)).sum::<u64>()
    };
    counters.map(of).sum()
}

/// Returns the number of packets that were dropped since boot because a processor's backlog was full, over all
/// processors (/proc/net/softnet_stat, second column; net/core/net-procfs.c).
fn backlogs() -> u64 {
    let text = read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let of = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_all_devices_are_added() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0: 1 2 3 40 50 6 7 8 9 10 11 120 13 14 15 16\n";
        assert_eq!(sum(text, &[RECEIVED_DROP, RECEIVED_FIFO]), 99);
        assert_eq!(sum(text, &[SENT_DROP]), 132);
        assert_eq!(sum("", &[SENT_DROP]), 0);
    }
}
