//! The names that alone are copied.

use std::cmp::Ordering;

use crate::name::RelativeName;

/// Names below a source folder, each with all that is below it. They are in the order of a walk: a folder
/// before what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameList(Vec<RelativeName>);

impl NameList {
    /// Returns the list of these names, in which none is below another one.
    pub fn new(mut names: Vec<RelativeName>) -> Self {
        names.sort_by(in_order);
        let mut list: Vec<RelativeName> = Vec::with_capacity(names.len());
        for name in names {
            if !list.last().is_some_and(|last| has(last, &name)) {
                list.push(name);
            }
        }
        NameList(list)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RelativeName> {
        self.0.iter()
    }
}

/// Compares names component by component.
fn in_order(one: &RelativeName, other: &RelativeName) -> Ordering {
    fn components(name: &RelativeName) -> impl Iterator<Item = &[u8]> {
        name.as_bytes().split(|byte| *byte == b'/')
    }
    components(one).cmp(components(other))
}

/// Returns true if `name` is `folder` or below it.
fn has(folder: &RelativeName, name: &RelativeName) -> bool {
    let (folder, name) = (folder.as_bytes(), name.as_bytes());
    let below = name.strip_prefix(folder);
    folder.is_empty() || below.is_some_and(|below| matches!(below, [] | [b'/', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_a_walk_and_each_once() {
        let list = |names: &[&str]| {
            let parse = |name: &&str| RelativeName::parse(name.as_bytes()).expect("a name");
            let list = NameList::new(names.iter().map(parse).collect());
            list.iter().map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(list(&["b", "a.b", "a/c", "a/b/d", "b"]), ["a/b/d", "a/c", "a.b", "b"]);
        assert_eq!(list(&["a/b", "a.b", "a", "a/c/d"]), ["a", "a.b"]);
        assert_eq!(list(&["x", "", "a"]), [""]);
        assert!(list(&[]).is_empty());
    }
}
