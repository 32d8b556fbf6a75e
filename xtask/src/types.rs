//! Generates the pages of the JSON documents and the record format from the source of the types: their fields, their
//! serde attributes and their doc comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::{Attribute, Fields, GenericArgument, Item, ItemMacro, PathArguments, Type};

/// Sources that declare types of documents.
const SOURCES: &[&str] = &[
    "crates/record/src",
    "crates/report/src/diff.rs",
    "crates/knob/src/doctor/mod.rs",
    "crates/cli/src/listing.rs",
    "crates/cli/src/commands/run.rs",
    "crates/cli/src/commands/app.rs",
    "crates/transport/src",
    "crates/workload/src",
    "crates/observer/src",
];

/// The documents of `--json`: command, and type.
const DOCUMENTS: &[(&str, &str)] = &[
    ("measure", "MeasureReport"),
    ("measure --vary", "GridReport"),
    ("explain", "ExplainReport"),
    ("tune", "TuneSummary"),
    ("tune --record-run", "RecordRunReport"),
    ("run", "GridReport"),
    ("experiments", "ExperimentEntry"),
    ("app list", "ApplicationEntry"),
    ("compare", "CompareReport"),
    ("diff", "DiffReport"),
    ("doctor", "DoctorDocument"),
    ("knobs", "KnobList"),
    ("cc list", "ControlList"),
    ("cc recovery", "RecoveryList"),
    ("lab list", "LabList"),
    ("lab faults", "FaultList"),
    ("undo", "UndoDocument"),
];

/// Types with their own serialisation, in words.
const FOREIGN: &[(&str, &str)] = &[
    ("String", "string"),
    ("str", "string"),
    ("IpAddr", "string"),
    ("Png", "array of strings: pieces of a PNG file in Base64"),
    ("SocketAddr", "string"),
    ("CostClass", "string"),
    ("GridFigure", "string"),
    ("IpProtocol", "string"),
    ("bool", "boolean"),
    ("f64", "number"),
    ("Value", "any"),
    ("Details", "object"),
];

/// Meanings of members without a doc comment, which are the same in all types.
const USUAL: &[(&str, &str)] = &[
    ("at_ns", "Time since the run's start."),
    ("command", "How to run it again."),
    ("format", "Version of this document."),
    ("host_a", "Host A, which sends unless the direction is reversed."),
    ("host_b", "Host B."),
    ("invalid", "Runs that do not count: nothing of them is in any figure."),
    ("landspeed", "Version of landspeed that ran."),
    ("notes", "What a reader should know, one line each."),
    ("protocol", "Congestion control: its name in `landspeed cc list`."),
    ("record", "Path of the record; null where none was kept."),
    ("runs", "Runs that count."),
    ("side", "Which of the two hosts."),
    ("started", "Start of the run, RFC 3339 UTC."),
    ("took_ns", "How long it took."),
    ("topology", "The lab, or the hosts."),
    ("wan", "What a link of `lab:wan` did; null elsewhere."),
    ("window_ns", "Length of the measured window."),
];

const UNITS: &str = "A number's unit is the end of its name: `_bps` bit/s, `_bytes` bytes, `_ns` nanoseconds, `_s` seconds, `_hz` \
                     cycles per second, `_pps` packets per second, `_mbps` Mb/s. Shares run from 0 to 1. `null` is what is not \
                     known or was not measured. Within a format, fields are added and never renamed, so ignore those that you do \
                     not know.";

const HEAD: &str = "<!-- Written from the types by `make docs`. Edit their doc comments instead. -->\n\n";

/// Returns both pages: path within the project, and text.
///
/// # Errors
/// Returns an error if a source is not valid Rust, or if a member or value has no doc comment, because its row would
/// be empty.
pub(crate) fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let types = DocTypes::read(root)?;
    let (json, told) = types.documents()?;
    let record = types.record(&told)?;
    let silent = silent(&json).chain(silent(&record)).collect::<Vec<_>>();
    if !silent.is_empty() {
        bail!("these need a doc comment on their types, for docs/reference:\n{}", silent.join("\n"));
    }
    Ok(vec![("docs/reference/json.md".into(), json), ("docs/reference/record.md".into(), record)])
}

/// Returns the rows of a page's tables without a meaning, each with its heading.
fn silent(page: &str) -> impl Iterator<Item = String> {
    let mut heading = "";
    page.lines().filter_map(move |line| {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        line.ends_with("|  |").then(|| format!("{heading}: {line}"))
    })
}

struct DocField {
    /// `None` if its fields are written among the others.
    name: Option<String>,
    is: Type,
    /// True if null is one of its values.
    is_nullable: bool,
    about: String,
}

struct DocVariant {
    name: String,
    about: String,
    fields: Vec<DocField>,
    /// The type that the variant contains.
    holds: Option<Type>,
}

enum DocShape {
    Object(Vec<DocField>),
    /// Written as the type it contains.
    Same(Type),
    /// One of these variants; with the name of the member that tags it, if its members are written beside the tag.
    Choice(Option<String>, Vec<DocVariant>),
}

struct DocType {
    about: String,
    shape: DocShape,
}

#[derive(Default)]
struct DocTypes {
    declared: BTreeMap<String, DocType>,
    /// Names and types of the members of an open map, by the type that has the map.
    details: BTreeMap<&'static str, Vec<(String, Type)>>,
}

/// Types that a text mentioned and that have no section yet.
type MentionedTypes = BTreeSet<String>;

impl DocTypes {
    fn read(root: &Path) -> Result<DocTypes> {
        let mut types = DocTypes::default();
        for source in SOURCES {
            types.read_path(&root.join(source))?;
        }
        Ok(types)
    }

    fn read_path(&mut self, path: &Path) -> Result<()> {
        if path.is_dir() {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
            let mut paths: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            paths.sort();
            return paths.iter().try_for_each(|path| self.read_path(path));
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            return Ok(());
        }
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = syn::parse_file(&text).with_context(|| format!("{} is no Rust", path.display()))?;
        for item in file.items {
            self.take(path, item);
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, item: Item) {
        let (name, attributes, shape) = match item {
            Item::Struct(of) if is_written(&of.attrs) => {
                let shape = match of.fields {
                    Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                        DocShape::Same(fields.unnamed[0].ty.clone())
                    }
                    fields => DocShape::Object(members(&fields, None)),
                };
                (of.ident, of.attrs, shape)
            }
            Item::Enum(of) if is_written(&of.attrs) => {
                let serde = SerdeAttributes::of(&of.attrs);
                let variants = of.variants.iter().filter(|v| !SerdeAttributes::of(&v.attrs).has("other"));
                let variants = variants.map(|variant| DocVariant::of(variant, serde.get("rename_all")));
                let shape = DocShape::Choice(serde.get("tag").map(str::to_owned), variants.collect());
                (of.ident, of.attrs, shape)
            }
            Item::Type(of) => (of.ident, of.attrs, DocShape::Same(*of.ty)),
            Item::Macro(of) => return self.take_details(path, &of),
            _ => return,
        };
        self.declared.entry(name.to_string()).or_insert(DocType { about: about(&attributes), shape });
    }

    /// Reads `detail!("name" => Type)`, and `details!` with many of these.
    fn take_details(&mut self, path: &Path, of: &ItemMacro) {
        let name = of.mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if name != "detail" && name != "details" {
            return;
        }
        let path = path.to_string_lossy();
        let observed = path.contains("/observer/") || path.ends_with("observe.rs");
        let owner = if observed { "Observations" } else { "EndpointOutcome" };
        let text = of.mac.tokens.to_string();
        let found = text.split("=>").zip(text.split("=>").skip(1)).filter_map(|(before, after)| {
            let name = before.rsplit('"').nth(1)?.to_owned();
            let is = after.split([';', ',']).next()?.trim_end_matches('}').trim();
            Some((name, syn::parse_str(is).ok()?))
        });
        self.details.entry(owner).or_default().extend(found);
    }

    fn documents(&self) -> Result<(String, MentionedTypes)> {
        let mut page = format!(
            "{HEAD}# JSON documents\n\nWith `--json` a command prints one document on standard output, and nothing else there. \
             `landspeed show --json` prints that of the record's command. [How figures come about](figures.md) \
             is a page of its own. {UNITS}\n"
        );
        let mut mentioned = MentionedTypes::new();
        for (command, name) in DOCUMENTS {
            let _ = write!(page, "\n## landspeed {command}\n\n");
            self.body(name, &mut page, &mut mentioned)?;
        }
        let roots: MentionedTypes = DOCUMENTS.iter().map(|(_, name)| (*name).to_owned()).collect();
        page.push_str("\n# Types\n");
        let told = self.rest(&mut page, mentioned, &roots)?;
        Ok((page, told))
    }

    fn record(&self, told: &MentionedTypes) -> Result<String> {
        let mut page = format!(
            "{HEAD}# The record\n\nA record is a file of JSON Lines: one object a line, appended and flushed as the run goes. \
             `line` says what it is; the other members follow. The first line is the `header`. Skip lines that you do not know. \
             {UNITS} Older records lack what was added since.\n"
        );
        let Some(DocType { shape: DocShape::Choice(Some(_), lines), .. }) = self.declared.get("Line") else {
            bail!("the lines of a record are no tagged enum any more");
        };
        let mut mentioned = MentionedTypes::new();
        for line in lines {
            let _ = write!(page, "\n## {}\n\n", line.name);
            let held = line.holds.as_ref().map(|is| self.name_of(is)).transpose()?;
            if !line.about.is_empty() {
                let _ = write!(page, "{}\n\n", line.about);
            }
            match held {
                Some(name) if told.contains(&name) => {
                    let _ = writeln!(page, "As [{name}](json.md#{}).", name.to_lowercase());
                }
                Some(name) if DOCUMENTS.iter().any(|(_, document)| *document == name) => {
                    let _ = writeln!(page, "As in [JSON documents](json.md): what `--json` prints.");
                }
                Some(name) => self.body(&name, &mut page, &mut mentioned)?,
                None => self.fields(&line.fields, &mut page, &mut mentioned)?,
            }
        }
        page.push_str("\n# Types\n");
        self.rest(&mut page, mentioned, told)?;
        // Types that the other page describes have their sections there.
        for name in told {
            let link = format!("](#{})", name.to_lowercase());
            page = page.replace(&link, &format!("](json.md#{})", name.to_lowercase()));
        }
        Ok(page)
    }

    /// Writes a section for each type that was mentioned, and for those that these mention; returns the types with a
    /// section.
    fn rest(
        &self,
        page: &mut String,
        mut mentioned: MentionedTypes,
        told: &MentionedTypes,
    ) -> Result<MentionedTypes> {
        let mut sections: BTreeMap<String, String> = BTreeMap::new();
        while let Some(name) = mentioned.pop_first() {
            if sections.contains_key(&name) || told.contains(&name) {
                continue;
            }
            let mut section = format!("\n## {name}\n\n");
            self.body(&name, &mut section, &mut mentioned)?;
            sections.insert(name, section);
        }
        sections.values().for_each(|section| page.push_str(section));
        Ok(sections.into_keys().collect())
    }

    /// Writes the description of a type, and its members.
    fn body(&self, name: &str, page: &mut String, mentioned: &mut MentionedTypes) -> Result<()> {
        let DocType { about, shape } =
            self.declared.get(name).with_context(|| format!("no source declares {name}"))?;
        if !about.is_empty() {
            let _ = write!(page, "{about}\n\n");
        }
        match shape {
            DocShape::Object(fields) => self.fields_of(name, fields, page, mentioned),
            DocShape::Same(is) => {
                let words = self.words(is, mentioned)?;
                let _ = writeln!(page, "{words}");
                Ok(())
            }
            DocShape::Choice(tag, variants) => self.choice(tag.as_deref(), variants, page, mentioned),
        }
    }

    fn fields(&self, fields: &[DocField], page: &mut String, mentioned: &mut MentionedTypes) -> Result<()> {
        self.fields_of("", fields, page, mentioned)
    }

    fn fields_of(
        &self,
        owner: &str,
        fields: &[DocField],
        page: &mut String,
        mentioned: &mut MentionedTypes,
    ) -> Result<()> {
        page.push_str("| field | type | meaning |\n|---|---|---|\n");
        for field in fields {
            self.field(owner, field, page, mentioned)?;
        }
        Ok(())
    }

    fn field(
        &self,
        owner: &str,
        field: &DocField,
        page: &mut String,
        mentioned: &mut MentionedTypes,
    ) -> Result<()> {
        if let Some(name) = &field.name {
            let mut words = self.words(&field.is, mentioned)?;
            if field.is_nullable {
                words += " or null";
            }
            let usual = USUAL.iter().find(|(usual, _)| usual == name).map_or("", |(_, about)| about);
            let about = if field.about.is_empty() { usual } else { &field.about };
            let _ = writeln!(page, "| `{name}` | {words} | {about} |");
            return Ok(());
        }
        for (name, is) in self.details.get(owner).into_iter().flatten() {
            let words = self.words(is, mentioned)?;
            let about = self.declared.get(&self.name_of(innermost(is))?).map_or("", |is| &is.about);
            let _ = writeln!(
                page,
                "| `{name}` | {words} | {about} Missing where there is nothing of the kind. |"
            );
        }
        let name = self.name_of(&field.is)?;
        match self.declared.get(&name).map(|declared| &declared.shape) {
            Some(DocShape::Object(fields)) => {
                fields.iter().try_for_each(|f| self.field(&name, f, page, mentioned))
            }
            Some(DocShape::Choice(_, variants)) => {
                variants.iter().try_for_each(|variant| self.one_of(variant, page, mentioned))
            }
            _ => Ok(()),
        }
    }

    /// Writes a variant as a row among other fields.
    fn one_of(&self, variant: &DocVariant, page: &mut String, mentioned: &mut MentionedTypes) -> Result<()> {
        let words = match &variant.holds {
            Some(is) => self.words(is, mentioned)?,
            None if variant.fields.is_empty() => "null".to_owned(),
            None => format!("object of {}", self.with(variant, mentioned)?),
        };
        let DocVariant { name, about, .. } = variant;
        let about = if about.is_empty() { String::new() } else { format!("One of these. {about}") };
        let _ = writeln!(page, "| `{name}` | {words} | {about} |");
        Ok(())
    }

    /// Returns the members of a variant: names, types and meanings.
    fn with(&self, variant: &DocVariant, mentioned: &mut MentionedTypes) -> Result<String> {
        let member = |field: &DocField| {
            let name = field.name.as_deref().unwrap_or_default();
            let about = field.about.trim_end_matches('.');
            Ok(format!("`{name}` {} ({about})", self.words(&field.is, mentioned)?))
        };
        Ok(variant.fields.iter().map(member).collect::<Result<Vec<_>>>()?.join(", "))
    }

    fn choice(
        &self,
        tag: Option<&str>,
        variants: &[DocVariant],
        page: &mut String,
        mentioned: &mut MentionedTypes,
    ) -> Result<()> {
        let plain = variants.iter().all(|variant| variant.fields.is_empty() && variant.holds.is_none());
        if plain && tag.is_none() {
            page.push_str("| value | meaning |\n|---|---|\n");
            for DocVariant { name, about, .. } in variants {
                let _ = writeln!(page, "| `\"{name}\"` | {about} |");
            }
            return Ok(());
        }
        let _ = writeln!(page, "| {} | with | meaning |\n|---|---|---|", tag.map_or("one of", |tag| tag));
        for variant in variants {
            let with = match &variant.holds {
                Some(is) => self.words(is, mentioned)?,
                None => self.with(variant, mentioned)?,
            };
            let _ = writeln!(page, "| `\"{}\"` | {with} | {} |", variant.name, variant.about);
        }
        Ok(())
    }

    /// Returns a type in words, with links to types that have a section.
    fn words(&self, is: &Type, mentioned: &mut MentionedTypes) -> Result<String> {
        match is {
            Type::Reference(to) => return self.words(&to.elem, mentioned),
            Type::Array(of) => return Ok(format!("array of {}", self.words(&of.elem, mentioned)?)),
            Type::Tuple(of) => {
                let words = of.elems.iter().map(|is| self.words(is, mentioned));
                return Ok(format!("array of {}", words.collect::<Result<Vec<_>>>()?.join(", ")));
            }
            _ => {}
        }
        let name = self.name_of(is)?;
        let inner = arguments(is);
        let of = |at: usize, mentioned: &mut MentionedTypes| {
            self.words(inner.get(at).with_context(|| format!("{name} of what?"))?, mentioned)
        };
        Ok(match name.as_str() {
            "Option" => format!("{} or null", of(0, mentioned)?),
            "Box" => of(0, mentioned)?,
            "Vec" | "BTreeSet" => format!("array of {}", of(0, mentioned)?),
            "BTreeMap" => format!("object of {}", of(1, mentioned)?),
            "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "integer".to_owned(),
            name => match (FOREIGN.iter().find(|(foreign, _)| *foreign == name), self.declared.get(name)) {
                (Some((_, words)), _) => (*words).to_owned(),
                (None, Some(DocType { shape: DocShape::Same(is), .. })) => self.words(is, mentioned)?,
                (None, Some(_)) => {
                    mentioned.insert(name.to_owned());
                    format!("[{name}](#{})", name.to_lowercase())
                }
                (None, None) => bail!("no source declares {name}: add it to xtask/src/types.rs"),
            },
        })
    }

    /// Returns the name of a type, without boxes.
    fn name_of(&self, is: &Type) -> Result<String> {
        let Type::Path(path) = is else { bail!("a type without a name stands in a document") };
        let last = path.path.segments.last().context("a path without a name")?;
        match (last.ident.to_string().as_str(), arguments(is).as_slice()) {
            ("Box", [inner]) => self.name_of(inner),
            (name, _) => Ok(name.to_owned()),
        }
    }
}

impl DocVariant {
    fn of(variant: &syn::Variant, rename_all: Option<&str>) -> DocVariant {
        let serde = SerdeAttributes::of(&variant.attrs);
        let name = serde.get("rename").map(str::to_owned);
        let holds = match &variant.fields {
            Fields::Unnamed(fields) => fields.unnamed.first().map(|field| field.ty.clone()),
            _ => None,
        };
        DocVariant {
            name: name.unwrap_or_else(|| spelled(&variant.ident.to_string(), rename_all)),
            about: about(&variant.attrs),
            fields: if holds.is_some() { Vec::new() } else { members(&variant.fields, None) },
            holds,
        }
    }
}

/// Returns the type inside a list or an option.
fn innermost(is: &Type) -> &Type {
    arguments(is).first().map_or(is, |inner| innermost(inner))
}

fn arguments(is: &Type) -> Vec<&Type> {
    let Type::Path(path) = is else { return Vec::new() };
    let Some(PathArguments::AngleBracketed(of)) = path.path.segments.last().map(|last| &last.arguments)
    else {
        return Vec::new();
    };
    let types = of.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(is) => Some(is),
        _ => None,
    });
    types.collect()
}

fn members(fields: &Fields, rename_all: Option<&str>) -> Vec<DocField> {
    let member = |field: &syn::Field| {
        let serde = SerdeAttributes::of(&field.attrs);
        if serde.has("skip") || serde.has("skip_serializing") {
            return None;
        }
        let own = field.ident.as_ref().map(|name| name.to_string().trim_start_matches("r#").to_owned());
        let name = serde.get("rename").map(str::to_owned).or_else(|| Some(spelled(&own?, rename_all)));
        let mut about = about(&field.attrs);
        if serde.has("skip_serializing_if") {
            about += " Missing where there is none.";
        }
        let name = name.filter(|_| !serde.has("flatten"));
        let is_nullable = serde.get("with").is_some_and(|with| with.starts_with("unknown::"));
        Some(DocField { name, is: field.ty.clone(), is_nullable, about })
    };
    fields.iter().filter_map(member).collect()
}

/// The words of `#[serde(...)]`.
struct SerdeAttributes(Vec<(String, String)>);

impl SerdeAttributes {
    fn of(attributes: &[Attribute]) -> SerdeAttributes {
        let mut words = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let _ = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let value = meta.value().and_then(|value| value.parse::<syn::LitStr>());
                words.push((name, value.map(|value| value.value()).unwrap_or_default()));
                Ok(())
            });
        }
        SerdeAttributes(words)
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(word, _)| word == name)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(word, _)| word == name).map(|(_, value)| value.as_str())
    }
}

/// Returns true if serde writes the type.
fn is_written(attributes: &[Attribute]) -> bool {
    let derives = |attribute: &Attribute| {
        let mut found = false;
        let _ = attribute.parse_nested_meta(|meta| {
            found |= meta.path.segments.last().is_some_and(|last| last.ident == "Serialize");
            Ok(())
        });
        found
    };
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(derives)
}

/// Returns a variant's name as serde spells it.
fn spelled(name: &str, rename_all: Option<&str>) -> String {
    let joined = |joint: char| {
        let mut text = String::new();
        for letter in name.chars() {
            if letter.is_uppercase() && !text.is_empty() {
                text.push(joint);
            }
            text.extend(letter.to_lowercase());
        }
        text
    };
    match rename_all {
        Some("kebab-case") => joined('-'),
        Some("snake_case") => joined('_'),
        Some("lowercase") => name.to_lowercase(),
        _ => name.to_owned(),
    }
}

/// Returns a doc comment on one line, for the cell of a table.
fn about(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).filter(|line| !line.is_empty()).collect();
    let text = lines.join(" ").replace("[`", "`").replace("`]", "`").replace("crate::", "");
    text.replace("`None`", "null").replace('|', "\\|").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
    }

    /// Collects the names of all members in `value`.
    fn names(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                into.insert(name.clone());
                names(value, into);
            }),
            Value::Array(values) => values.iter().for_each(|value| names(value, into)),
            _ => {}
        }
    }

    #[test]
    fn every_field_of_a_real_record_is_on_a_page() {
        let pages = pages(root()).expect("pages");
        let text: String = pages.iter().map(|(_, text)| text.as_str()).collect();
        let record = std::fs::read_to_string(root().join("tests/records/tune.jsonl")).expect("a record");
        let mut found = BTreeSet::new();
        for line in record.lines() {
            let line: Value = serde_json::from_str(line).expect("a line");
            found.extend(line.as_object().expect("an object").keys().cloned());
            names(&line["summary"]["gain"], &mut found);
            names(&line["candidates"][0]["with"], &mut found);
            names(&line["a"]["latency"], &mut found);
        }
        found.remove("line");
        let missing: Vec<&String> =
            found.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_row_without_a_meaning_is_named() {
        let page = "## Figures\n\n| `rate_bps` | number | Goodput. |\n| `steal` | number |  |\n";
        assert_eq!(silent(page).collect::<Vec<_>>(), ["Figures: | `steal` | number |  |"]);
    }

    #[test]
    fn names_are_spelled_as_serde_spells_them() {
        for (rename_all, spelling) in
            [(Some("kebab-case"), "no-effect"), (Some("snake_case"), "no_effect"), (None, "NoEffect")]
        {
            assert_eq!(spelled("NoEffect", rename_all), spelling);
        }
    }
}
