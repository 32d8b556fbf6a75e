//! Advice: pure functions of what is known of a host. Nothing here reads or changes one.
//!
//! - [`doctor()`] reads a host's settings and says what stands out against its link.
//! - [`persist()`] turns the settings that a tuning run kept into files that a distribution applies.
//!
//! Facts and settings may come from another host or from a file that somebody sent: they are checked
//! before they become part of a file, and escaped before they become part of a sentence.

use landspeed_units::Text;

pub mod doctor;
pub mod persist;

pub use doctor::{Finding, Severity, doctor};
pub use persist::{Error, File, Kept, LeftOut, Needs, Persisted, confirmed, persist};

/// Text of a host or a record as part of a sentence: escaped, not longer than a line.
fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown = String::from(Text::from(text));
    if let Some((cut, _)) = shown.char_indices().nth(MOST) {
        shown.truncate(cut);
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_a_stranger_wrote_cannot_steer_a_terminal() {
        assert_eq!(shown("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
        assert_eq!(shown(&"x".repeat(100)).len(), 63);
    }
}
