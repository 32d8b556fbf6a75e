//! The names of the files of journals.

/// Returns the file name of a namespace's journal: "net-7.jsonl".
pub(super) fn name_of(netns_cookie: u64) -> String {
    format!("net-{netns_cookie}.jsonl")
}

/// Returns the name under which a journal is created: "net-7.jsonl.new". No setting is changed before the journal has
/// its final name.
pub(super) fn draft_of(name: &str) -> String {
    format!("{name}.new")
}

/// Returns the final name of a journal that is created as `name`; `None` for a name of another form.
pub(super) fn draft_for(name: &str) -> Option<&str> {
    name.strip_suffix(".new").filter(|name| cookie_of(name).is_some())
}

/// Returns the cookie in a journal's file name: 7 for "net-7.jsonl", `None` for a name of another form.
pub(super) fn cookie_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("net-")?.strip_suffix(".jsonl")?;
    digits.parse().ok().filter(|cookie| name_of(*cookie) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_cookies() {
        assert_eq!(cookie_of(&name_of(42)), Some(42));
        for bad in ["net-.jsonl", "net-007.jsonl", "net-1.jsonl.bak", "net-+1.jsonl", "net--1.jsonl"] {
            assert_eq!(cookie_of(bad), None, "{bad}");
        }
    }
}
