//! The runs of a study, each a line of a file, so that a study that ends can go on.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// All runs so far, and the file that has them.
pub(crate) struct KeptRuns<T> {
    made: Vec<T>,
    file: File,
}

impl<T: Serialize + DeserializeOwned> KeptRuns<T> {
    /// Reads the runs that a file has. Makes the file if it is not there.
    pub(crate) fn open(path: &Path) -> Result<KeptRuns<T>> {
        let cannot = || format!("cannot open {}", path.display());
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).with_context(cannot)?;
        let run = |(number, line): (u32, io::Result<String>)| -> Result<T> {
            let run = serde_json::from_str::<T>(&line?);
            run.with_context(|| format!("line {number} is no run: remove it, and the run is made again"))
        };
        let lines = (1..).zip(BufReader::new(&file).lines());
        let made = lines.map(run).collect::<Result<Vec<T>>>().with_context(cannot)?;
        Ok(KeptRuns { made, file })
    }

    pub(crate) fn add(&mut self, run: T) -> Result<()> {
        // By one call, so that a study that is killed leaves whole lines.
        let line = serde_json::to_string(&run)? + "\n";
        self.file.write_all(line.as_bytes()).context("keep a run")?;
        self.made.push(run);
        Ok(())
    }

    pub(crate) fn made(&self) -> &[T] {
        &self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_as_they_were_kept_and_a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut runs = KeptRuns::open(&path).unwrap();
        runs.add((1_u32, "one".to_owned())).unwrap();
        runs.add((2, "two\n".to_owned())).unwrap();
        let again = KeptRuns::<(u32, String)>::open(&path).unwrap();
        assert_eq!(again.made(), runs.made());
        runs.file.write_all(b"{").unwrap();
        let error = KeptRuns::<(u32, String)>::open(&path).err().expect("a line that is cut off");
        assert!(format!("{error:#}").contains("line 3 is no run"), "{error:#}");
    }
}
