//! Names of entries, relative to the root of a copy.

use serde::{Deserialize, Serialize};

/// The longest name in bytes: one less than PATH_MAX of Linux, which counts the final NUL.
const LONGEST: usize = 4095;

/// The name of an entry relative to the root of a copy: components with '/' between them. No component is empty, "." or
/// "..". The empty name is the root itself.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct RelativeName(Vec<u8>);

impl RelativeName {
    /// Returns the name of the root.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the name with these bytes, or `None` if they are no name: a component is empty, "." or "..", there is a
    /// NUL, or the name is longer than Linux takes.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        is_name(bytes).then(|| RelativeName(bytes.to_vec()))
    }

    fn of(bytes: Vec<u8>) -> Option<Self> {
        is_name(&bytes).then_some(RelativeName(bytes))
    }

    /// Returns the name of the entry `inner` below this one, or `None` if that is no name.
    pub fn join(&self, inner: &[u8]) -> Option<Self> {
        match (self.0.is_empty(), inner.is_empty()) {
            (true, _) => Self::parse(inner),
            (_, true) => Some(self.clone()),
            (false, false) => Self::of([self.as_bytes(), b"/", inner].concat()),
        }
    }

    /// Returns the name of the folder that holds this entry, and the entry's name in it; `None` for the root.
    pub(crate) fn split(&self) -> Option<(RelativeName, &[u8])> {
        let (folder, leaf) = match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&b""[..], &self.0[..]),
        };
        (!leaf.is_empty()).then(|| (RelativeName(folder.to_vec()), leaf))
    }

    /// Returns this name and those of the folders above it, the root last.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = RelativeName> {
        std::iter::successors(Some(self.clone()), |name| name.split().map(|(folder, _)| folder))
    }

    /// Returns the first component; empty for the root.
    pub(crate) fn first(&self) -> &[u8] {
        self.0.split(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// Returns the name below the first component; the root if there is only one.
    pub(crate) fn without_first(&self) -> RelativeName {
        let inner = self.0.iter().position(|byte| *byte == b'/').map(|at| self.0[at + 1..].to_vec());
        RelativeName(inner.unwrap_or_default())
    }

    /// Returns the name of the entry below the entry `above`, which is the root if both are one; `None` if it does not lie
    /// there.
    pub(crate) fn below(&self, above: &RelativeName) -> Option<RelativeName> {
        if above.0.is_empty() {
            return Some(self.clone());
        }
        match self.0.strip_prefix(above.as_bytes())? {
            [] => Some(Self::root()),
            [b'/', inner @ ..] => Some(RelativeName(inner.to_vec())),
            _ => None,
        }
    }

    /// Returns the bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for RelativeName {
    type Error = &'static str;

    fn try_from(bytes: Vec<u8>) -> Result<Self, &'static str> {
        Self::of(bytes).ok_or("a name leads out of the copy or is too long")
    }
}

fn is_name(bytes: &[u8]) -> bool {
    let fine = |component: &[u8]| !matches!(component, b"" | b"." | b"..") && !component.contains(&0);
    let is_fine = bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(fine);
    is_fine && bytes.len() <= LONGEST
}

impl From<RelativeName> for Vec<u8> {
    fn from(name: RelativeName) -> Self {
        name.0
    }
}

impl std::fmt::Debug for RelativeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for bad in [&b"/"[..], b"/etc", b"a//b", b"a/", b".", b"..", b"a/../b", b"./a", b"a\0b"] {
            assert_eq!(RelativeName::parse(bad), None, "{}", bad.escape_ascii());
            assert!(RelativeName::try_from(bad.to_vec()).is_err());
        }
        assert_eq!(RelativeName::parse(&[b'a'; 4096]), None);
        for good in [&b""[..], b"a", b"a/b", b"...", b"-rf", b"a\nb", b"\xff\xfe", b"a b/c"] {
            assert_eq!(RelativeName::parse(good).expect("a name").as_bytes(), good);
        }
    }

    #[test]
    fn names_are_joined_and_split() {
        let name = |bytes: &[u8]| RelativeName::parse(bytes).expect("a name");
        assert_eq!(name(b"a").join(b"b/c"), Some(name(b"a/b/c")));
        assert_eq!(name(b"").join(b"b"), Some(name(b"b")));
        assert_eq!(name(b"a").join(b""), Some(name(b"a")));
        assert_eq!(name(b"a").join(b"../b"), None);
        assert_eq!(name(b"a/b/c").split(), Some((name(b"a/b"), &b"c"[..])));
        assert_eq!(name(b"c").split(), Some((name(b""), &b"c"[..])));
        assert_eq!(name(b"").split(), None);
        assert!(name(b"a/b").upwards().eq([name(b"a/b"), name(b"a"), name(b"")]));
        assert_eq!((name(b"a/b").first(), name(b"").first()), (&b"a"[..], &b""[..]));
        assert_eq!((name(b"a/b/c").without_first(), name(b"a").without_first()), (name(b"b/c"), name(b"")));
        let below = |above: &[u8]| name(b"a/b/c").below(&name(above));
        assert_eq!([below(b""), below(b"a/b")], [Some(name(b"a/b/c")), Some(name(b"c"))]);
        assert_eq!([below(b"a/b/c"), below(b"a"), below(b"b")], [Some(name(b"")), Some(name(b"b/c")), None]);
        assert_eq!([below(b"a/b/cd"), name(b"ab").below(&name(b"a"))], [None, None]);
    }
}
