//! The entries that a copy ignores: the rules of .gitignore files.

use super::glob::Glob;
use crate::name::RelativeName;

/// The bytes that some editors begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Rules about names below a source folder. Of those that a name fits, the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoreRules(Vec<Rule>);

/// One line of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    glob: Glob,
    /// True for entries that are copied after all: the line began with '!'.
    is_exception: bool,
    /// True if the rule is about folders alone: the line ended with '/'.
    only_folders: bool,
}

/// An error about a line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ignore rule \"{}\" is no pattern: close its brackets, and write \\\\ for a backslash", .0.escape_ascii())]
pub struct RuleError(Vec<u8>);

impl IgnoreRules {
    /// Returns the rules of these lines, as gitignore(5) describes them: empty lines and comments are none.
    ///
    /// # Errors
    /// Returns an error about the first line that is no rule.
    pub fn parse<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>) -> Result<Self, RuleError> {
        let rules = lines.into_iter().map(|line| rule(line.as_ref()));
        Ok(IgnoreRules(rules.filter_map(Result::transpose).collect::<Result<_, _>>()?))
    }

    /// Returns true if an entry below a source folder is left alone. The folders above it are not asked about: what lies in
    /// a folder that is left alone is never looked at.
    pub(crate) fn ignores(&self, inner: &RelativeName, is_folder: bool) -> bool {
        let fits = |rule: &&Rule| (is_folder || !rule.only_folders) && rule.glob.matches(inner.as_bytes());
        self.0.iter().rev().find(fits).is_some_and(|rule| !rule.is_exception)
    }
}

/// Returns the rule of a line; `None` if it has none.
fn rule(line: &[u8]) -> Result<Option<Rule>, RuleError> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let line = without_blanks(line.strip_suffix(b"\r").unwrap_or(line));
    let (is_exception, text) = line.strip_prefix(b"!").map_or((false, line), |text| (true, text));
    let (only_folders, text) = text.strip_suffix(b"/").map_or((false, text), |text| (true, text));
    if line.starts_with(b"#") || text.is_empty() {
        return Ok(None);
    }
    // A slash anywhere but at the end binds the rule to the source folder.
    let is_bound = text.contains(&b'/');
    let glob =
        Glob::parse(text.strip_prefix(b"/").unwrap_or(text)).ok_or_else(|| RuleError(line.to_vec()))?;
    let glob = if is_bound { glob } else { glob.in_any_folder() };
    Ok(Some(Rule { glob, is_exception, only_folders }))
}

/// Returns a line without the blanks at its end. One after a backslash belongs to the pattern.
fn without_blanks(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = line {
        let backslashes = rest.iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 1 {
            break;
        }
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignores(lines: &[&str], name: &str, is_folder: bool) -> bool {
        let name = RelativeName::parse(name.as_bytes()).expect("a name");
        IgnoreRules::parse(lines).expect("rules").ignores(&name, is_folder)
    }

    #[test]
    fn rules_are_those_of_gitignore() {
        for (lines, name, is_folder, expected) in [
            (&["*.o"][..], "a/b/x.o", false, true),
            (&["*.o"], "x.c", false, false),
            (&["/x"], "x", false, true),
            (&["/x"], "a/x", false, false),
            (&["a/x"], "a/x", false, true),
            (&["a/x"], "b/a/x", false, false),
            (&["build/"], "a/build", true, true),
            (&["build/"], "a/build", false, false),
            (&["a/**"], "a", true, false),
            (&["a/**"], "a/b/c", false, true),
            (&["**/a/b"], "c/a/b", false, true),
            (&["**"], "any/thing", false, true),
            (&["*.log", "!keep.log"], "a/keep.log", false, false),
            (&["!keep.log", "*.log"], "keep.log", false, true),
            (&["# comment", "", "   "], "# comment", false, false),
            (&["\\#x"], "#x", false, true),
            (&["\\!x"], "!x", false, true),
            (&["x  "], "x", false, true),
            (&["x\\ "], "x ", false, true),
            (&["x\r"], "x", false, true),
            (&["\u{feff}x"], "x", false, true),
            (&["/"], "x", true, false),
            (&[], "x", false, false),
        ] {
            assert_eq!(ignores(lines, name, is_folder), expected, "{lines:?} {name}");
        }
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        let error = IgnoreRules::parse(["*.o", "[a"]).unwrap_err().to_string();
        assert!(error.starts_with("the ignore rule \"[a\" is no pattern"), "{error}");
    }

    #[test]
    fn rules_and_names_need_not_be_text() {
        let rules = IgnoreRules::parse([&b"*\xff"[..], b"/\xfe/"]).unwrap();
        let name = |bytes: &[u8]| RelativeName::parse(bytes).expect("a name");
        assert!(rules.ignores(&name(b"d/a\xff"), false) && rules.ignores(&name(b"\xfe"), true));
        assert!(!rules.ignores(&name(b"d/\xfe"), true) && !rules.ignores(&name(b"a\xffb"), false));
    }
}
