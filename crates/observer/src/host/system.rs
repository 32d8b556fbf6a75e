//! Reads facts about the system: names, versions, memory, load, and the congestion controls of the kernel's TCP.

use landspeed_record::HostFacts;

use crate::files::SystemFiles;

/// Fills in the facts about the system. Call it after `namespace::fill`, because the result depends on the namespace:
/// only the machine's first network namespace may use a restricted congestion control as its default.
pub(super) fn fill(root: &SystemFiles, facts: &mut HostFacts) {
    let system = rustix::system::uname();
    facts.hostname = system.nodename().to_string_lossy().into_owned();
    facts.kernel = system.release().to_string_lossy().into_owned();
    facts.distribution = distribution(root).unwrap_or_default();
    facts.boot_id = root.word("proc/sys/kernel/random/boot_id").unwrap_or_default();
    facts.memory_bytes = root.memory("MemTotal").unwrap_or_default();
    facts.load = root.word("proc/loadavg").and_then(|text| text.split(' ').next()?.parse().ok());
    facts.congestion_available = congestion(root, "available");
    facts.congestion_defaults =
        if facts.initial_netns { facts.congestion_available.clone() } else { congestion(root, "allowed") };
    if facts.boot_id.is_empty() {
        facts.notes.push(
            "boot id: /proc/sys/kernel/random/boot_id cannot be read, so processor time of hosts that share one \
             machine would be counted twice"
                .into(),
        );
    }
}

/// Returns the distribution's name from os-release(5), from the first of its two files that exists.
fn distribution(root: &SystemFiles) -> Option<String> {
    let text = root.word("etc/os-release").or_else(|| root.word("usr/lib/os-release"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    let bare = bare.or_else(|| value.strip_prefix('\'').and_then(|v| v.strip_suffix('\''))).unwrap_or(value);
    Some(bare.replace("\\\"", "\""))
}

/// Returns the names of congestion controls: the loaded ones if `which` is "available", and the ones that need no
/// privilege if it is "allowed". With CAP_NET_ADMIN a socket may use any congestion control that is loaded or can be
/// loaded.
fn congestion(root: &SystemFiles, which: &str) -> Vec<String> {
    let names = root.word(format!("proc/sys/net/ipv4/tcp_{which}_congestion_control")).unwrap_or_default();
    names.split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;
    use crate::host::tests::files_below;

    #[test]
    fn only_the_first_namespace_may_default_to_a_restricted_congestion_control() {
        let folder = files_below(&[
            ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno bbr cubic\n"),
            ("proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno bbr\n"),
        ]);
        let defaults = |initial_netns| {
            let mut facts = HostFacts { initial_netns, ..HostFacts::default() };
            fill(&SystemFiles::below(folder.path()), &mut facts);
            facts.congestion_defaults
        };
        assert_eq!(defaults(true), ["reno", "bbr", "cubic"]);
        assert_eq!(defaults(false), ["reno", "bbr"]);
    }

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        let folder = files_below(&[("proc/loadavg", "55.04 31.20 12.00 56/900 4711\n")]);
        let mut facts = HostFacts::default();
        fill(&SystemFiles::below(folder.path()), &mut facts);
        assert_eq!(facts.load, Some(55.04));
    }

    #[test]
    fn a_distribution_is_named_with_either_quotes_or_none() {
        for (text, name) in [
            (
                "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
                Some("Debian GNU/Linux 12 (bookworm)"),
            ),
            ("PRETTY_NAME='Alpine'\n", Some("Alpine")),
            ("PRETTY_NAME=Arch\n", Some("Arch")),
            ("PRETTY_NAME=\"\n", Some("\"")),
            ("NAME=x\n", None),
        ] {
            let folder = files_below(&[("etc/os-release", text)]);
            assert_eq!(distribution(&SystemFiles::below(folder.path())).as_deref(), name, "{text:?}");
        }
    }

    #[test]
    fn memory_is_read_in_kibibytes_or_not_at_all() {
        for (text, bytes) in [
            ("MemTotal:       16318480 kB\nMemFree: 1 kB\n", Some(Bytes::kib(16_318_480))),
            ("MemTotal: many kB\n", None),
            ("MemTotal: 12\n", None),
            ("", None),
        ] {
            let folder = files_below(&[("proc/meminfo", text)]);
            assert_eq!(SystemFiles::below(folder.path()).memory("MemTotal"), bytes, "{text:?}");
        }
    }
}
