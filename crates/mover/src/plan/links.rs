//! Files with several names: the first one is copied, and the others become links to it once its content is in place.

use std::collections::HashMap;

use super::{OpenEntry, Plan};
use crate::digest::WholeDigest;
use crate::identity::{Inode, Timestamp};
use crate::metadata::{self, AttributeRoom, HeldRoom};
use crate::name::RelativeName;
use crate::tree::{FoundEntry, OfferBatch};
use crate::wire::HardLink;

/// The files with several names that the walk has found. Only of these is anything kept, and only until all their names were
/// found.
#[derive(Debug, Default)]
pub(super) struct LinkGroups {
    groups: HashMap<Inode, LinkGroup>,
    /// The number of entries that wait for the first one of their file.
    waiting: usize,
    /// The room for the attributes of those that wait.
    room: AttributeRoom,
}

/// An entry that waits for the first one of its file.
#[derive(Debug)]
struct WaitingName {
    found: FoundEntry,
    /// The memory that its attributes take.
    _room: HeldRoom,
}

/// The names of one file.
#[derive(Debug)]
struct LinkGroup {
    first: FirstName,
    /// The number of names that the walk has found.
    found: u64,
    /// The number of names that the file has.
    names: u64,
    /// True if an entry was not as the first one: it may be looked at anew, and become a link then.
    has_changed: bool,
}

/// The name of a file that is copied, and whether the target has it.
#[derive(Debug)]
enum FirstName {
    /// The first name is on its way. These are the others so far.
    UnderWay(Vec<WaitingName>),
    /// The target has the file under this name, as it was when it had this length and this time; and its digest, if that is
    /// proven.
    There { name: RelativeName, size: u64, modified: Timestamp, proven: Option<WholeDigest> },
}

impl LinkGroup {
    fn new() -> Self {
        LinkGroup { first: FirstName::UnderWay(Vec::new()), found: 0, names: 0, has_changed: false }
    }

    /// Makes an entry a link to the first one, if the target has that. One that is not the same file any more, or that is it
    /// after a change, is copied for itself.
    fn link(&mut self, entry: &mut FoundEntry) {
        let FirstName::There { name, size, modified, proven } = &self.first else { return };
        let identity = &entry.place.identity;
        let is_same = identity.size == *size && identity.modified == *modified;
        self.has_changed |= !is_same;
        entry.offered.link = if is_same { HardLink::To(name.clone()) } else { HardLink::Alone };
        entry.proven = proven.filter(|_| is_same);
    }

    /// Returns true if no further entry can be a link to the first one.
    fn is_over(&self) -> bool {
        let is_there = matches!(self.first, FirstName::There { .. });
        is_there && self.found >= self.names && !self.has_changed
    }
}

impl LinkGroups {
    /// Returns no groups. Attributes of entries that wait count in `room`.
    pub(super) fn new(room: &AttributeRoom) -> Self {
        LinkGroups { room: room.clone(), ..LinkGroups::default() }
    }

    /// Returns the number of entries that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Takes an entry that the walk has found. Returns it as it is to be offered; `None` if it waits for the first one.
    pub(super) fn sort(&mut self, entry: FoundEntry) -> Option<FoundEntry> {
        self.sort_as(entry, 1)
    }

    /// `found` is the number of names that this entry adds to those that were found.
    fn sort_as(&mut self, mut entry: FoundEntry, found: u64) -> Option<FoundEntry> {
        if entry.offered.link != HardLink::First {
            return Some(entry);
        }
        let key = key(&entry);
        let is_first = !self.groups.contains_key(&key);
        let group = self.groups.entry(key).or_insert_with(LinkGroup::new);
        group.found += found;
        group.names = group.names.max(entry.place.names);
        if !is_first && let FirstName::UnderWay(others) = &mut group.first {
            let room = self.room.hold(metadata::bytes(&entry.offered.metadata.attributes));
            others.push(WaitingName { found: entry, _room: room });
            self.waiting += 1;
            return None;
        }
        group.link(&mut entry);
        self.forget_if_over(key);
        Some(entry)
    }

    /// The target has an entry. Returns those that have waited for it, as they are to be offered.
    fn there(&mut self, entry: &FoundEntry) -> Vec<FoundEntry> {
        let Some(group) = self.group_of_first(entry) else { return Vec::new() };
        let FirstName::UnderWay(others) = &mut group.first else { return Vec::new() };
        let mut others: Vec<FoundEntry> = std::mem::take(others).into_iter().map(|one| one.found).collect();
        let (name, modified) = (entry.offered.name.clone(), entry.offered.modified);
        group.first = FirstName::There { name, size: entry.size(), modified, proven: entry.proven };
        others.iter_mut().for_each(|other| group.link(other));
        self.waiting -= others.len();
        self.forget_if_over(key(entry));
        others
    }

    /// An entry has failed. Returns one that has waited for it, which is the first one now.
    fn failed(&mut self, entry: &FoundEntry) -> Option<FoundEntry> {
        let FirstName::UnderWay(others) = &mut self.group_of_first(entry)?.first else { return None };
        let next = others.pop();
        match next {
            Some(_) => self.waiting -= 1,
            None => drop(self.groups.remove(&key(entry))),
        }
        next.map(|one| one.found)
    }

    /// An entry was looked at anew, because it has changed. Returns the entries that are to be offered in its place: itself
    /// as it is `now`, if it does not wait, and one that has waited for it, if it is not the first one of its file any more.
    fn changed(&mut self, before: &FoundEntry, now: FoundEntry) -> [Option<FoundEntry>; 2] {
        let is_first = before.offered.link == HardLink::First;
        if is_first && now.offered.link == HardLink::First && key(before) == key(&now) {
            return [Some(now), None];
        }
        let next = self.failed(before);
        [self.sort_as(now, 0), next]
    }

    /// Takes all entries that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<FoundEntry> {
        self.waiting = 0;
        let groups = std::mem::take(&mut self.groups).into_values();
        let others = groups.map(|group| match group.first {
            FirstName::UnderWay(others) => others,
            FirstName::There { .. } => Vec::new(),
        });
        others.flatten().map(|one| one.found).collect()
    }

    /// Returns the group of which this entry is the first one.
    fn group_of_first(&mut self, entry: &FoundEntry) -> Option<&mut LinkGroup> {
        let is_first = entry.offered.link == HardLink::First;
        self.groups.get_mut(&key(entry)).filter(|_| is_first)
    }

    fn forget_if_over(&mut self, key: Inode) {
        if self.groups.get(&key).is_some_and(LinkGroup::is_over) {
            self.groups.remove(&key);
        }
    }
}

fn key(entry: &FoundEntry) -> Inode {
    entry.place.identity.inode()
}

impl Plan {
    /// Offers the entries that have waited for one that the target has now.
    pub(super) fn offer_links(&mut self, first: &OpenEntry) {
        let mut offer = OfferBatch::default();
        for other in self.links.there(&first.found) {
            if offer.push(other) {
                self.add_as(offer.take(), false);
            }
        }
        self.add_as(offer.take(), false);
    }

    /// Offers one that has waited for an entry that has failed.
    pub(super) fn offer_next_name(&mut self, failed: &FoundEntry) {
        let next = self.links.failed(failed);
        self.add_as(next.into_iter().collect(), false);
    }

    /// Offers an entry once more that has changed.
    pub(super) fn offer_again(&mut self, before: &FoundEntry, now: FoundEntry) {
        let [again, next] = self.links.changed(before, now);
        self.add_as(again.into_iter().collect(), true);
        self.add_as(next.into_iter().collect(), false);
    }
}

#[cfg(test)]
mod tests;
