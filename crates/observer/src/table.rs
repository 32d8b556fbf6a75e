//! Selects observers from the table.

use crate::{OBSERVERS, Observer, RunPolicy};

/// Returns the observer called `name`; `None` if there is none.
pub fn observer(name: &str) -> Option<&'static Observer> {
    OBSERVERS.iter().copied().find(|observer| observer.name == name)
}

/// Returns the observers with the run policy `when`, the observers that always run, and the observers named in `asked`.
/// Each occurs once, in the order of the table.
///
/// # Errors
/// Returns an error for a name that no observer has.
pub fn rows(asked: &[String], when: RunPolicy) -> Result<Vec<&'static Observer>, String> {
    if let Some(name) = asked.iter().find(|name| observer(name).is_none()) {
        return Err(format!("no observer is called '{}'", name.escape_default()));
    }
    let is_asked = |row: &Observer| asked.iter().any(|name| name == row.name);
    let runs = |row: &Observer| row.runs == RunPolicy::Always || row.runs == when || is_asked(row);
    Ok(OBSERVERS.iter().copied().filter(|row| runs(row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(asked: &[&str], when: RunPolicy) -> Vec<&'static str> {
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        rows(&asked, when).unwrap().iter().map(|row| row.name).collect()
    }

    #[test]
    fn every_row_is_complete_and_found_by_its_name() {
        for row in OBSERVERS {
            let name = row.name;
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert!(!row.about.is_empty() && !row.about.contains('\n'), "{name}");
            assert!(!row.cannot_see.is_empty(), "{name} claims to see everything");
            assert_eq!(observer(name).map(|found| found.name), Some(name));
        }
        assert!(observer("no-such").is_none());
    }

    #[test]
    fn names_choose_each_row_once_and_in_the_order_of_the_table() {
        let usual = names(&[], RunPolicy::Always);
        assert_eq!(usual.last(), Some(&"cpu"), "processor time is read closest to the window");
        assert!(!usual.contains(&"flows") && !usual.contains(&"path"), "{usual:?}");
        assert_eq!(names(&["cpu", "path", "cpu"], RunPolicy::Always), [&["path"], &usual[..]].concat());
        let explaining = names(&[], RunPolicy::Explaining);
        assert!(explaining.contains(&"cost") && !explaining.contains(&"path"), "{explaining:?}");
        assert!(usual.iter().all(|name| explaining.contains(name)), "{explaining:?}");
    }

    #[test]
    fn a_name_that_no_row_has_is_refused() {
        let error = rows(&["cpu".into(), "no\nsuch".into()], RunPolicy::Always).err();
        assert_eq!(error.as_deref(), Some("no observer is called 'no\\nsuch'"));
    }

    #[test]
    fn those_that_always_run_do_so_on_the_kernel_of_this_machine() {
        for row in rows(&[], RunPolicy::Always).unwrap() {
            assert_eq!(row.can_run(), Ok(()), "{}", row.name);
        }
    }
}
