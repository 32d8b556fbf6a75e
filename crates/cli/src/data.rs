//! The folder of records, and their names.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use landspeed_record::units::Bytes;
use landspeed_record::{Header, Record, RecordKind, RecordWriter, newest_first};
use landspeed_report::quoted;

use crate::output::usage;

/// A record as a command line names it: `last`, an id, the beginning or end of one, or a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordArg {
    Last,
    Named(String),
}

impl RecordArg {
    /// Returns the word that names the record at `path` in another command: the same word or, if the user named the
    /// data folder `given`, the path.
    pub(crate) fn again(&self, given: Option<&Path>, path: &Path) -> String {
        match self {
            _ if given.is_some() => quoted(&path.display().to_string()),
            RecordArg::Last => "last".to_owned(),
            RecordArg::Named(word) => quoted(word),
        }
    }
}

impl From<&str> for RecordArg {
    fn from(word: &str) -> Self {
        if word == "last" { RecordArg::Last } else { RecordArg::Named(word.to_owned()) }
    }
}

/// Returns landspeed's data folder: `given`, or by default the user's folder by the XDG rules.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    Ok(base
        .context("neither XDG_DATA_HOME nor HOME is set: name a folder with --data-dir")?
        .join("landspeed"))
}

/// Returns the path of a new record. The file's name consists of the kind, the start and the process id, so records of
/// a kind sort by time.
pub(crate) fn fresh(folder: &Path, kind: RecordKind, started: &str) -> PathBuf {
    let stamp: String = started.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    folder.join(format!("{}-{stamp}-{}.jsonl", kind.name, std::process::id()))
}

/// Least free space for a new record. The record of a run of some minutes takes a few MiB.
const ROOM: Bytes = Bytes::mib(8);

/// Creates a folder if it is missing, and checks that a record can be kept in it. Commands call this before they reach
/// a host.
pub(crate) fn room(folder: &Path) -> Result<()> {
    const REMEDY: &str = "name another folder with --data-dir";
    let failed = || format!("cannot keep a record in {}; {REMEDY}", folder.display());
    std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).with_context(failed)?;
    let about = rustix::fs::statvfs(folder).with_context(failed)?;
    let free = Bytes(about.f_bavail.saturating_mul(about.f_frsize));
    if free < ROOM {
        bail!("cannot keep a record in {}: {free} are free, and it needs {ROOM}; {REMEDY}", folder.display());
    }
    Ok(())
}

/// Returns all records in a folder, unsorted. A missing folder has none.
pub(crate) fn records(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| {
            usage(format!("cannot read {}: {error}; name another folder with --data-dir", folder.display()))
        })?,
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect())
}

/// The largest number of records of a kind that are examined.
const MOST_OF_KIND: usize = 50;

/// Returns the records of a kind in a folder, newest first, at most [`MOST_OF_KIND`]. Returns none if the folder cannot
/// be read.
pub(crate) fn newest_of(folder: &Path, kind: RecordKind) -> Vec<PathBuf> {
    let beginning = format!("{}-", kind.name);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found = records(folder).unwrap_or_default();
    found.retain(|path| name(path).starts_with(&beginning));
    // A name begins with the time.
    found.sort_by_key(|path| std::cmp::Reverse(name(path)));
    found.truncate(MOST_OF_KIND);
    found
}

/// Returns the path of the record that `named` refers to, in the data folder `given` or the default one.
pub(crate) fn find(named: &RecordArg, given: Option<&Path>) -> Result<PathBuf> {
    let word = match named {
        RecordArg::Last => return newest(&folder(given)?),
        RecordArg::Named(word) => word,
    };
    if word.contains('/') || Path::new(word).is_file() {
        return at(Path::new(word));
    }
    let folder = folder(given)?;
    let all = records(&folder)?;
    match matching(word, &all).as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(usage(format!(
            "no record in {} is called '{word}'{}; `landspeed records` lists them",
            folder.display(),
            nearest(word, &all)
        ))),
        several => Err(usage(format!(
            "'{word}' may be {}: type more of it, or the file's path",
            listed(several.iter().map(|path| name(path, &all)))
        ))),
    }
}

/// Returns the path of a record that the user named by it. Returns a usage error if there is none.
fn at(path: &Path) -> Result<PathBuf> {
    let named = path.display();
    match path.metadata() {
        Ok(about) if about.is_dir() => Err(usage(format!(
            "{named} is a folder: `landspeed records --data-dir {}` lists its records",
            quoted(&named.to_string())
        ))),
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(usage(format!(
            "cannot read the record {named}: {error}; `landspeed records` lists those that are kept"
        ))),
    }
}

/// Reads a record that the command line names. Returns a usage error if the file is no record.
pub(crate) fn read(path: &Path) -> Result<Record> {
    landspeed_record::read(path).map_err(usage)
}

/// Opens a record that the command line names, to continue it, and reads it. Returns a usage error if the file is not a
/// record, and then does not change the file.
pub(crate) fn go_on(path: &Path) -> Result<(RecordWriter, Record)> {
    // The writer removes an incomplete last line.
    landspeed_record::read_header(path).map_err(usage)?;
    let writer = RecordWriter::append(path)?;
    Ok((writer, read(path)?))
}

fn newest(folder: &Path) -> Result<PathBuf> {
    let begun = |path: PathBuf| {
        let Header { sequence, started, .. } = landspeed_record::read_header(&path).ok()?;
        Some((sequence, (started, modified(&path)), path))
    };
    let known = newest_first(records(folder)?.into_iter().filter_map(begun).collect());
    let none = || usage(format!("no records in {}: run `landspeed tune` first", folder.display()));
    known.into_iter().next().ok_or_else(none)
}

pub(crate) fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// Returns a record's id, which is the UTC month, day and time of day when its run began. It comes from the file name
/// that [`fresh`] makes. The id of any other file is its name.
fn id(path: &Path) -> String {
    let stem = stem(path);
    let stamp = stem.rsplit('-').nth(1).and_then(|stamp| stamp.strip_suffix('Z')?.split_once('T'));
    match stamp {
        Some((day, time)) if day.len() == 8 && day.is_ascii() => format!("{}-{time}", &day[4..]),
        _ => stem,
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a record's id, or its file's name without suffix if another of `all` has the same id.
pub(crate) fn name(path: &Path, all: &[PathBuf]) -> String {
    let id = id(path);
    let others = all.iter().filter(|other| self::id(other) == id).count();
    if others > 1 { stem(path) } else { id }
}

fn matching<'a>(word: &str, all: &'a [PathBuf]) -> Vec<&'a PathBuf> {
    let word = word.strip_suffix(".jsonl").unwrap_or(word);
    let by = |fits: &dyn Fn(String) -> bool| {
        all.iter().filter(|path| fits(id(path)) || fits(stem(path))).collect::<Vec<_>>()
    };
    let exact = by(&|name| name == word);
    if exact.is_empty() { by(&|name| name.starts_with(word) || name.ends_with(word)) } else { exact }
}

/// Returns "; nearest: ...", with the names that share the longest beginning or end. Ids are times, so the shared
/// length is a better measure than the number of typing errors.
fn nearest(word: &str, all: &[PathBuf]) -> String {
    let mut names: Vec<String> = all.iter().map(|path| name(path, all)).collect();
    names.sort_by_key(|name| std::cmp::Reverse(in_common(word, name)));
    match names.is_empty() {
        true => String::new(),
        false => format!("; nearest: {}", listed(names.into_iter())),
    }
}

/// Returns the number of letters that two words share at the beginning or at the end.
fn in_common(a: &str, b: &str) -> usize {
    let alike = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    alike(&mut a.chars(), &mut b.chars()).max(alike(&mut a.chars().rev(), &mut b.chars().rev()))
}

/// Joins the first four of `names`, and counts the others.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 4;
    let more = names.len().saturating_sub(MOST);
    let shown = names.take(MOST).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Returns the present time in RFC 3339, UTC, in whole seconds.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Second).map_or_else(|_| String::new(), |t| t.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::failure::StatusError;

    fn paths() -> Vec<PathBuf> {
        let names =
            ["tune-20261123T165136Z-4795", "tune-20261123T165136Z-9", "compare-20261101T020304Z-17", "mine"];
        names.map(|name| PathBuf::from(format!("/d/{name}.jsonl"))).into()
    }

    #[test]
    fn a_path_that_is_no_record_is_wrong_usage() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        for (path, remedy) in [(folder.path(), "is a folder"), (missing.as_path(), "`landspeed records`")] {
            let named = RecordArg::Named(path.display().to_string());
            let error = find(&named, None).expect_err("no record");
            let is_usage = StatusError::exit_of(&error) == Some(Exit::Usage);
            assert!(is_usage && error.to_string().contains(remedy), "{error}");
        }
        std::fs::write(&missing, "[]\n").unwrap();
        let error = read(&missing).expect_err("no header");
        assert_eq!(StatusError::exit_of(&error), Some(Exit::Usage), "{error}");
        assert!(find(&RecordArg::Last, Some(folder.path())).is_err());
        // A file that is not a record loses no line.
        std::fs::write(&missing, "a text\nwithout an end").unwrap();
        assert!(go_on(&missing).is_err());
        assert_eq!(std::fs::read_to_string(&missing).unwrap(), "a text\nwithout an end");
    }

    #[test]
    fn a_record_is_called_by_when_it_began_unless_two_began_at_once() {
        let all = paths();
        let names: Vec<String> = all.iter().map(|path| name(path, &all)).collect();
        let expected = ["tune-20261123T165136Z-4795", "tune-20261123T165136Z-9", "1101-020304", "mine"];
        assert_eq!(names, expected);
    }

    #[test]
    fn an_id_or_its_beginning_or_end_finds_a_record() {
        let all = paths();
        let found = |word| matching(word, &all).len();
        for word in ["1101-020304", "1101", "0304", "17", "compare", "mine", "mine.jsonl", "4795"] {
            assert_eq!(found(word), 1, "{word}");
        }
        assert_eq!((found("1123-165136"), found("tune"), found("1102")), (2, 2, 0));
    }
}
