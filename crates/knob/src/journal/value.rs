//! Comparison of values that may be spelled differently.

use crate::Domain;

/// Returns true if two values of a domain mean the same setting. The kernel may print a value in another spelling
/// than the written one ("on" for every member, or once for all).
pub fn same(domain: &Domain, a: &str, b: &str) -> bool {
    match domain {
        Domain::Each(inner) => {
            let (a, b): (Vec<&str>, Vec<&str>) = (a.split(';').collect(), b.split(';').collect());
            let members = a.len().max(b.len());
            let fits = |parts: &[&str]| parts.len() == 1 || parts.len() == members;
            let at = |parts: &[&'_ str], n: usize| parts[if parts.len() == 1 { 0 } else { n }].to_owned();
            fits(&a) && fits(&b) && (0..members).all(|n| same(inner, &at(&a, n), &at(&b, n)))
        }
        _ => a.split_ascii_whitespace().eq(b.split_ascii_whitespace()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_and_meaning_does() {
        assert!(same(&Domain::Ints(3, 0, 9), "1\t2\t3", "1 2 3"));
        assert!(!same(&Domain::Ints(3, 0, 9), "1 2 3", "1 2 4"));
        let each = Domain::Each(&Domain::CpuList);
        assert!(same(&each, "0-3", "0-3;0-3"));
        assert!(!same(&each, "0-3;0", "0-3"));
        assert!(!same(&each, "0;0;0", "0;0"));
        assert!(same(&Domain::Name, "cubic", "cubic"));
    }
}
