//! The four papers that landspeed repeats: their claims, procedures and inconsistencies, and their formulas as functions.
//!
//! `data/` has a ledger of each paper, restated in our own words: every figure with its section, unit and conditions.
//! [`ledgers`] reads them. [`FORMULAS`] has a row for each formula, with a worked example that a test computes. `data/states.toml`
//! names the claims that need other hardware, and those that follow from a formula.

#![warn(missing_docs)]

mod balaji;
mod cottrell;
mod feng;
mod formula;
mod formulas;
mod jin_yoo;
mod ledger;
mod unit;

pub use formula::{Example, Formula, Variable};
pub use formulas::{FORMULAS, formula};
pub use ledger::{Claim, ClaimState, Inconsistency, Ledger, Procedure, ledgers, state_of};
pub use unit::Unit;
