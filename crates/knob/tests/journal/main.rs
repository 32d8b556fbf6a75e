//! Tests of the journal with real namespaces and real deaths. Each test makes a separate host; agents and guardians
//! are processes of this same program (see `role.rs`).

mod another;
mod foreign;
mod host;
mod interleavings;
mod kills;
mod knobs;
mod leftovers;
mod locks;
mod moved;
mod mutations;
mod ownership;
mod related;
mod role;
mod table;
mod taken;
mod turns;

/// Not a test: it makes this program an agent or a guardian.
#[test]
fn role() {
    role::play();
}
