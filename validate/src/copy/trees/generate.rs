//! Makes a tree from a seed, with everything that a tree may hold. The same seed makes the same tree anywhere.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use landspeed_stats::Random;
use rustix::fs::{CWD, FileType, Mode};

use super::attributes::{MadeEntry, MadeKind, Ownership, finish};
use super::names::Names;

/// How large a tree is.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeSize {
    /// Folders, and as many links, and four times as many files.
    pub(super) folders: u64,
    /// The depth of the deepest folder.
    pub(super) depth: u64,
    /// The names of one file.
    pub(super) links: u64,
}

/// Makes a tree below a folder that is there and empty. Returns what its file system cannot hold, in words.
pub(super) fn generate(
    root: &Path,
    seed: u64,
    size: TreeSize,
    ownership: Ownership,
) -> Result<Vec<&'static str>> {
    let mut growing = GrowingTree {
        random: Random::new(seed),
        names: Names::default(),
        folders: vec![root.to_path_buf()],
        made: Vec::new(),
    };
    growing.grow(size).context("make a tree")?;
    // The modes of folders come last.
    growing.made.reverse();
    finish(&growing.made, &mut growing.random, ownership)
}

/// The lengths of files, around those of blocks and of pieces.
const LENGTHS: [u64; 10] = [0, 1, 511, 4_095, 4_096, 4_097, 65_536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];
/// What holes and data of a sparse file begin and end beside.
const EDGES: [u64; 5] = [0, 4_096, 65_536, 1 << 20, 3 << 20];
/// The distances from an edge.
const BESIDE: [i64; 5] = [-4_096, -1, 0, 1, 511];
/// The longest path of a folder that gets further entries, whose names may have 255 bytes.
const LONGEST: usize = 2_000;

/// A tree that is being made.
struct GrowingTree {
    random: Random,
    names: Names,
    /// Folders that may get further entries.
    folders: Vec<PathBuf>,
    made: Vec<MadeEntry>,
}

impl GrowingTree {
    fn grow(&mut self, size: TreeSize) -> Result<()> {
        for _ in 0..size.folders {
            let path = self.place();
            self.folder(&path)?;
        }
        self.nested(size.depth)?;
        for number in 0..4 * size.folders {
            self.file(LENGTHS[(number % LENGTHS.len() as u64) as usize])?;
        }
        self.sparse_files()?;
        (0..size.folders).try_for_each(|number| self.link(number))?;
        (0..1 + size.folders / 16).try_for_each(|_| self.fifo())?;
        self.hard_links(size)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.random.draw() % most.max(1)
    }

    /// Returns the path of a new entry in any folder.
    fn place(&mut self) -> PathBuf {
        let number = self.below(self.folders.len() as u64) as usize;
        let name = self.names.next(&mut self.random);
        self.folders[number].join(name)
    }

    fn add(&mut self, path: PathBuf, kind: MadeKind) {
        self.made.push(MadeEntry { path, kind });
    }

    fn folder(&mut self, path: &Path) -> Result<()> {
        fs::create_dir(path)?;
        if path.as_os_str().len() < LONGEST {
            self.folders.push(path.to_path_buf());
        }
        self.add(path.to_path_buf(), MadeKind::Folder);
        Ok(())
    }

    /// Makes folders in each other, with a file in the innermost one.
    fn nested(&mut self, depth: u64) -> Result<()> {
        let mut path = self.folders[0].join("nested");
        for level in 0..depth {
            fs::create_dir(&path)?;
            self.add(path.clone(), MadeKind::Folder);
            path.push(format!("{level}"));
        }
        fs::write(&path, "deep")?;
        self.add(path, MadeKind::File);
        Ok(())
    }

    fn file(&mut self, length: u64) -> Result<()> {
        let path = self.place();
        let content: Vec<u8> = std::iter::repeat_with(|| self.random.draw().to_le_bytes())
            .flatten()
            .take(length as usize)
            .collect();
        fs::write(&path, content)?;
        self.add(path, MadeKind::File);
        Ok(())
    }

    /// Makes files with data between holes that begin and end at, before and after edges of blocks and pieces.
    fn sparse_files(&mut self) -> Result<()> {
        for edge in EDGES {
            for beside in BESIDE {
                let Some(from) = edge.checked_add_signed(beside) else { continue };
                let path = self.place();
                let file = File::create(&path)?;
                let (length, gap) = (1 + self.below(70_000), self.below(1 << 20));
                file.write_all_at(&vec![7; length as usize], from)?;
                // A second piece of data, or a hole at the end, or the end of the file.
                match self.below(3) {
                    0 => file.write_all_at(&[8], from + length + gap)?,
                    1 => file.set_len(from + length + gap)?,
                    _ => {}
                }
                self.add(path, MadeKind::File);
            }
        }
        let path = self.place();
        File::create(&path)?.set_len(5 << 20)?;
        self.add(path, MadeKind::File);
        Ok(())
    }

    /// Makes a symbolic link. None leads to a folder with something in it, because some programs follow it.
    fn link(&mut self, number: u64) -> Result<()> {
        let path = self.place();
        let own = path.file_name().unwrap_or_default().as_bytes().to_vec();
        let text = match number % 7 {
            0 => b"nested".to_vec(),
            1 => b"../nowhere".to_vec(),
            2 => b"/nowhere/at all".to_vec(),
            // One that leads to itself.
            3 => own,
            4 => b"a\nb\xff\x1b[2J".to_vec(),
            // XFS takes less than 1,024 bytes.
            5 => vec![b'l'; 1_000],
            _ => b"../../../../../../../../../nowhere".to_vec(),
        };
        // In the root itself, the first one would lead to a folder.
        let is_in_root = path.parent() == Some(self.folders[0].as_path());
        let text = if is_in_root && text == b"nested" { b"none".to_vec() } else { text };
        symlink(std::ffi::OsStr::from_bytes(&text), &path)?;
        self.add(path, MadeKind::Link);
        Ok(())
    }

    fn fifo(&mut self) -> Result<()> {
        let path = self.place();
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        self.add(path, MadeKind::Fifo);
        Ok(())
    }

    /// Makes further names of entries, in any folders; and many of one file, in one folder.
    fn hard_links(&mut self, size: TreeSize) -> Result<()> {
        // A symbolic link and a FIFO may have several names too.
        let others = self.made.iter().filter(|one| one.kind != MadeKind::Folder);
        let others: Vec<PathBuf> = others.map(|one| one.path.clone()).collect();
        for _ in 0..size.folders {
            let number = self.below(others.len() as u64) as usize;
            fs::hard_link(&others[number], self.place())?;
        }
        let folder = self.folders[0].join("linked");
        fs::create_dir(&folder)?;
        self.add(folder.clone(), MadeKind::Folder);
        let first = folder.join("0");
        fs::write(&first, "one of many")?;
        (1..size.links).try_for_each(|number| fs::hard_link(&first, folder.join(number.to_string())))?;
        self.add(first, MadeKind::File);
        Ok(())
    }
}

/// Makes the folder that a tree goes into, which others may pass.
pub(super) fn empty_folder(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("remove {}", path.display()))?;
    }
    fs::create_dir(path).with_context(|| format!("make {}", path.display()))?;
    Ok(fs::set_permissions(path, PermissionsExt::from_mode(0o755))?)
}
