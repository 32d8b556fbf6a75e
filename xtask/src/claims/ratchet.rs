//! Counts of shown claims that only rise, and the reasons where one fell.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use landspeed_papers::{ClaimState, Ledger, ledgers};
use toml::{Table, Value};

use super::ClaimRow;

/// The file of the counts.
pub(super) const FILE: &str = "xtask/claims.toml";

const HEAD: &str = "\
# The number of claims of each paper that are in a state or in a better one. `make docs` raises the numbers and never
# lowers them. Where a claim gets a worse state, `make check` fails until a [[fell]] at the end of this file names it:
# claim = \"feng.abs.throughput\", from = the state that it had, why = the reason.
";

/// The states that count, the best first. A number is of the claims in a state or in a better one, so that a claim with a
/// direction may get a number.
const COUNTED: [ClaimState; 4] =
    [ClaimState::Number, ClaimState::Direction, ClaimState::InKind, ClaimState::Computed];

/// A claim that has a worse state than before, for a reason.
struct FallenClaim {
    claim: String,
    /// The state that it had.
    from: ClaimState,
}

impl FallenClaim {
    fn read(entry: &Value) -> Result<FallenClaim> {
        let text = |key: &str| {
            let text = entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.with_context(|| format!("{FILE}: a [[fell]] has no {key}"))
        };
        let (claim, from, _why) = (text("claim")?, text("from")?, text("why")?);
        let state = COUNTED.into_iter().find(|state| state.name() == from);
        let from = state.with_context(|| format!("{FILE}: {claim}: '{from}' is no state that counts"))?;
        Ok(FallenClaim { claim: claim.to_owned(), from })
    }

    /// Returns why this entry explains nothing, if it does not.
    fn useless(&self, rows: &[ClaimRow]) -> Option<String> {
        let FallenClaim { claim, from } = self;
        match rows.iter().find(|row| row.claim.id == *claim) {
            None => Some(format!("{FILE}: no ledger has the claim {claim}")),
            Some(row) if row.state <= *from => {
                Some(format!("{FILE}: {claim} is {} again: remove its [[fell]]", row.state.name()))
            }
            Some(_) => None,
        }
    }
}

/// The counts in the file, and the claims that fell.
pub(super) struct Ratchet<'t> {
    /// By paper and state.
    most: Table,
    fallen: Vec<FallenClaim>,
    /// The end of the file, which has the claims that fell and which a person wrote.
    reasons: &'t str,
}

impl<'t> Ratchet<'t> {
    pub(super) fn read(text: &'t str) -> Result<Ratchet<'t>> {
        let mut most: Table = toml::from_str(text).context(FILE)?;
        let fell = most.remove("fell");
        let entries = fell.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fallen = entries.iter().map(FallenClaim::read).collect::<Result<_>>()?;
        let reasons = text.find("\n[[fell]]").map_or("", |at| &text[at + 1..]);
        Ok(Ratchet { most, fallen, reasons })
    }

    /// Returns one line for each paper with a count that fell without a reason, and for each reason that explains nothing.
    pub(super) fn wrong(&self, rows: &[ClaimRow]) -> Vec<String> {
        let fell = |ledger: &Ledger| COUNTED.into_iter().find_map(|state| self.fell(rows, ledger, state));
        let fell = ledgers().iter().filter_map(fell);
        let mut names = BTreeSet::new();
        let twice = self.fallen.iter().filter(move |one| !names.insert(one.claim.as_str()));
        let twice = twice.map(|one| format!("{FILE}: {} has two [[fell]]", one.claim));
        fell.chain(self.fallen.iter().filter_map(|one| one.useless(rows))).chain(twice).collect()
    }

    /// Returns a line if fewer claims of a paper are in `state` or in a better one than before, without a reason.
    fn fell(&self, rows: &[ClaimRow], ledger: &Ledger, state: ClaimState) -> Option<String> {
        let (paper, state_name) = (&ledger.paper.id, state.name());
        let (before, now) = (self.most(paper, state), self.count(rows, paper, state));
        (now < before).then(|| {
            format!(
                "{paper}: {now} claims are {state_name} or better, where {before} were: name each that fell in a [[fell]] of \
                 {FILE}, and why (after make docs, git diff docs/reference/papers.md shows which)"
            )
        })
    }

    /// Returns the text of the file with all counts that rose.
    pub(super) fn raised(&self, rows: &[ClaimRow]) -> String {
        let table = |ledger: &Ledger| {
            let paper = &ledger.paper.id;
            let most = |state| self.most(paper, state).max(self.count(rows, paper, state));
            let line = |state: ClaimState| format!("{} = {}\n", state.name(), most(state));
            format!("\n[{paper}]\n{}", COUNTED.map(line).concat())
        };
        let tables: String = ledgers().iter().map(table).collect();
        let gap = if self.reasons.is_empty() { "" } else { "\n" };
        format!("{HEAD}{tables}{gap}{}", self.reasons)
    }

    /// Returns the count in the file; 0 if it has none.
    fn most(&self, paper: &str, state: ClaimState) -> usize {
        let count = self.most.get(paper).and_then(|counts| counts.get(state.name())?.as_integer());
        count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    }

    /// Returns the number of claims that are in `state` or in a better one, or that left it with a reason.
    fn count(&self, rows: &[ClaimRow], paper: &str, state: ClaimState) -> usize {
        let was_there =
            |row: &ClaimRow| self.fallen.iter().any(|one| one.claim == row.claim.id && one.from <= state);
        let is_counted = |row: &&ClaimRow| row.paper == paper && (row.state <= state || was_there(row));
        rows.iter().filter(is_counted).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all claims, untested but for these.
    fn rows(states: &[(&str, ClaimState)]) -> Vec<ClaimRow> {
        let row = |(paper, claim): (&'static str, &'static landspeed_papers::Claim)| {
            let state = states.iter().find(|(name, _)| *name == claim.id);
            let state = state.map_or(ClaimState::Untested, |(_, state)| *state);
            ClaimRow { paper, claim, state, by: String::new() }
        };
        let all = ledgers()
            .iter()
            .flat_map(|ledger| ledger.claims.iter().map(move |claim| (ledger.paper.id.as_str(), claim)));
        all.map(row).collect()
    }

    const RATE: &str = "feng.abs.throughput";
    const LAN: &str = "feng.t1.lan";

    fn wrong(text: &str, states: &[(&str, ClaimState)]) -> Vec<String> {
        Ratchet::read(text).expect("a file").wrong(&rows(states))
    }

    #[test]
    fn a_count_falls_only_with_the_claim_and_the_reason() {
        let both = [(RATE, ClaimState::Number), (LAN, ClaimState::Direction)];
        let written = Ratchet::read("").expect("an empty file").raised(&rows(&both));
        assert!(
            written.contains("[feng-2003]\nnumber = 1\ndirection = 2\nin-kind = 2\ncomputed = 2\n"),
            "{written}"
        );
        assert_eq!(wrong(&written, &both), [""; 0]);
        // Another claim of the same paper makes up for the count of numbers, and for no other.
        let one = [(LAN, ClaimState::Number)];
        let lines = wrong(&written, &one);
        let said = "feng-2003: 1 claims are direction or better, where 2 were";
        assert!(lines.len() == 1 && lines[0].starts_with(said), "{lines:?}");
        let explained =
            format!("{written}\n[[fell]]\nclaim = \"{RATE}\"\nfrom = \"number\"\nwhy = \"its cell went\"\n");
        assert_eq!(wrong(&explained, &one), [""; 0]);
        // The reason stays, and the count includes the claim that fell: the next fall needs a reason of its own.
        let raised = Ratchet::read(&explained).expect("a file").raised(&rows(&one));
        assert!(raised.contains("number = 2\ndirection = 2\n") && raised.ends_with("went\"\n"), "{raised}");
        assert_eq!(wrong(&raised, &[]).len(), 1);
    }

    #[test]
    fn counts_never_fall_by_themselves() {
        let written = Ratchet::read("").expect("a file").raised(&rows(&[(RATE, ClaimState::Number)]));
        assert_eq!(Ratchet::read(&written).expect("a file").raised(&rows(&[])), written);
    }

    #[test]
    fn a_reason_that_explains_nothing_is_named() {
        let fell = |claim: &str, from: &str, why: &str| {
            format!("[[fell]]\nclaim = \"{claim}\"\nfrom = \"{from}\"\nwhy = \"{why}\"\n")
        };
        let unknown = wrong(&fell("no-such-claim", "number", "why"), &[]);
        assert!(unknown[0].ends_with("no ledger has the claim no-such-claim"), "{unknown:?}");
        let back =
            format!("[[fell]]\nclaim = \"{RATE}\"\nfrom = \"in-kind\"\nwhy = \"it needed two hosts\"\n");
        let again = wrong(&back, &[(RATE, ClaimState::Direction)]);
        assert!(again[0].contains("is direction again"), "{again:?}");
        let twice = wrong(&back.repeat(2), &[]);
        assert!(twice[0].ends_with("has two [[fell]]"), "{twice:?}");
        for (from, why) in [("number", ""), ("untested", "why")] {
            assert!(Ratchet::read(&fell("one", from, why)).is_err(), "{from} {why}");
        }
    }
}
