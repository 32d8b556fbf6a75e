//! The ledgers of the papers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

/// The ledger of a paper.
#[derive(Debug, Clone, Deserialize)]
pub struct Ledger {
    /// The paper.
    pub paper: Paper,
    /// The figures and statements of the paper, with their conditions.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// The procedures of the paper.
    #[serde(rename = "procedure")]
    pub procedures: Vec<Procedure>,
    /// The formulas of the paper. [`crate::FORMULAS`] has them as functions.
    #[serde(rename = "formula")]
    pub formulas: Vec<LedgerFormula>,
    /// The places where the paper contradicts itself, with our arithmetic.
    #[serde(rename = "inconsistency")]
    pub inconsistencies: Vec<Inconsistency>,
}

/// A paper.
#[derive(Debug, Clone, Deserialize)]
pub struct Paper {
    /// The name, such as "feng-2003".
    pub id: String,
    /// The title.
    pub title: String,
    /// The year of publication.
    pub year: u32,
}

/// A figure or statement of a paper.
#[derive(Debug, Clone, Deserialize)]
pub struct Claim {
    /// The name, such as "feng.abs.throughput".
    pub id: String,
    /// Section of the paper.
    pub section: String,
    /// What it is about.
    pub quantity: String,
    value: Option<Value>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    qual: String,
    #[serde(default)]
    conditions: Table,
    relation: String,
    origin: String,
}

/// A procedure of a paper.
#[derive(Debug, Clone, Deserialize)]
pub struct Procedure {
    /// The name, such as "feng.p.nttcp".
    pub id: String,
    /// Section of the paper.
    pub section: String,
    /// What is done.
    pub what: String,
}

/// A formula in a ledger.
#[derive(Debug, Clone, Deserialize)]
pub struct LedgerFormula {
    /// The name, such as "feng.f.bdp".
    pub id: String,
}

/// A place where a paper contradicts itself.
#[derive(Debug, Clone, Deserialize)]
pub struct Inconsistency {
    /// The name, such as "feng.i.8940".
    pub id: String,
    /// Where it is.
    #[serde(rename = "where")]
    pub place: String,
    /// What is printed.
    #[serde(deserialize_with = "text")]
    pub printed: String,
    /// Our arithmetic.
    #[serde(deserialize_with = "text")]
    pub check: String,
    /// How we read it.
    #[serde(default)]
    pub reading: String,
}

fn text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Value::deserialize(from).map(|value| plain(&value))
}

/// Whether and how landspeed tests a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimState {
    /// An experiment or a study holds a figure of ours against its number.
    Number,
    /// An experiment or a study tests its direction.
    Direction,
    /// An experiment or a study tests it with another mechanism in place of the paper's.
    InKind,
    /// It follows from a formula, which `landspeed calc` computes.
    Computed,
    /// It needs other hardware, or is no result.
    NotHere,
    /// Nothing tests it.
    Untested,
}

impl ClaimState {
    /// All states.
    pub const ALL: [ClaimState; 6] = [
        ClaimState::Number,
        ClaimState::Direction,
        ClaimState::InKind,
        ClaimState::Computed,
        ClaimState::NotHere,
        ClaimState::Untested,
    ];

    /// Returns the name on the command line and in documents.
    pub fn name(self) -> &'static str {
        match self {
            ClaimState::Number => "number",
            ClaimState::Direction => "direction",
            ClaimState::InKind => "in-kind",
            ClaimState::Computed => "computed",
            ClaimState::NotHere => "not-here",
            ClaimState::Untested => "untested",
        }
    }
}

/// The states that no experiment and no study gives.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct States {
    not_here: BTreeMap<String, String>,
    computed: BTreeMap<String, String>,
}

static STATES: LazyLock<States> =
    LazyLock::new(|| toml::from_str(include_str!("../data/states.toml")).expect("a test reads it"));

static LEDGERS: LazyLock<Vec<Ledger>> = LazyLock::new(|| {
    let files = [
        include_str!("../data/feng-2003.toml"),
        include_str!("../data/cottrell-2005.toml"),
        include_str!("../data/balaji-2006.toml"),
        include_str!("../data/jin-yoo-2007.toml"),
    ];
    files.map(|file| toml::from_str(file).expect("a test reads it")).into()
});

/// Returns the ledgers of all papers.
pub fn ledgers() -> &'static [Ledger] {
    &LEDGERS
}

/// Returns the state of a claim and what gives it: an experiment, a study, a reason or a formula. `tested` has the first two.
pub fn state_of<'t>(
    claim: &str,
    tested: &'t BTreeMap<String, (ClaimState, String)>,
) -> (ClaimState, &'t str) {
    if let Some((state, experiment)) = tested.get(claim) {
        return (*state, experiment);
    }
    let states: &'static States = &STATES;
    let computed = states.computed.get(claim).map(|formula| (ClaimState::Computed, formula.as_str()));
    let not_here = || states.not_here.get(claim).map(|reason| (ClaimState::NotHere, reason.as_str()));
    computed.or_else(not_here).unwrap_or((ClaimState::Untested, ""))
}

impl Claim {
    /// Returns the printed value with its qualifier and unit: "over 7 Gb/s".
    pub fn printed(&self) -> String {
        let qualifier = match self.qual.as_str() {
            "approx" => "about ",
            "over" => "over ",
            "under" => "under ",
            "up_to" => "up to ",
            _ => "",
        };
        let value = self.value.as_ref().map(plain).unwrap_or_default();
        format!("{qualifier}{value} {}", self.unit).trim().to_owned()
    }

    /// Returns true if it is a figure that the paper's authors measured themselves.
    pub fn is_own_measurement(&self) -> bool {
        self.relation == "measured" && self.origin == "own"
    }

    /// Returns the conditions under which the paper has it: "mtu_bytes 1500, stack TOE".
    pub fn conditions(&self) -> String {
        let one = |(name, value): (&String, &Value)| format!("{name} {}", plain(value));
        self.conditions.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Returns a value as a person reads it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Table(table) => table
            .iter()
            .map(|(name, value)| format!("{name} {}", plain(value)))
            .collect::<Vec<_>>()
            .join(", "),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(moment) => moment.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_ledgers_are_whole() {
        let sum = |of: fn(&Ledger) -> usize| ledgers().iter().map(of).sum::<usize>();
        assert_eq!(sum(|paper| paper.claims.len()), 401);
        assert_eq!(sum(|paper| paper.procedures.len()), 51);
        assert_eq!(sum(|paper| paper.formulas.len()), 45);
        assert_eq!(sum(|paper| paper.inconsistencies.len()), 64);
        for claim in ledgers().iter().flat_map(|paper| &paper.claims) {
            assert!(!claim.quantity.is_empty() && !claim.printed().is_empty(), "{}", claim.id);
        }
        let own = |paper: &Ledger| paper.claims.iter().filter(|claim| claim.is_own_measurement()).count();
        assert_eq!(ledgers().iter().map(own).collect::<Vec<_>>(), [31, 67, 32, 13]);
    }

    #[test]
    fn each_state_is_of_a_claim_and_each_formula_is_known() {
        let claims: BTreeSet<&str> =
            ledgers().iter().flat_map(|paper| &paper.claims).map(|claim| claim.id.as_str()).collect();
        for (claim, formula) in &STATES.computed {
            assert!(
                claims.contains(claim.as_str()) && crate::formula(formula).is_some(),
                "{claim}: {formula}"
            );
        }
        for (claim, reason) in &STATES.not_here {
            assert!(claims.contains(claim.as_str()) && !reason.is_empty(), "{claim}");
            assert!(!STATES.computed.contains_key(claim), "{claim} is in both tables");
        }
    }

    #[test]
    fn a_claim_is_printed_with_its_qualifier_and_conditions() {
        let paper = ledgers().iter().find(|ledger| ledger.paper.id == "feng-2003").expect("a ledger");
        let claim = paper.claims.iter().find(|claim| claim.id == "feng.abs.throughput").expect("a claim");
        assert_eq!(claim.printed(), "over 7 Gb/s");
        let tested = [("feng.abs.throughput".to_owned(), (ClaimState::Number, "feng/fan".to_owned()))].into();
        assert_eq!(state_of(&claim.id, &tested), (ClaimState::Number, "feng/fan"));
        assert_eq!(state_of("no.such.claim", &tested), (ClaimState::Untested, ""));
    }
}
