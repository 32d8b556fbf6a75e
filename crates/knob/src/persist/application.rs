//! Settings of a flow as text for people who write or configure the application, because no file of the system can
//! hold them.

use landspeed_record::factor::{FactorDeclaration, FactorTable};

use super::change::{KeptChange, PersistError, shown};
use crate::{PersistMethod, SystemSetting};

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
        let how = table.find(change.knob).ok().and_then(|factor| how(factor, change.to));
        text += &format!("{} = {}", shown(change.knob), change.to);
        text += &change.from.map(|from| format!(" (was {})", shown(from))).unwrap_or_default();
        text += &how.map_or("\n".to_owned(), |how| format!(": {how}\n"));
    }
    Ok(text)
}

/// Returns what an application must do to have the value; `None` if the table does not have it.
fn how(factor: &FactorDeclaration<'_>, value: &str) -> Option<String> {
    let of_value = factor.persist.iter().find_map(|method| match method {
        PersistMethod::ApplicationValue(of, how) if *of == value => Some((*how).to_owned()),
        _ => None,
    });
    let usual = || match factor.system {
        // A socket has the default unless its program asks for another value.
        SystemSetting::Socket(option) if value == factor.default => {
            Some(format!("do not set {option}: the system's own value is best"))
        }
        _ => factor.persist.iter().find_map(|method| match method {
            PersistMethod::Application(how) => Some((*how).to_owned()),
            _ => None,
        }),
    };
    of_value.or_else(usual)
}
