//! Parses and applies `classes.txt`, the table of kernel symbols and their cost classes. The head of the table
//! describes its syntax.

use std::collections::HashMap;
use std::sync::LazyLock;

use landspeed_kernel::pattern::matches;
use landspeed_record::CostClass;

use super::kallsyms::KernelFunction;

const TEXT: &str = include_str!("classes.txt");

pub(super) static RULES: LazyLock<SymbolRules> =
    LazyLock::new(|| SymbolRules::parse(TEXT).unwrap_or_else(|why| panic!("classes.txt: {why}")));

/// The rule for samples whose innermost function has a certain symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SymbolRule {
    /// The sample belongs to this class.
    Class(CostClass),
    /// The processor was idle: the sample does not count.
    Idle,
    /// The symbol is a helper, so the class is that of its caller.
    Caller {
        /// The class if no caller has one.
        otherwise: Option<CostClass>,
        /// True if the helper turns interrupts on. A sample of the timer that was due while interrupts were off is
        /// taken in this helper.
        interrupts: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct SymbolRules {
    exact: HashMap<&'static str, SymbolRule>,
    /// Rules for pairs of a helper and its caller. There are few of them.
    pairs: Vec<((&'static str, &'static str), SymbolRule)>,
    /// Rules for symbols that match a pattern with "*". Patterns with more letters come first.
    patterns: Vec<(&'static str, SymbolRule)>,
    /// Rules for modules whose names match a pattern. Patterns with more letters come first.
    modules: Vec<(&'static str, SymbolRule)>,
}

impl SymbolRules {
    fn parse(text: &'static str) -> Result<Self, String> {
        let mut rules = SymbolRules::default();
        let mut section = None;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = Some(header(name).ok_or_else(|| format!("line {number}: no class '{name}'"))?);
                continue;
            }
            for word in line.split_ascii_whitespace() {
                let rule = section.ok_or_else(|| format!("line {number}: '{word}' before any class"))?;
                rules.add(word, rule).map_err(|why| format!("line {number}: '{word}' {why}"))?;
            }
        }
        // The sort is stable. The order in the file does not matter, since two patterns of equal length must agree.
        rules.patterns.sort_by_key(|(pattern, _)| std::cmp::Reverse(letters(pattern)));
        rules.modules.sort_by_key(|(pattern, _)| std::cmp::Reverse(letters(pattern)));
        Ok(rules)
    }

    fn add(&mut self, word: &'static str, rule: SymbolRule) -> Result<(), &'static str> {
        if let Some((helper, caller)) = word.split_once('<') {
            if !is_symbol(helper) || !is_symbol(caller) || helper.contains('*') || caller.contains('*') {
                return Err("is no pair of symbols");
            }
            if self.pairs.iter().any(|(pair, _)| *pair == (helper, caller)) {
                return Err("is there twice");
            }
            self.pairs.push(((helper, caller), rule));
            return Ok(());
        }
        let (list, pattern) = match word.strip_prefix('@') {
            Some(module) => (&mut self.modules, module),
            None => (&mut self.patterns, word),
        };
        if !is_symbol(pattern) {
            return Err("is no symbol");
        }
        if word == pattern && !pattern.contains('*') {
            return self.exact.insert(word, rule).map_or(Ok(()), |_| Err("is there twice"));
        }
        if letters(pattern) < 3 {
            return Err("would match nearly anything");
        }
        if list.iter().any(|(other, _)| *other == pattern) {
            return Err("is there twice");
        }
        list.push((pattern, rule));
        Ok(())
    }

    /// Returns the rule for a function; `None` if none matches.
    pub(super) fn of(&self, function: KernelFunction<'_>) -> Option<SymbolRule> {
        let find = |list: &[(&'static str, SymbolRule)], name| {
            list.iter().find(|(pattern, _)| matches(pattern, name)).map(|(_, rule)| *rule)
        };
        let by_name = self.exact.get(function.name).copied().or_else(|| find(&self.patterns, function.name));
        by_name.or_else(|| find(&self.modules, function.module))
    }

    /// Returns the rule for the pair of a helper and its caller; `None` if the table has none.
    pub(super) fn of_pair(
        &self,
        helper: KernelFunction<'_>,
        caller: KernelFunction<'_>,
    ) -> Option<SymbolRule> {
        self.pairs.iter().find(|(pair, _)| *pair == (helper.name, caller.name)).map(|(_, rule)| *rule)
    }
}

/// Parses a section's header, such as "tcp", "idle", "caller", "caller, else copy" or "interrupts-on, else lock";
/// `None` if it is not valid.
fn header(text: &str) -> Option<SymbolRule> {
    let class = |name: &str| CostClass::ALL.into_iter().find(|class| class.name() == name);
    let (kind, otherwise) = match text.split_once(", else ") {
        Some((kind, name)) => (kind, Some(class(name)?)),
        None => (text, None),
    };
    match kind {
        "caller" => Some(SymbolRule::Caller { otherwise, interrupts: false }),
        "interrupts-on" => Some(SymbolRule::Caller { otherwise, interrupts: true }),
        _ if otherwise.is_some() => None,
        "idle" => Some(SymbolRule::Idle),
        name => class(name).map(SymbolRule::Class),
    }
}

fn is_symbol(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'*'))
}

/// Returns how specific a pattern is: its number of characters other than "*".
fn letters(pattern: &str) -> usize {
    pattern.bytes().filter(|byte| *byte != b'*').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, module: &str) -> Option<SymbolRule> {
        RULES.of(KernelFunction { name, module })
    }

    /// Returns a name that `pattern` matches and that no function has.
    fn example(pattern: &str) -> String {
        pattern.replace('*', "zq9")
    }

    #[test]
    fn every_rule_can_be_reached_and_none_is_a_duplicate() {
        let table = &*RULES;
        for (name, rule) in &table.exact {
            let by_pattern = table.patterns.iter().find(|(pattern, _)| matches(pattern, name));
            assert_ne!(by_pattern.map(|(_, other)| other), Some(rule), "{name} is needless");
        }
        for ((helper, caller), rule) in &table.pairs {
            assert!(matches!(of(helper, ""), Some(SymbolRule::Caller { .. })), "{helper} is no helper");
            assert_ne!(of(caller, ""), Some(*rule), "{helper}<{caller} is needless");
        }
        for list in [&table.patterns, &table.modules] {
            for (at, (pattern, rule)) in list.iter().enumerate() {
                let others = || list.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, row)| row);
                let first = list.iter().position(|(other, _)| matches(other, &example(pattern)));
                assert_eq!(first, Some(at), "{pattern} is never asked");
                let next = others().find(|(other, _)| matches(other, &example(pattern)));
                assert_ne!(next.map(|(_, other)| other), Some(rule), "{pattern} is needless: {next:?}");
            }
        }
    }

    #[test]
    fn rules_that_match_the_same_name_give_the_same_class() {
        // Two different patterns with a "*" only at the end and equally many letters never match the same name. The
        // other patterns are checked with the symbols of this machine's kernel, if it shows them.
        let begins = |pattern: &str| pattern.strip_suffix('*').is_some_and(|rest| !rest.contains('*'));
        let other: Vec<_> = RULES.patterns.iter().filter(|(pattern, _)| !begins(pattern)).collect();
        let Ok(text) = std::fs::read_to_string(super::super::kallsyms::PATH) else { return };
        for name in text.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)) {
            if RULES.exact.contains_key(name) || !other.iter().any(|(pattern, _)| matches(pattern, name)) {
                continue;
            }
            let mut found = RULES.patterns.iter().filter(|(pattern, _)| matches(pattern, name));
            let (Some(first), Some(second)) = (found.next(), found.next()) else { continue };
            let tie = letters(first.0) == letters(second.0);
            assert!(!tie || first.1 == second.1, "{name}: {first:?} or {second:?}?");
        }
    }

    #[test]
    fn every_class_of_the_kernel_has_rules() {
        let table = &*RULES;
        for class in CostClass::ALL.into_iter().filter(|class| *class != CostClass::Application) {
            let rules = table.exact.values().chain(table.patterns.iter().map(|(_, rule)| rule));
            assert!(rules.copied().any(|rule| rule == SymbolRule::Class(class)), "{class:?}");
        }
        assert_eq!(of("no_such_function", ""), None);
    }

    #[test]
    fn a_symbol_is_judged_before_its_module() {
        assert_eq!(of("anything", "mlx5_core"), Some(SymbolRule::Class(CostClass::Driver)));
        assert_eq!(of("tcp_ack", "mlx5_core"), Some(SymbolRule::Class(CostClass::Tcp)));
        assert_eq!(of("anything", "no_such_module"), None);
    }

    #[test]
    fn mistakes_in_the_table_are_named_by_their_line() {
        for (bad, why) in [
            ("tcp_ack\n", "before any class"),
            ("[tpc]\n", "no class 'tpc'"),
            ("[tcp]\ntcp_ack tcp_ack\n", "twice"),
            ("[tcp]\ntcp_* # x\ntcp_*\n", "line 3"),
            ("[tcp]\nx*\n", "nearly anything"),
            ("[tcp]\ntcp-ack\n", "no symbol"),
            ("[tcp]\ntcp_*<a\n", "no pair"),
            ("[tcp]\na<b a<b\n", "twice"),
            ("[tcp, else ip]\n", "no class"),
            ("[caller, else nothing]\n", "no class"),
        ] {
            let error = SymbolRules::parse(bad).map(|_| ()).unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }
}
