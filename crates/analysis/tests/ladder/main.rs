//! Tests of whole runs of the ladder in worlds whose effects are known.

mod advised;
mod bound;
mod drive;
mod proof;
mod rules;
mod saved;
mod stolen;
