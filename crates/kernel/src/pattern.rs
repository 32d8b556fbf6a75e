//! Matches names against patterns with the wildcard "*".

/// Returns true if `name` matches `pattern`, in which "*" means any text, including none.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name) in
            [("tcp_*", "tcp_"), ("*_poll", "ixgbe_poll"), ("a*b*c", "a1b2b3c"), ("abc", "abc")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("tcp_*", "mptcp_x"), ("*_poll", "poll"), ("a*b*c", "acb"), ("abc", "abcd"), ("a*a", "a")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
