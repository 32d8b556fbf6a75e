//! Suggestions for misspelled names.

/// Returns "; did you mean mtu?" if a name in `known` is spelled similarly, and else an empty string. Error messages
/// about unknown names end with the returned text.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// Returns the first name in `known` with the least edit distance from `name` (a letter inserted, deleted, replaced,
/// or two swapped). Returns `None` if the distance exceeds one edit per three letters of `name`. One edit is always
/// allowed.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longest name that is compared, in letters. Longer text is not a misspelled name.
    const LONGEST: usize = 64;
    let letters = name.chars().count();
    if letters > LONGEST {
        return None;
    }
    let slips_in = |word: &str| strsim::osa_distance(&name.to_lowercase(), &word.to_lowercase());
    // The last part of a name such as "feng.f.bdp" or "balaji/latency" is often typed alone.
    let last = |word: &str| word.rsplit(['.', '/']).next().map_or(usize::MAX, slips_in);
    let slips = |&word: &&str| slips_in(word).min(last(word));
    let (near, slips) = known.into_iter().map(|word| (word, slips(&word))).min_by_key(|(_, slips)| *slips)?;
    (slips <= (letters / 3).max(1)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_distinguished_from_other_words() {
        let known = ["mtu", "tso", "gro", "tcp-rmem", "rate", "feng.f.bdp", "balaji/latency"];
        for (name, near) in [
            ("mtuu", Some("mtu")),
            ("gor", Some("gro")),
            ("TSO", Some("tso")),
            ("rat", Some("rate")),
            ("tcp-rmen", Some("tcp-rmem")),
            ("bdp", Some("feng.f.bdp")),
            ("latencies", Some("balaji/latency")),
            ("balaji/latencies", Some("balaji/latency")),
            ("warp-drive", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), near, "{name}");
        }
        assert_eq!(did_you_mean(&"x".repeat(1 << 20), known), "");
        assert_eq!(did_you_mean("mtuu", known), "; did you mean mtu?");
    }
}
