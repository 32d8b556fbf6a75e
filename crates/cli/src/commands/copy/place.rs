//! Reads the paths of a copy: PATH, or [user@]HOST:PATH.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use landspeed_engine::{CopyPaths, THIS_HOST, shown_place};
use landspeed_record::Side;

use super::CopyArgs;
use crate::groups::without_tokens;

/// The origin and the destination of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyPlaces {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) paths: CopyPaths,
    /// The side of the pair that has the files. The first host of the pair opens all connections if it can. If this
    /// machine is one of the two hosts, it is the first, because others may not be able to reach it.
    pub(super) reads: Side,
}

impl CopyPlaces {
    /// Returns the hosts of the pair in order.
    pub(super) fn words(&self) -> [String; 2] {
        match self.reads {
            Side::A => [self.from.clone(), self.to.clone()],
            Side::B => [self.to.clone(), self.from.clone()],
        }
    }

    /// Returns the places for display and for records. A host's name may be an agent's line with a token.
    pub(super) fn without_tokens(self) -> CopyPlaces {
        let [from, to] = [&self.from, &self.to].map(|host| without_tokens(std::slice::from_ref(host)));
        CopyPlaces { from, to, ..self }
    }

    /// Formats the sources for the user.
    pub(super) fn sources_shown(&self) -> String {
        let [first, rest @ ..] = self.paths.sources.as_slice() else { return self.from.clone() };
        let first = shown_place(&self.from, &String::from_utf8_lossy(first));
        if rest.is_empty() { first } else { format!("{first} and {} more", rest.len()) }
    }
}

/// Returns the places that the arguments name.
///
/// # Errors
/// Returns an error if a path names a host beside `--from` or `--to`, or if sources are on several hosts.
pub(super) fn places(args: &CopyArgs) -> Result<CopyPlaces, String> {
    let (sources, target) = match args.paths.as_slice() {
        [sources @ .., target] if !sources.is_empty() => (sources, target),
        _ => return Err("name what is copied, and last where it goes".to_owned()),
    };
    let read = |path: &std::ffi::OsString, host: &Option<String>, option: &str| place(path, host, option);
    let sources =
        sources.iter().map(|path| read(path, &args.from, "--from")).collect::<Result<Vec<_>, _>>()?;
    let (to, target) = read(target, &args.to, "--to")?;
    let from = sources.first().map_or_else(|| THIS_HOST.to_owned(), |(host, _)| host.clone());
    if let Some((other, _)) = sources.iter().find(|(host, _)| *host != from) {
        return Err(format!("sources are on {from} and on {other}: copy from one host at a time"));
    }
    let reads = if to == THIS_HOST && from != THIS_HOST { Side::B } else { Side::A };
    let sources = sources.into_iter().map(|(_, path)| path).collect();
    Ok(CopyPlaces { from, to, paths: CopyPaths { sources, target }, reads })
}

/// Returns the host and the folder that `--clean` names.
///
/// # Errors
/// Returns an error unless the arguments name one folder, on one host.
pub(super) fn cleaned(args: &CopyArgs) -> Result<(String, Vec<u8>), String> {
    match args.paths.as_slice() {
        [folder] => place(folder, &args.to, "--to"),
        _ => Err("--clean takes one path: the folder into which files were copied".to_owned()),
    }
}

/// Returns the host and the path of an argument.
fn place(argument: &OsStr, host: &Option<String>, option: &str) -> Result<(String, Vec<u8>), String> {
    if argument.is_empty() {
        return Err("a path is empty: name a file or a folder, or . for the one where you are".to_owned());
    }
    let named = split(argument.as_bytes());
    match (host, named) {
        (Some(host), None) => Ok((host.clone(), argument.as_bytes().to_vec())),
        (Some(_), Some((other, _))) => Err(format!(
            "{} names the host {other} beside {option}: leave one out, or write ./ before a path with a colon",
            argument.display()
        )),
        (None, Some((host, path))) if host == "netns" && !path.starts_with(b"/") => {
            let path = String::from_utf8_lossy(path);
            let (name, path) = path.split_once(':').unwrap_or((&*path, "PATH"));
            Err(format!("name a network namespace apart from its path: {option} netns:{name}, and {path}"))
        }
        (None, Some((host, path))) if host == "landspeed" && path.starts_with(b"//") => {
            Err(format!("name an agent's line apart from its path: {option} 'landspeed://...', and the path"))
        }
        (None, Some((host, path))) => Ok((host, path.to_vec())),
        (None, None) => Ok((THIS_HOST.to_owned(), argument.as_bytes().to_vec())),
    }
}

/// Splits HOST:PATH. A colon after a slash belongs to the path. An IPv6 address is in brackets.
fn split(argument: &[u8]) -> Option<(String, &[u8])> {
    let is_bracketed = argument.starts_with(b"[") || argument.windows(2).any(|two| two == b"@[");
    let (host, path) = match argument.windows(2).position(|two| two == b"]:") {
        Some(at) if is_bracketed => (&argument[..=at], &argument[at + 2..]),
        _ => {
            let at = argument.iter().position(|byte| *byte == b':')?;
            (&argument[..at], &argument[at + 1..])
        }
    };
    let host = std::str::from_utf8(host).ok().filter(|host| !host.is_empty() && !host.contains('/'))?;
    Some((host.replace(['[', ']'], ""), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_shown_or_recorded() {
        let agent = "landspeed://TOKEN@192.0.2.1:4711/#PIN";
        let paths = CopyPaths { sources: vec![b"run7".to_vec()], target: b"/scratch".to_vec() };
        let of = |to: &str| {
            let (from, to, paths) = ("netns:a".to_owned(), to.to_owned(), paths.clone());
            CopyPlaces { from, to, paths, reads: Side::A }.without_tokens()
        };
        let places = of(agent);
        assert!(places.to.contains("192.0.2.1") && !places.to.contains("TOKEN"), "{}", places.to);
        for host in [THIS_HOST, "root@10.99.0.3", "netns:b", "fd00::1"] {
            let places = of(host);
            assert_eq!((places.from.as_str(), places.to.as_str()), ("netns:a", host));
        }
    }

    #[test]
    fn a_path_may_name_its_host() {
        let read = |text: &'static str| {
            split(text.as_bytes()).map(|(host, path)| format!("{host} {}", String::from_utf8_lossy(path)))
        };
        for (argument, expected) in [
            ("run7", None),
            ("./a:b", None),
            ("/a:b", None),
            (":a", None),
            ("dtn1:/data", Some("dtn1 /data")),
            ("me@dtn1:", Some("me@dtn1 ")),
            ("dtn1:a:b", Some("dtn1 a:b")),
            ("[fd00::1]:a", Some("fd00::1 a")),
            ("me@[fd00::1]:a", Some("me@fd00::1 a")),
        ] {
            assert_eq!(read(argument).as_deref(), expected, "{argument}");
        }
    }
}
