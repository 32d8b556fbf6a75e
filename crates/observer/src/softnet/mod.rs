//! The work of the kernel's receive loop, over all cores, from /proc/net/softnet_stat.
//!
//! The columns are hexadecimal (`softnet_seq_show` in net/core/net-procfs.c): 0 processed, 1 dropped (backlog full:
//! net.core.netdev_max_backlog), 2 time_squeeze (work left when the budget of net.core.netdev_budget or
//! netdev_budget_usecs ran out), 9 received_rps, 10 flow_limit, 11 the current backlog length, 12 the core (since Linux
//! 5.10).

use std::collections::BTreeMap;

use landspeed_record::{Observations, SoftnetCounts};

use crate::figures::headlines;
use crate::window::difference;
use crate::{Error, Observer, RunPolicy, procfile};

const PATH: &str = "/proc/net/softnet_stat";

/// The indices of the columns that are counters, with their names.
const COUNTERS: [(usize, &str); 5] =
    [(0, "processed"), (1, "dropped"), (2, "time_squeeze"), (9, "received_rps"), (10, "flow_limit")];
/// The index of the column with the number of packets in the backlog. It is a current value, not a counter.
const BACKLOG: usize = 11;
const CORE: usize = 12;

pub(crate) static SOFTNET: Observer = Observer {
    name: "softnet",
    about: "packets taken, dropped and left over by the kernel's receive loop, over all cores",
    cannot_see: &[
        "whose packets they are: the counters are the machine's, over all namespaces and links",
        "the longest backlog: only its length at the window's end is shown",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        counts: SoftnetCounts => {
            "packets", "taken by the receive loop": counts.0.get("processed").copied();
            "packets dropped", "the backlog was full (net.core.netdev_max_backlog)": counts.0.get("dropped").copied();
            "time squeezes", "packets were left over when net.core.netdev_budget ran out":
                counts.0.get("time_squeeze").copied();
        }
    },
    can_run: || procfile::readable(PATH),
    watch: |_| difference(|| parse(&procfile::read(PATH)?), tell),
};

/// The columns of each core.
type SoftnetColumns = BTreeMap<u32, Vec<u32>>;

fn tell(before: &SoftnetColumns, after: &SoftnetColumns, seen: &mut Observations) {
    let counters = moved(before, after);
    seen.unseen.extend(steered(&counters));
    seen.put(SoftnetCounts(counters));
}

/// Returns a note if RPS moved packets to other cores, because the processor time for these packets may not be charged
/// to any thread of the workload.
fn steered(counters: &BTreeMap<String, u64>) -> Option<String> {
    let woken = counters.get("received_rps").copied().filter(|woken| *woken > 0)?;
    Some(format!(
        "softnet: RPS woke other cores {woken} times: unless this kernel accounts interrupt time, what they did for \
         packets is charged to whatever ran there, not to the workload's threads"
    ))
}

fn parse(text: &str) -> Result<SoftnetColumns, Error> {
    let mut cores = SoftnetColumns::new();
    for (row, line) in (0..).zip(text.lines()) {
        let columns: Result<Vec<u32>, _> =
            line.split_ascii_whitespace().map(|column| u32::from_str_radix(column, 16)).collect();
        let columns =
            columns.map_err(|_| Error::shape(PATH, format!("line {} is not hexadecimal", row + 1)))?;
        if columns.len() < 3 {
            return Err(Error::shape(PATH, format!("line {} has {} columns", row + 1, columns.len())));
        }
        // Older kernels do not print the core's number. Their lines are the online cores in ascending order.
        cores.insert(columns.get(CORE).copied().unwrap_or(row), columns);
    }
    Ok(cores)
}

/// Returns the growth of each counter and the backlog of the second reading, summed over cores. The counters wrap at 32
/// bits.
fn moved(before: &SoftnetColumns, after: &SoftnetColumns) -> BTreeMap<String, u64> {
    let mut total: BTreeMap<String, u64> = BTreeMap::new();
    for (core, columns) in after {
        let Some(earlier) = before.get(core) else { continue };
        for (column, name) in COUNTERS {
            if let (Some(now), Some(then)) = (columns.get(column), earlier.get(column)) {
                *total.entry(name.into()).or_default() += u64::from(now.wrapping_sub(*then));
            }
        }
        if let Some(waiting) = columns.get(BACKLOG) {
            *total.entry("backlog".into()).or_default() += u64::from(*waiting);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_over_cores_and_survive_a_wrap() {
        let before =
            parse("fffffffe 0 0 0 0 0 0 0 0 1 0 5 0 0 0\n00000010 2 3 0 0 0 0 0 0 0 0 0 1 0 0\n").unwrap();
        let after =
            parse("00000003 0 0 0 0 0 0 0 0 4 0 7 0 0 0\n00000011 4 3 0 0 0 0 0 0 0 0 1 1 0 0\n").unwrap();
        let seen = moved(&before, &after);
        assert_eq!((seen["processed"], seen["dropped"], seen["time_squeeze"]), (5 + 1, 2, 0));
        assert_eq!((seen["received_rps"], seen["flow_limit"], seen["backlog"]), (3, 0, 8));
    }

    #[test]
    fn work_on_other_cores_is_reported() {
        let counters = |rps| BTreeMap::from([("received_rps".to_owned(), rps)]);
        assert!(steered(&counters(7)).is_some_and(|line| line.contains("7 times")));
        assert_eq!(steered(&counters(0)), None);
        assert_eq!(steered(&BTreeMap::new()), None);
    }

    #[test]
    fn cores_are_matched_by_number_where_the_kernel_gives_it() {
        let before = parse("1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n5 0 0 0 0 0 0 0 0 0 0 0 2 0 0\n").unwrap();
        let after = parse("8 0 0 0 0 0 0 0 0 0 0 0 2 0 0\n").unwrap();
        assert_eq!(moved(&before, &after)["processed"], 3);
        let old = parse("1 0 0 0 0 0 0 0 0 0\n").unwrap();
        assert!(!moved(&old, &old).contains_key("backlog"));
    }

    #[test]
    fn garbage_is_refused() {
        for bad in ["x 0 0\n", "1 2\n", "123456789 0 0\n", "\n"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(!parse(&procfile::read(PATH).unwrap()).unwrap().is_empty());
    }
}
