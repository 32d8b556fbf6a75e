//! What a person may have meant by a name that there is not.

/// "; did you mean mtu?" where one of `known` is spelled almost so, else nothing: the end of an error about a name.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

/// The first of `known` with the fewest slips (a letter too many, too few, another, or two swapped), one in three
/// letters at most.
fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer text is no slip of the hand.
    const LONGEST: usize = 64;
    let letters = name.chars().count();
    if letters > LONGEST {
        return None;
    }
    let slips = |word: &&str| strsim::osa_distance(&name.to_lowercase(), &word.to_lowercase());
    let (near, slips) = known.into_iter().map(|word| (word, slips(&word))).min_by_key(|(_, slips)| *slips)?;
    (slips <= (letters / 3).max(1)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        let known = ["mtu", "tso", "gro", "tcp-rmem", "rate"];
        for (name, near) in [
            ("mtuu", Some("mtu")),
            ("gor", Some("gro")),
            ("TSO", Some("tso")),
            ("rat", Some("rate")),
            ("tcp-rmen", Some("tcp-rmem")),
            ("warp-drive", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), near, "{name}");
        }
        assert_eq!(did_you_mean(&"x".repeat(1 << 20), known), "");
        assert_eq!(did_you_mean("mtuu", known), "; did you mean mtu?");
    }
}
