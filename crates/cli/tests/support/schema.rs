//! Compares JSON with the schemas that `landspeed generate` writes. The validator comes from another project (boon).

use std::process::Command;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use tempfile::TempDir;

use super::LANDSPEED;

static WRITTEN: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = Command::new(LANDSPEED).arg("generate").arg(folder.path()).status().expect("landspeed runs");
    assert!(ended.success());
    folder
});

/// A schema, ready for validation.
pub(crate) struct CompiledSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl CompiledSchema {
    /// Compiles the schema of this name: "tune", "lab-list", "record".
    pub(crate) fn of(name: &str) -> Self {
        CompiledSchema::compile(read(name))
    }

    /// Compiles a schema for documents of an earlier version, which may lack members that were added since. The first
    /// member stays required, because it distinguishes alternatives.
    pub(crate) fn of_older(name: &str) -> Self {
        let mut schema = read(name);
        relax(&mut schema);
        CompiledSchema::compile(schema)
    }

    fn compile(schema: Value) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("schema.json", schema).expect("a schema");
        let index = compiler.compile("schema.json", &mut schemas).unwrap_or_else(|why| panic!("{why:#}"));
        CompiledSchema { schemas, index }
    }

    /// Returns what is wrong with `value`, in lines.
    pub(crate) fn wrong(&self, value: &Value) -> Option<String> {
        self.schemas.validate(value, self.index).err().map(|why| why.to_string())
    }
}

/// Parses a document, and panics if it does not match the schema `name`.
pub(crate) fn checked(name: &str, json: &str) -> Value {
    let value = serde_json::from_str(json).unwrap_or_else(|why| panic!("{why}: {json}"));
    assert_eq!(CompiledSchema::of(name).wrong(&value), None, "{name}: {json}");
    value
}

fn read(name: &str) -> Value {
    let path = WRITTEN.path().join(format!("landspeed/schemas/{name}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}

fn relax(schema: &mut Value) {
    match schema {
        Value::Object(words) => {
            if let Some(Value::Array(required)) = words.get_mut("required") {
                required.truncate(1);
            }
            words.values_mut().for_each(relax);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(relax),
        _ => {}
    }
}
