//! Settings of a flow as text for people who write or configure the application, because no file of the system can
//! hold them.

use landspeed_record::factor::FactorTable;

use super::{KeptChange, PersistError, shown};
use crate::PersistMethod;

pub(super) fn text<'a>(
    changes: impl Iterator<Item = KeptChange<'a>>,
    table: &FactorTable,
) -> Result<String, PersistError> {
    let mut text = String::new();
    for change in changes {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        if !(1..=60).contains(&change.to.len()) || !change.to.chars().all(plain) {
            return Err(change.wrong("a number or a word"));
        }
        let how =
            table.find(change.knob).map_or(&[][..], |factor| factor.persist).iter().find_map(
                |how| match how {
                    PersistMethod::Application(how) => Some(*how),
                    _ => None,
                },
            );
        text += &format!("{} = {}", shown(change.knob), change.to);
        text += &change.from.map(|from| format!(" (was {})", shown(from))).unwrap_or_default();
        text += &how.map_or("\n".to_owned(), |how| format!(": {how}\n"));
    }
    Ok(text)
}
