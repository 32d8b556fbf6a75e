//! A host's settings as other tools report them.

use super::output;

/// All settings that a knob could have changed, as (section, text).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostSnapshot(Vec<(String, String)>);

/// Names of counters, timers and caches, which change by themselves.
const MOVING: &[&str] =
    &["nf_conntrack_count", "route.flush", "tcp_fastopen_key", "conf.all.stable_secret", "random"];

impl HostSnapshot {
    pub(crate) fn of(ns: &str) -> HostSnapshot {
        let section = |name: &str, command: &str| {
            let out = output(&format!("ip netns exec {ns} bash -c '{command}' 2>/dev/null"));
            let text = String::from_utf8_lossy(&out.stdout);
            let kept: Vec<&str> = text.lines().filter(|l| !MOVING.iter().any(|m| l.contains(m))).collect();
            (name.to_owned(), kept.join("\n"))
        };
        let each = "for d in $(ls /sys/class/net); do echo == $d;";
        HostSnapshot(vec![
            // landspeed's congestion controls are left out: they are registered for the whole machine, and other tests
            // load some meanwhile.
            section("sysctl", "sysctl -a --pattern ^net 2>/dev/null | sed \"s/ ls_[a-z_0-9]*//g\" | sort"),
            section("link", "ip -o -d link | sed -E \"s/valid_lft [^ ]+|preferred_lft [^ ]+//g\""),
            section("address", "ip -o addr | sed -E \"s/(valid|preferred)_lft +[0-9]+sec//g\" | sort"),
            section("route4", "ip -4 -d route show table all | sort"),
            section("route6", "ip -6 -d route show table all | sed -E \"s/expires [0-9]+sec//g\" | sort"),
            section("features", &format!("{each} ethtool -k $d; done")),
            section(
                "coalesce",
                &format!("{each} ethtool -c $d; ethtool -g $d; ethtool -l $d; ethtool -a $d; done"),
            ),
            section("qdisc", "tc -d qdisc show"),
            section(
                "queues",
                "grep -r . /sys/class/net/*/queues/*/[rx]ps_* /sys/class/net/*/{threaded,gro_flush_timeout,napi_defer_hard_irqs,tx_queue_len}",
            ),
        ])
    }

    pub(crate) fn differences(&self, after: &HostSnapshot) -> Vec<String> {
        let mut found = Vec::new();
        for ((name, before), (_, after)) in self.0.iter().zip(&after.0) {
            let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
            found.extend(old.iter().filter(|l| !new.contains(l)).map(|l| format!("{name}: gone: {l}")));
            found.extend(new.iter().filter(|l| !old.contains(l)).map(|l| format!("{name}: new:  {l}")));
        }
        found
    }
}
