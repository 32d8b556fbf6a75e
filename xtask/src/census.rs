//! `xtask census`: prints figures of the size of the code base, by which a redesign is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use syn::{Attribute, FnArg, Ident, ImplItem, Item, Signature, TraitItem, Type, Visibility};

use crate::arrows;
use crate::incoming::entries;

/// Folders that are counted, where they exist.
const COUNTED: [&str; 3] = ["crates", "validate", "xtask"];
/// A file with more lines than this is counted as long.
const LONG: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Working tree to count, of another commit for example [default: this one]
    #[arg(long)]
    pub(crate) tree: Option<PathBuf>,
}

/// The numbers of lines of a source. Lines of `code` are neither blank nor comments.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    code: usize,
    comments: usize,
}

/// The counts over all sources.
#[derive(Debug, Default)]
struct Census {
    production: Lines,
    tests: Lines,
    long_files: usize,
    public_items: usize,
    tuple_parameters: usize,
    /// For each name of a public type, the crates that have a type of this name.
    types: BTreeMap<String, BTreeSet<String>>,
}

/// Prints the census of the working tree as a table.
pub(crate) fn print(root: &Path) -> Result<()> {
    let mut census = Census::default();
    for folder in COUNTED.map(|folder| root.join(folder)).iter().filter(|folder| folder.is_dir()) {
        let mut files = Vec::new();
        gather(folder, false, &mut files)?;
        for (file, is_test) in files {
            census.take(root, &file, is_test)?;
        }
    }
    let shared: Vec<&str> = census.shared_types().collect();
    let (crates, arrows) = arrows::counted(root)?;
    println!("| figure | value |\n|---|---|");
    let rows = [
        ("crates", crates),
        ("arrows between them", arrows),
        ("production lines", census.production.code),
        ("test lines", census.tests.code),
        ("comment lines of production", census.production.comments),
        ("public items", census.public_items),
        ("files over 400 lines", census.long_files),
        ("signatures with a tuple", census.tuple_parameters),
        ("public type names in more than one crate", shared.len()),
    ];
    rows.iter().for_each(|(figure, value)| println!("| {figure} | {value} |"));
    println!("\nIn more than one crate: {}.", shared.join(", "));
    Ok(())
}

/// Adds the sources in a folder to `files`. Each has a flag that is true for tests.
fn gather(folder: &Path, in_tests: bool, files: &mut Vec<(PathBuf, bool)>) -> Result<()> {
    let entries = entries(folder)?;
    let of_tests = test_modules(&entries)?;
    for entry in entries {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = in_tests || name == "tests" || name.ends_with("_tests") || of_tests.contains(&name);
        let is_source = entry
            .extension()
            .is_some_and(|extension| ["rs", "c", "h"].iter().any(|known| extension == *known));
        if entry.is_dir() {
            gather(&entry, is_test, files)?;
        } else if is_source {
            files.push((entry, is_test));
        }
    }
    Ok(())
}

/// Returns the names of the modules that the sources of one folder declare only for tests.
fn test_modules(entries: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut modules = BTreeSet::new();
    for entry in entries.iter().filter(|entry| entry.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(entry)?;
        let after = text.lines().zip(text.lines().skip(1)).filter(|(line, _)| *line == "#[cfg(test)]");
        let name = |line: &str| {
            line.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';')).map(str::to_owned)
        };
        modules.extend(after.filter_map(|(_, line)| name(line)));
    }
    Ok(modules)
}

impl Census {
    fn take(&mut self, root: &Path, file: &Path, is_test: bool) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        self.long_files += usize::from(text.lines().count() > LONG);
        let (production, tests) = if is_test { ("", text.as_str()) } else { parted(&text) };
        self.production.add(production);
        self.tests.add(tests);
        if is_test || file.extension().is_none_or(|extension| extension != "rs") {
            return Ok(());
        }
        let parsed = syn::parse_file(&text).with_context(|| format!("parse {}", file.display()))?;
        let krate = file.strip_prefix(root)?.components().take(2).last().map(|part| part.as_os_str());
        self.look(&parsed.items, &krate.unwrap_or_default().to_string_lossy());
        Ok(())
    }

    fn look(&mut self, items: &[Item], krate: &str) {
        for item in items {
            match item {
                Item::Struct(one) => self.see_type(&one.vis, &one.ident.to_string(), krate),
                Item::Enum(one) => self.see_type(&one.vis, &one.ident.to_string(), krate),
                Item::Type(one) => self.see_type(&one.vis, &one.ident.to_string(), krate),
                Item::Trait(one) => {
                    self.see_type(&one.vis, &one.ident.to_string(), krate);
                    one.items.iter().for_each(|item| {
                        if let TraitItem::Fn(function) = item {
                            self.see_signature(&function.sig);
                        }
                    });
                }
                Item::Fn(one) => {
                    self.see(&one.vis);
                    self.see_signature(&one.sig);
                }
                Item::Const(one) => self.see(&one.vis),
                Item::Static(one) => self.see(&one.vis),
                Item::Impl(one) => one.items.iter().for_each(|item| {
                    if let ImplItem::Fn(function) = item {
                        self.see(&function.vis);
                        self.see_signature(&function.sig);
                    }
                }),
                Item::Mod(one) if !is_of_tests(&one.attrs) => {
                    let items = one.content.as_ref().map_or(&[][..], |(_, items)| items);
                    self.look(items, krate);
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, visibility: &Visibility) {
        self.public_items += usize::from(matches!(visibility, Visibility::Public(_)));
    }

    fn see_type(&mut self, visibility: &Visibility, name: &str, krate: &str) {
        self.see(visibility);
        if matches!(visibility, Visibility::Public(_)) {
            self.types.entry(name.to_owned()).or_default().insert(krate.to_owned());
        }
    }

    fn see_signature(&mut self, signature: &Signature) {
        let is_tuple = |argument: &FnArg| match argument {
            FnArg::Typed(typed) => matches!(&*typed.ty, Type::Tuple(tuple) if tuple.elems.len() > 1),
            FnArg::Receiver(_) => false,
        };
        self.tuple_parameters += usize::from(signature.inputs.iter().any(is_tuple));
    }

    /// Returns the names of public types that are in more than one crate, except those that every crate may have.
    fn shared_types(&self) -> impl Iterator<Item = &str> {
        let is_shared = |(name, crates): &(&String, &BTreeSet<String>)| {
            crates.len() > 1 && !["Error", "Options"].contains(&name.as_str())
        };
        self.types.iter().filter(is_shared).map(|(name, _)| name.as_str())
    }
}

/// Returns true if the attributes contain `#[cfg(test)]`.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    let is_test = |one: &Attribute| {
        one.path().is_ident("cfg") && one.parse_args::<Ident>().is_ok_and(|of| of == "test")
    };
    attributes.iter().any(is_test)
}

impl Lines {
    fn add(&mut self, text: &str) {
        let mut in_comment = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let begins = line.starts_with("/*");
            let is_comment = in_comment || begins || line.starts_with("//");
            in_comment = (in_comment || begins) && !line.contains("*/");
            *if is_comment { &mut self.comments } else { &mut self.code } += 1;
        }
    }
}

/// Splits a source in front of its module of tests, which comes last. The second part is empty if it has none.
fn parted(text: &str) -> (&str, &str) {
    let begins = |marker: &&str| text.find(marker);
    let markers = [
        "\n#[cfg(test)]\nmod tests {",
        "\n#[cfg(test)]\npub mod tests {",
        "\n#[cfg(test)]\npub(crate) mod tests {",
    ];
    let at = markers.iter().filter_map(begins).min();
    at.map_or((text, ""), |at| text.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_tests_are_counted_separately() {
        let source = "//! Head.\n\n/* long\n   comment */\nfn one() {} // beside\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n";
        let (production, tests) = parted(source);
        let mut lines = [Lines::default(); 2];
        lines[0].add(production);
        lines[1].add(tests);
        assert_eq!(lines, [Lines { code: 1, comments: 3 }, Lines { code: 4, comments: 0 }]);
    }

    #[test]
    fn public_items_shared_names_and_tuples_are_counted() {
        let mut census = Census::default();
        let items = |source: &str| syn::parse_file(source).expect("it parses").items;
        let one =
            "pub struct Frame; pub fn send(at: (u8, u8)) {} struct Own; impl Frame { pub fn new(n: u8) {} }";
        census.look(&items(one), "one");
        census.look(&items("pub enum Frame {} pub struct Error; mod inner { pub struct Own; }"), "other");
        census.look(&items("pub struct Error;"), "one");
        assert_eq!((census.public_items, census.tuple_parameters), (7, 1));
        assert_eq!(census.shared_types().collect::<Vec<_>>(), ["Frame"]);
    }
}
