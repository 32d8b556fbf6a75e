//! Sends the names of the entries to copy, if only some are copied.

use landspeed_agent::session::{Reply, Request};
use landspeed_record::PathBytes;

use super::CopyOptions;
use crate::{Error, Pair};

/// The bytes of names in one request. Each byte takes two digits. The rest of a request has room for quotes and commas.
const PART: usize = 48 << 10;

/// Sends the source the names of the entries to copy, if only some are copied.
pub(super) fn name(pair: &Pair<'_>, what: &CopyOptions) -> Result<(), Error> {
    let source = pair.host(what.from);
    let parts = what.only.as_deref().map(parts).unwrap_or_default();
    for (number, part) in parts.into_iter().enumerate() {
        match source.call(&Request::CopyNames { names_hex: part.to_vec(), is_first: number == 0 })? {
            Reply::Done {} => {}
            _ => return Err(source.unexpected("keep names")),
        }
    }
    Ok(())
}

/// Splits the names into parts that fit a request. Returns at least one part, which may be empty.
fn parts(mut names: &[PathBytes]) -> Vec<&[PathBytes]> {
    let mut parts = Vec::new();
    loop {
        let mut bytes = 0;
        let fits = |name: &&PathBytes| {
            // The quotes of a short name take more room than the name.
            bytes += name.0.len() + 2;
            bytes <= PART
        };
        let number = names.iter().take_while(fits).count().max(1).min(names.len());
        let (part, rest) = names.split_at(number);
        parts.push(part);
        names = rest;
        if names.is_empty() {
            return parts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fit_a_request_and_have_all_names() {
        assert_eq!(parts(&[]), [&[] as &[PathBytes]]);
        let names: Vec<PathBytes> = (0..3_000_usize).map(|n| PathBytes(vec![b'x'; n % 4_000])).collect();
        let parts = parts(&names);
        assert_eq!(parts.concat(), names);
        let room = |part: &&[PathBytes]| part.iter().map(|name| 2 * name.0.len() + 3).sum::<usize>();
        assert!(parts.len() > 90 && parts.iter().all(|part| room(part) < 200 << 10), "{}", parts.len());
        assert!(parts.iter().all(|part| !part.is_empty()));
    }
}
