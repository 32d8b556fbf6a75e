//! The journal against real namespaces and real deaths. Each test makes a host of its own; agents and
//! guardians are processes of this very program (see `role.rs`).

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

/// Not a test: how this program becomes an agent or a guardian.
#[test]
fn role() {
    role::play();
}
