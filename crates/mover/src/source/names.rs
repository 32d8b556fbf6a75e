//! Sends the target the names in the source's folders, for a copy that removes extras (`--delete`).

use super::Sending;
use crate::Error;
use crate::extras::{FolderNames, NameTaker, list_names};
use crate::name::RelativeName;
use crate::plan::Plan;
use crate::stage::{self, Pause};
use crate::tree::Tree;
use crate::wire::Failure;

impl Sending<'_> {
    /// Sends the names in all folders, as often as the plan asks for them.
    pub(super) fn tell_names(&self) {
        while self.wait_until(|plan| plan.wants_names() || plan.wants_folders())
            && self.plan.lock().wants_names()
        {
            list_names(&self.trees, &mut Teller(self));
            self.change(|plan| plan.walked());
        }
    }
}

struct Teller<'a, 'b>(&'a Sending<'b>);

impl Teller<'_, '_> {
    /// Adds names to the plan, once there is room. Returns false if the copy is over before.
    fn tell(&self, add: impl FnOnce(&mut Plan)) -> bool {
        stage::settle(Pause::Device);
        let goes_on = self.0.wait_until(|plan| !plan.has_many_names());
        self.0.change(|plan| {
            if goes_on {
                add(plan);
            }
        });
        goes_on
    }
}

impl NameTaker for Teller<'_, '_> {
    fn take(&mut self, folders: Vec<FolderNames>) -> bool {
        self.tell(|plan| plan.add_names(folders))
    }

    fn take_empty(&mut self, tree: usize, folder: Vec<FolderNames>) -> bool {
        self.tell(|plan| plan.add_empty(tree, folder))
    }

    fn failed(&mut self, name: RelativeName, failure: Failure) -> bool {
        self.0.change(|plan| {
            plan.add_failed(name, failure);
            !plan.is_over()
        })
    }
}

/// Checks that extras are defined for these sources. Beside a single file, every entry would be an extra; beside the
/// entries of one folder, those of another one; beside a list of names, every other name.
pub(crate) fn can_remove(trees: &[Tree]) -> Result<(), Error> {
    if trees.iter().any(|tree| tree.only.is_some()) {
        return Err(Error::NamesToMirror);
    }
    let are_folders = trees.iter().all(|tree| tree.start == RelativeName::root());
    let is_apart = trees.len() == 1 || trees.iter().all(|tree| tree.target != RelativeName::root());
    match (are_folders, is_apart) {
        (false, _) => Err(Error::NoFolderToMirror),
        (true, false) => Err(Error::SeveralToMirror),
        (true, true) => Ok(()),
    }
}
