//! Determines the network namespace of the calling thread, and whether it is the machine's first one.

use std::fs;
use std::path::Path;

use landspeed_record::HostFacts;

/// The kernel's name for the machine's first PID namespace, in all kernels that number namespaces.
const FIRST_PID: &str = "pid:[4026531836]";
/// The kernel's name for the machine's first network namespace, since Linux 6.18 (`enum init_ns_ino`,
/// include/uapi/linux/nsfs.h). Later namespaces have greater numbers.
const FIRST_NET: &str = "net:[4026531833]";

pub(super) fn fill(facts: &mut HostFacts) {
    match landspeed_kernel::netlink::netns_cookie() {
        Ok(cookie) => facts.netns_cookie = cookie,
        Err(error) => facts.notes.push(format!("network namespace: {error}")),
    }
    match initial() {
        Ok(initial) => facts.initial_netns = initial,
        Err(why) => facts.notes.push(format!("network namespace: taken for one of several: {why}")),
    }
}

/// Returns true if `namespace` is the machine's first network namespace. It is given by its name in /proc, such as
/// "net:[4026531833]".
pub(crate) fn is_first(namespace: &Path) -> bool {
    namespace == Path::new(FIRST_NET) || fs::read_link("/proc/1/ns/net").is_ok_and(|first| first == namespace)
}

/// Returns true if the calling thread is in the machine's first network namespace: if its namespace has the first one's
/// number, or is the namespace of kthreadd (process 2), which never leaves the first one. Returns an error in a
/// container, where process 2 is not kthreadd and process 1 may be in any namespace.
fn initial() -> Result<bool, String> {
    let own = target("/proc/thread-self/ns/net")?;
    if own == FIRST_NET {
        return Ok(true);
    }
    if target("/proc/self/ns/pid")? != FIRST_PID {
        return Err("the machine's own processes cannot be seen from this PID namespace".into());
    }
    let first = target("/proc/2/ns/net").or_else(|_| target("/proc/1/ns/net"));
    Ok(own == first.map_err(|error| format!("{error}; root can"))?)
}

fn target(path: &str) -> Result<String, String> {
    let target = fs::read_link(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    Ok(target.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_leaves_the_first_namespace_is_noticed() {
        let after = landspeed_kernel::netlink::in_throwaway(|| {
            let mut facts = HostFacts::default();
            fill(&mut facts);
            facts
        });
        let facts = match after {
            Ok(facts) => facts,
            Err(error) => return eprintln!("SKIP: making a network namespace needs root: {error}"),
        };
        assert!(!facts.initial_netns);
        assert_ne!(facts.netns_cookie, landspeed_kernel::netlink::netns_cookie().unwrap());
    }
}
