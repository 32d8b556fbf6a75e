//! Generates the pages about the JSON documents and about the record, from the schemas that `landspeed generate`
//! writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use crate::test::cargo;

const HEAD: &str =
    "<!-- Written from the schemas by `make docs`. Edit the types' doc comments instead. -->\n\n";
const UNITS: &str = "A number's unit is the end of its name: `_bps` bit/s, `_bytes` bytes, `_bytes_per_s` bytes per \
                     second, `_ns` nanoseconds, `_s` seconds, `_hz` cycles per second, `_pps` packets per second, `_mbps` \
                     Mb/s. Shares run from 0 to 1. `null` is what is not known or was not measured. Within a format, \
                     fields are added and never renamed, so ignore those that you do not know.";
const DOCUMENTS: &str = "# JSON documents\n\nWith `--json` a command prints one document on standard output (`exec` on standard error), \
                         and nothing else there. `landspeed show --json` prints that of the record's command. `copy --progress json` \
                         prints JSON Lines on standard error besides: `line` says what each is. [How figures come \
                         about](figures.md) is a page of its own. The package installs a JSON Schema (2020-12) of each document in \
                         /usr/share/landspeed/schemas; `landspeed generate DIR` writes them too.";
const RECORD: &str = "# The record\n\nA record is a file of JSON Lines: one object a line, appended and flushed as the run goes. `line` \
                      says what it is; the other members follow. The first line is the `header`. Skip lines that you do not know. \
                      The schema of a line is `record.json`, beside those of [JSON documents](json.md). Older records lack what \
                      was added since.";

/// Returns both pages: for each, its path within the project, and its text.
///
/// # Errors
/// Returns an error if landspeed cannot be built, or if a field or value has no doc comment, because its row would be
/// empty.
pub(crate) fn pages(root: &Path) -> Result<Vec<(String, String)>> {
    let mut schemas = schemas(root)?;
    let record = schemas.remove("record.json").context("landspeed generate writes no record.json")?;
    let json = SchemaPage::of(schemas.into_values().collect(), Vec::new());
    let json_text = format!("{HEAD}{DOCUMENTS} {UNITS}\n{}", json.documents());
    let record_text =
        format!("{HEAD}{RECORD} {UNITS}\n{}", SchemaPage::of(vec![record], json.documents).lines());
    let silent: Vec<String> = silent(&json_text).chain(silent(&record_text)).collect();
    if !silent.is_empty() {
        bail!("these need a doc comment on their types, for docs/reference:\n{}", silent.join("\n"));
    }
    Ok(vec![("docs/reference/json.md".into(), json_text), ("docs/reference/record.md".into(), record_text)])
}

/// Builds landspeed and returns its path.
pub(crate) fn landspeed(root: &Path) -> Result<PathBuf> {
    // The features are those of the whole workspace, so that the tests use the same build.
    let build = ["build", "--quiet", "--locked", "--workspace", "--bin", "landspeed"];
    ensure!(cargo(root).args(build).status()?.success(), "landspeed does not build");
    Ok(std::env::current_exe()?.with_file_name("landspeed"))
}

/// Builds landspeed and returns the schemas that it generates, by file name.
fn schemas(root: &Path) -> Result<BTreeMap<String, Value>> {
    let folder = tempfile::tempdir()?;
    let ended = Command::new(landspeed(root)?).arg("generate").arg(folder.path()).status();
    ensure!(ended.context("cannot run landspeed")?.success(), "landspeed generate fails");
    let entries = std::fs::read_dir(folder.path().join("landspeed/schemas"))?;
    let schema = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok((name, serde_json::from_slice(&std::fs::read(entry.path())?)?))
    };
    entries.map(schema).collect()
}

/// Returns the table rows of a page that have no text in the column "meaning", each with its heading.
fn silent(page: &str) -> impl Iterator<Item = String> {
    let mut heading = "";
    page.lines().filter_map(move |line| {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        (line.ends_with("|  |") || line.contains("|  Missing")).then(|| format!("{heading}: {line}"))
    })
}

/// A page about schemas, in Markdown.
struct SchemaPage {
    documents: Vec<Value>,
    /// The definitions of all documents, by name.
    types: Map<String, Value>,
    /// The documents that json.md describes, to which the page links; empty for the page json.md itself.
    elsewhere: Vec<Value>,
}

impl SchemaPage {
    fn of(documents: Vec<Value>, elsewhere: Vec<Value>) -> Self {
        let types = documents.iter().flat_map(definitions);
        let types = types.map(|(name, schema)| (name.clone(), schema.clone())).collect();
        SchemaPage { documents, types, elsewhere }
    }

    /// Returns a section for each document, and one for each type.
    fn documents(&self) -> String {
        let section = |(number, document): (usize, &Value)| {
            let known = self.known(document, &self.documents[..number]);
            format!("\n## {}\n\n{}", title(document), known.unwrap_or_else(|| self.body(document)))
        };
        self.documents.iter().enumerate().map(section).collect::<String>() + &self.sections()
    }

    /// Returns a section for each kind of line in a record, and one for each type that the other page does not
    /// describe.
    fn lines(&self) -> String {
        let section = |line| {
            let (_, kind) = tag(line).unwrap_or_default();
            let body = reference(line).map_or_else(|| self.body(line), |held| self.line(line, held));
            format!("\n## {kind}\n\n{body}")
        };
        self.documents.iter().flat_map(alternatives).map(section).collect::<String>() + &self.sections()
    }

    /// Returns the text about one kind of line of a record. The line has the fields of the type `held`.
    fn line(&self, line: &Value, held: &str) -> String {
        let schema = &self.types[held];
        let body = match self.known(schema, &self.elsewhere) {
            _ if self.is_elsewhere(held) => format!("As {}.\n", self.link(held)),
            Some(known) => known,
            None => self.body(schema),
        };
        head(line) + &body
    }

    /// Returns a link to the first of `documents` that has the same members as `schema`, or `None` if there is none.
    fn known(&self, schema: &Value, documents: &[Value]) -> Option<String> {
        let is_same =
            |known: &&Value| !known["properties"].is_null() && known["properties"] == schema["properties"];
        let title = title(documents.iter().find(is_same)?);
        let page = if self.elsewhere.is_empty() { "" } else { "json.md" };
        Some(format!("As [{title}]({page}#{}).\n", title.replace(' ', "-")))
    }

    /// Returns a section for each type that the other page does not describe.
    fn sections(&self) -> String {
        let own = self.types.iter().filter(|(name, schema)| has_section(schema) && !self.is_elsewhere(name));
        let section = |(name, schema)| format!("\n## {name}\n\n{}", self.body(schema));
        "\n# Types\n".to_owned() + &own.map(section).collect::<String>()
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        self.elsewhere.iter().flat_map(definitions).any(|(known, _)| known == name)
    }

    /// Returns the description of a schema, with tables of its members and of its alternatives.
    fn body(&self, schema: &Value) -> String {
        let tables: Vec<String> = [self.fields(schema), self.choices(schema)].into_iter().flatten().collect();
        let tables = if tables.is_empty() {
            self.words(schema) + "\n"
        } else {
            tables.join("\nAnd one of these:\n\n")
        };
        head(schema) + &tables
    }

    fn fields(&self, schema: &Value) -> Option<String> {
        let row = |(name, field)| {
            let missing = if is_required(schema, name) { "" } else { " Missing where there is none." };
            [format!("`{name}`"), self.words(field), format!("{}{missing}", self.about(field))]
        };
        table(["field", "type", "meaning"], members(schema).into_iter().map(row).collect())
    }

    fn choices(&self, schema: &Value) -> Option<String> {
        let values = schema["enum"].as_array().into_iter().flatten();
        let values = values.map(|value| [format!("`{value}`"), String::new(), String::new()]);
        let choice = |one| {
            let about = self.about(one).to_owned();
            match (&one["const"], tag(one), members(one).first()) {
                (Value::String(value), ..) => [format!("`\"{value}\"`"), String::new(), about],
                (_, Some((_, value)), _) => [format!("`\"{value}\"`"), self.with(one), about],
                (_, None, Some((name, held))) => [format!("`{name}`"), self.words(held), about],
                _ => [self.words(one), String::new(), about],
            }
        };
        let name = alternatives(schema).find_map(tag).map_or("value", |(name, _)| name);
        table([name, "with", "meaning"], values.chain(alternatives(schema).map(choice)).collect())
    }

    /// Returns the members of an object as text: names, types and meanings, or a link to the type that has them.
    fn with(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            return self.link(name);
        }
        let member = |(name, field): (&str, &Value)| {
            format!("`{name}` {} ({})", self.words(field), self.about(field).trim_end_matches('.'))
        };
        members(schema).into_iter().map(member).collect::<Vec<_>>().join(", ")
    }

    /// Returns the type of a value as text, with links to the types that have a section.
    fn words(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            return self.link(name);
        }
        let one = std::slice::from_ref(&schema["type"]);
        let names = schema["type"].as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str);
        let words = names.map(|name| match name {
            "array" => self.list(schema),
            "object" => self.object(schema),
            name => name.to_owned(),
        });
        let words: Vec<String> = words.chain(alternatives(schema).map(|one| self.words(one))).collect();
        if words.is_empty() { "any".to_owned() } else { words.join(" or ") }
    }

    fn list(&self, schema: &Value) -> String {
        let several = schema["prefixItems"].as_array().into_iter().flatten();
        let items = several.chain(schema.get("items")).map(|item| self.words(item));
        format!("array of {}", items.collect::<Vec<_>>().join(", "))
    }

    fn object(&self, schema: &Value) -> String {
        match &schema["additionalProperties"] {
            values @ Value::Object(_) => format!("object of {}", self.words(values)),
            _ => "object".to_owned(),
        }
    }

    fn link(&self, name: &str) -> String {
        let page = if self.is_elsewhere(name) { "json.md" } else { "" };
        match &self.types[name] {
            schema if has_section(schema) => format!("[{name}]({page}#{})", name.to_lowercase()),
            schema => self.words(schema),
        }
    }

    /// Returns the description of a member. If it has none, this is the description of its type.
    fn about<'a>(&'a self, schema: &'a Value) -> &'a str {
        let inner = schema.get("items").or(schema["anyOf"].get(0));
        let of_type = || reference(schema).map(|name| &self.types[name]).or(inner);
        let own = schema["description"].as_str();
        own.or_else(|| of_type().map(|is| self.about(is))).unwrap_or_default()
    }
}

/// Returns a table of `rows`, or `None` if there are none. If the second column has no text, it is left out.
fn table(heads: [&str; 3], rows: Vec<[String; 3]>) -> Option<String> {
    let is_narrow = rows.iter().all(|[_, second, _]| second.is_empty());
    let row = |[first, second, third]: [String; 3]| match is_narrow {
        true => format!("| {first} | {third} |\n"),
        false => format!("| {first} | {second} | {third} |\n"),
    };
    let line = if is_narrow { "|---|---|\n" } else { "|---|---|---|\n" };
    let head = row(heads.map(str::to_owned)) + line;
    let cells = |cells: [String; 3]| row(cells.map(|cell| cell.replace('|', "\\|")));
    (!rows.is_empty()).then(|| head + &rows.into_iter().map(cells).collect::<String>())
}

fn title(document: &Value) -> &str {
    document["title"].as_str().unwrap_or_default()
}

/// Returns the description of a schema as a paragraph.
fn head(schema: &Value) -> String {
    schema["description"].as_str().map(|about| format!("{about}\n\n")).unwrap_or_default()
}

fn definitions(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document["$defs"].as_object().into_iter().flatten()
}

/// Returns true if a schema is an object or a choice, and so has a section. Numbers, texts, lists and maps have none.
fn has_section(schema: &Value) -> bool {
    ["properties", "oneOf", "enum"].iter().any(|word| schema.get(word).is_some())
}

/// Returns the name of the definition to which the schema refers.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten()
}

/// Returns the member that identifies an alternative (its tag), and the value of this member.
fn tag(schema: &Value) -> Option<(&str, &str)> {
    let mut members = schema["properties"].as_object()?.iter();
    members.find_map(|(name, member)| Some((name.as_str(), member["const"].as_str()?)))
}

/// Returns the members of an object, without its tag. The required ones come first, in the order of the type.
fn members(schema: &Value) -> Vec<(&str, &Value)> {
    let Some(all) = schema["properties"].as_object() else { return Vec::new() };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let rest = all.keys().map(String::as_str).filter(|name| !is_required(schema, name));
    let members = required.chain(rest).filter_map(|name| Some((name, all.get(name)?)));
    members.filter(|(_, member)| member.get("const").is_none()).collect()
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_without_a_meaning_is_named() {
        let page = "## Figures\n\n| `rate_bps` | number | Goodput. |\n| `steal` | number |  |\n| `c` | number |  Missing where";
        let silent: Vec<_> = silent(page).collect();
        assert_eq!(silent, ["Figures: | `steal` | number |  |", "Figures: | `c` | number |  Missing where"]);
    }

    #[test]
    fn a_line_of_a_document_links_to_the_type_that_it_has() {
        let line = json!({
            "$ref": "#/$defs/Figures", "properties": { "line": { "const": "progress" } }, "description": "How far."
        });
        let figures = json!({ "properties": { "found": { "type": "integer", "description": "Entries." } } });
        let document = json!({ "title": "landspeed copy", "oneOf": [line], "$defs": { "Figures": figures } });
        let page = SchemaPage::of(vec![document], Vec::new()).documents();
        let row =
            "| line | with | meaning |\n|---|---|---|\n| `\"progress\"` | [Figures](#figures) | How far. |\n";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn a_document_is_a_table_of_members_in_their_order_with_links_to_types() {
        let document = json!({
            "title": "landspeed tune",
            "description": "What tune found.",
            "type": "object",
            "properties": {
                "cell": { "anyOf": [{ "$ref": "#/$defs/Cell" }, { "type": "null" }], "description": "The cell|setting." },
                "at_ns": { "$ref": "#/$defs/Nanos", "description": "Time." },
                "rates": { "type": ["array", "null"], "items": { "type": "number" }, "description": "Rates." }
            },
            "required": ["rates", "at_ns"],
            "$defs": {
                "Cell": { "oneOf": [{ "const": "a", "description": "First." }, { "const": "b", "description": "Other." }] },
                "Nanos": { "type": "integer", "description": "Nanoseconds." }
            }
        });
        let page = SchemaPage::of(vec![document.clone()], Vec::new()).documents();
        let table = "\n## landspeed tune\n\nWhat tune found.\n\n| field | type | meaning |\n|---|---|---|\n\
            | `rates` | array of number or null | Rates. |\n\
            | `at_ns` | integer | Time. |\n\
            | `cell` | [Cell](#cell) or null | The cell\\|setting. Missing where there is none. |\n\n\
            # Types\n\n## Cell\n\n| value | meaning |\n|---|---|\n| `\"a\"` | First. |\n| `\"b\"` | Other. |\n";
        assert_eq!(page, table);
        let line = json!({ "$ref": "#/$defs/Tuned", "properties": { "line": { "const": "summary" } } });
        let mut types = document["$defs"].clone();
        types["Tuned"] = document.clone();
        let record = json!({ "oneOf": [line], "$defs": types });
        let page = SchemaPage::of(vec![record], vec![document]).lines();
        assert_eq!(page.lines().nth(3), Some("As [landspeed tune](json.md#landspeed-tune)."), "{page}");
    }
}
