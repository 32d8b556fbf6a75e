//! The progress of a copy or a comparison as JSON Lines.

use landspeed_record::{CopyProgressFigures, PathBytes};
use landspeed_report::live::print_if_room;
use schemars::JsonSchema;
use serde::Serialize;

use super::CopyPlaces;

/// The largest number of sources in a line, which must fit into a pipe.
const MOST_SOURCES: usize = 100;

/// A line of `landspeed copy --progress json` on standard error.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(crate) enum CopyProgressLine {
    /// The destination of the files. This line comes once, and first.
    Begin(CopyBeginning),
    /// The progress so far. This line comes about once a second, while the hosts answer.
    Progress(CopyProgressFigures),
}

impl CopyProgressLine {
    /// Writes the line, unless the reader has left no room for it. The copy must not wait, and the next line has newer
    /// figures.
    pub(super) fn write(&self) {
        if let Ok(json) = serde_json::to_string(self) {
            print_if_room(&(in_ascii(&json) + "\n"));
        }
    }
}

/// Returns a JSON text with `\u` escapes for everything but printable ASCII, so that a name cannot control a terminal.
fn in_ascii(json: &str) -> String {
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte @ b' '..=b'~') => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    json.encode_utf16().map(unit).collect()
}

/// The destination of a copy's files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyBeginning {
    /// The host that has the files.
    from: String,
    /// The host that receives them.
    to: String,
    /// The sources as the command line names them: the first 100 paths.
    sources: Vec<WrittenPath>,
    /// The number of paths beyond these.
    more_sources: usize,
    /// The path of the result.
    target: WrittenPath,
    /// True if the machine of the command relays the data, because neither host can reach the other.
    is_relayed: bool,
}

impl CopyBeginning {
    pub(super) fn of(places: &CopyPlaces, target: &[u8], is_relayed: bool) -> Self {
        let sources = &places.paths.sources;
        CopyBeginning {
            from: places.from.clone(),
            to: places.to.clone(),
            sources: sources.iter().take(MOST_SOURCES).map(|path| WrittenPath::of(path)).collect(),
            more_sources: sources.len().saturating_sub(MOST_SOURCES),
            target: WrittenPath::of(target),
            is_relayed,
        }
    }
}

/// A path. It need not be text.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WrittenPath {
    /// The path, if it is UTF-8.
    Text(String),
    /// The bytes of a path that is not valid UTF-8, as hexadecimal digits.
    BytesHex(PathBytes),
}

impl WrittenPath {
    fn of(path: &[u8]) -> Self {
        match std::str::from_utf8(path) {
            Ok(text) => WrittenPath::Text(text.to_owned()),
            Err(_) => WrittenPath::BytesHex(PathBytes(path.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_engine::CopyPaths;
    use landspeed_record::Side;
    use serde_json::{Value, json};

    use super::*;

    fn value(line: &CopyProgressLine) -> Value {
        let json = serde_json::to_string(line).unwrap();
        let ascii = in_ascii(&json);
        assert!(ascii.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{ascii}");
        let value: Value = serde_json::from_str(&ascii).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
        value
    }

    #[test]
    fn a_name_that_is_not_text_comes_as_its_bytes_and_no_name_acts_on_a_terminal() {
        let sources = vec![b"a\xff\x1b".to_vec(), "\u{1f4be}\u{9b}2J\u{202e}\x7f\x1b\n\"".into()];
        let paths = CopyPaths { sources, target: b"/t".to_vec() };
        let (from, to) = ("local".to_owned(), "dtn2".to_owned());
        let places = CopyPlaces { from, to, paths, reads: Side::A };
        let line = CopyProgressLine::Begin(CopyBeginning::of(&places, b"/t", true));
        let expected = json!({
            "line": "begin", "from": "local", "to": "dtn2", "is_relayed": true, "target": { "text": "/t" },
            "more_sources": 0, "sources": [
                { "bytes_hex": "61ff1b" }, { "text": "\u{1f4be}\u{9b}2J\u{202e}\x7f\x1b\n\"" },
            ],
        });
        assert_eq!(value(&line), expected);
    }

    #[test]
    fn progress_is_one_flat_object() {
        let expected = json!({
            "line": "progress", "at_ns": 0, "found": 0, "found_bytes": 0, "is_walked": false, "settled": 0, "moved_bytes": 0,
            "broken_flows": 0, "moved_share": null, "rate_bps": 0.0, "left_ns": null, "held": { "by": [], "gain_at_most": null },
        });
        assert_eq!(value(&CopyProgressLine::Progress(CopyProgressFigures::default())), expected);
    }
}
