//! JSON Schemas (2020-12) of all that landspeed prints or records as JSON.

use std::io;
use std::path::Path;

use landspeed_observer::DETAILS;
use landspeed_record::{
    DetailRow, EndpointOutcome, Line, OBSERVATION_DETAILS, OUTCOME_DETAILS, Observations,
};
use landspeed_transport::TRANSPORTS;
use landspeed_workload::WORKLOADS;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A JSON document, titled by the command that prints it.
pub(crate) struct DocumentSchema {
    pub(crate) title: &'static str,
    schema: fn(SchemaGenerator) -> Schema,
}

pub(crate) const fn document<T: JsonSchema>(title: &'static str) -> DocumentSchema {
    DocumentSchema { title, schema: SchemaGenerator::into_root_schema_for::<T> }
}

/// The lines of a record.
const RECORD: DocumentSchema = document::<Line>("record");

/// Descriptions of JSON members that have no doc comment, by the member's name. They hold for all types.
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

/// Writes the schemas of `documents` and of a record, each to a file of `folder`: "tune.json", "lab-list.json",
/// "record.json".
pub(crate) fn write(documents: &[DocumentSchema], folder: &Path) -> io::Result<()> {
    for document in documents.iter().chain([&RECORD]) {
        let mut schema = with_details(document);
        schema.insert("title".to_owned(), document.title.into());
        let name = document.title.trim_start_matches("landspeed ").replace(" --", "-").replace(' ', "-");
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        std::fs::write(folder.join(format!("{name}.json")), text)?;
    }
    Ok(())
}

/// Returns the schema of a document, in which outcomes and observations have the details that the tables declare.
fn with_details(document: &DocumentSchema) -> Schema {
    let plain = (document.schema)(generator());
    let mut generator = generator();
    let holds = |owner: &str| plain.pointer(&format!("/$defs/{owner}")).is_some();
    if holds("EndpointOutcome") {
        generator.subschema_for::<EndpointOutcome>();
        let transports = TRANSPORTS.iter().flat_map(|transport| transport.about().details);
        let workloads = WORKLOADS.iter().flat_map(|workload| workload.details());
        let rows = OUTCOME_DETAILS.iter().chain(transports).chain(workloads);
        rows.for_each(|row| add(&mut generator, "EndpointOutcome", row));
    }
    if holds("Observations") {
        generator.subschema_for::<Observations>();
        OBSERVATION_DETAILS.iter().chain(DETAILS).for_each(|row| add(&mut generator, "Observations", row));
    }
    (document.schema)(generator)
}

/// Adds the schema of a detail as a member of the type `owner`.
fn add(generator: &mut SchemaGenerator, owner: &str, row: &DetailRow) {
    let schema = (row.schema)(generator).to_value();
    generator.definitions_mut()[owner]["properties"][row.name] = schema;
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.with_transform(RecursiveTransform(describe)).into_generator()
}

/// Rewrites doc comments for readers who do not see the code, and describes members that have none.
fn describe(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = plain(text);
    }
    let Some(Value::Object(members)) = schema.get_mut("properties") else { return };
    for (name, meaning) in USUAL {
        if let Some(Value::Object(member)) = members.get_mut(*name) {
            member.entry("description").or_insert_with(|| (*meaning).into());
        }
    }
}

/// Returns a doc comment on one line, without links to code.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace("[`", "`").replace("`]", "`").replace("crate::", "");
    text.replace("`None`", "null")
}
