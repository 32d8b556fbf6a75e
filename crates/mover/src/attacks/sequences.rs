//! A source that sends any messages in any order.

use super::*;
use crate::extras::{FolderNames, NameDigest};
use crate::select::Removal;

/// A small pseudo-random number generator with a seed.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 31)
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[(self.draw() % all.len() as u64) as usize].clone()
    }
}

/// The lengths of files that are tried.
const SIZES: [u64; 7] = [0, 1, 3, 1 << 20, (1 << 20) + 1, 3 << 20, u64::MAX];

/// A source that remembers only the lengths of the files that it has offered.
struct Babbler {
    random: Random,
    links: Vec<Vec<u8>>,
    sizes: Vec<u64>,
}

impl Babbler {
    fn entry(&mut self) -> OfferedEntry {
        let name = self.random.of(&["a", "a/b", "a/b/c", "b", "l", "l/x", "l/victim", "", "f"]);
        let size = self.random.of(&SIZES);
        self.sizes.push(size);
        match self.random.draw() % 4 {
            0 => folder(name),
            1 => link(name, &self.random.of(&self.links)),
            _ => OfferedEntry { mode: self.random.draw() as u32, link: self.hard_link(), ..file(name, size) },
        }
    }

    /// Returns how a file is linked to another one, which may exist, be missing, or lie outside.
    fn hard_link(&mut self) -> HardLink {
        let first = self.random.of(&["a", "b", "l/victim", "f"]);
        match self.random.draw() % 3 {
            0 => HardLink::Alone,
            1 => HardLink::First,
            _ => HardLink::To(RelativeName::parse(first.as_bytes()).expect("a name")),
        }
    }

    fn entries(&mut self) -> Vec<OfferedEntry> {
        (0..=self.random.draw() % 4).map(|_| self.entry()).collect()
    }

    /// Returns the number of an entry: mostly one that was offered.
    fn number(&mut self) -> u64 {
        match self.random.draw() % 10 {
            0 => u64::MAX,
            _ => self.random.draw() % (self.sizes.len() as u64 + 1),
        }
    }

    /// Returns a header and its bytes: mostly what the target expects.
    fn piece(&mut self) -> (PieceHeader, Vec<u8>) {
        let entry = self.number();
        let size = self.sizes.get(entry as usize).copied().unwrap_or(3).min(3 << 20);
        let pieces = digest::pieces(size).expect("a few");
        let index = (self.random.draw() % u64::from(pieces)) as u32;
        let bytes = vec![b'b'; digest::length(size, index)];
        let mut header = piece(entry, index, pieces, &bytes);
        match self.random.draw() % 12 {
            0 => header.digest = piece(0, 0, 1, b"other").digest,
            1 => header.is_sent = false,
            2 => header.index = self.random.draw() as u32,
            _ => {}
        }
        let bytes = if header.is_sent { bytes } else { Vec::new() };
        (header, bytes)
    }

    /// Returns what the source claims to have in a folder inside, in a link, in a folder outside, or in a file.
    fn names(&mut self) -> Vec<FolderNames> {
        let folder = self.random.of(&["", "a", "a/b", "l", "l/folder", "f"]);
        let folder = RelativeName::parse(folder.as_bytes()).expect("a name");
        let lists: [&'static [&'static str]; 3] = [&["a", "f", "l"], &["victim"], &[]];
        let has = self.random.of(&lists);
        FolderNames::parts(&folder, has.iter().map(|name| NameDigest::of(name.as_bytes())).collect())
    }

    fn say(&mut self, peer: &Peer<'_>) {
        let first = self.sizes.len() as u64;
        match self.random.draw() % 15 {
            0..=3 => peer.offer(first, self.entries()),
            4..=8 => {
                let (header, bytes) = self.piece();
                peer.say_with(&ToTarget::Pieces(vec![header]), &bytes);
            }
            9 => peer.say(&ToTarget::Folders { first: self.number(), entries: self.entries() }),
            10 => {
                let digest = self.piece().0.digest;
                peer.say(&ToTarget::Install { entry: self.number(), digest });
            }
            11 => {
                let holes = vec![((self.random.draw() % 3) as u32, 1)];
                peer.say(&ToTarget::Holes { entry: self.number(), holes });
            }
            12 => {
                let removes = self.random.draw().is_multiple_of(2);
                peer.say(&ToTarget::Names { number: self.number(), folders: self.names(), removes });
            }
            // A repeated question takes a second.
            13 => peer.say(&ToTarget::Room { again: false }),
            _ => peer.say(&ToTarget::Withdraw { entry: self.number() }),
        }
    }
}

/// Nothing outside is changed, and neither end panics or waits for ever. Entries inside stay from one source to the
/// next.
#[test]
fn any_sequence_of_messages_does_no_harm() {
    let world = World::new();
    let links = [
        world.outside(""),
        world.outside("victim"),
        b"..".to_vec(),
        b"/".to_vec(),
        b"a".to_vec(),
        Vec::new(),
    ];
    for seed in 0..rounds() / 4 {
        // Names end a copy whose user did not ask to remove anything.
        let removal = (seed % 4 > 0).then_some(Removal { most: (seed % 4 == 1).then_some(2) });
        let rules = CopyRules { removal, by_content: seed % 2 == 0, ..CopyRules::default() };
        let target = Target { rules, ..world.target(&[""]) };
        let mut babbler = Babbler { random: Random(seed), links: links.to_vec(), sizes: Vec::new() };
        let ended = attack_target(&target, |peer| {
            (0..40).for_each(|_| babbler.say(peer));
            if seed % 3 == 0 {
                peer.say(&ToTarget::Finish);
            }
        });
        let is_known = matches!(ended, Ok(()) | Err(Error::Protocol(_) | Error::Ended));
        assert!(is_known, "seed {seed}: {ended:?}");
        world.assert_untouched();
    }
}
