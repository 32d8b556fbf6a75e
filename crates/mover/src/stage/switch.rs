//! Switches the accounting of threads' time. `make copy-cost` copies with and without it, to say what it costs.

use std::ffi::OsStr;
use std::sync::OnceLock;

/// The environment variable that switches it off, in the environment of both ends.
const SWITCH: &str = "LANDSPEED_COPY_CLOCKS";

pub(super) fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| !is_off(std::env::var_os(SWITCH).as_deref()))
}

fn is_off(set: Option<&OsStr>) -> bool {
    set.is_some_and(|value| value == "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_word_switches_it_off() {
        assert!(is_off(Some(OsStr::new("off"))));
        for set in [None, Some(OsStr::new("")), Some(OsStr::new("on"))] {
            assert!(!is_off(set), "{set:?}");
        }
    }
}
