//! The `landspeed` binary: arguments and wiring only.

fn main() {}
