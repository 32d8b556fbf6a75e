//! `copy`: copies a tree of files, generated from a seed, with the code of `landspeed copy`, and measures goodput until
//! the tree is on stable storage.
//!
//! The client is the source. It generates the tree before the window opens. The mover sends the tree over the trial's
//! own flows, verifies each piece, and puts everything on stable storage at the target. Both ends then remove their
//! files. The target counts its files independently of the mover. A file that fails makes the trial fail. An end at the
//! place `null` has no files, so that only the network and the processors are measured.

mod flows;
mod folder;
mod made;
mod run;
mod tree;

use std::time::{Duration, Instant};

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    CopyOutcome, DetailError, DetailRow, EndpointOutcome, FigureValue, Headline, Role, Settings, TrialSpec,
    detail,
};
use landspeed_transport::Delivery;
use serde::{Deserialize, Serialize};

use crate::end::outcome;
use crate::parameter::{LONGEST, SHORTEST};
use crate::port::single_messages;
use crate::runner::{FlowNeeds, WorkloadRole, WorkloadRunner};
use crate::trial::TrialParts;
use crate::workers::{self, WorkerTask};
use crate::{Error, TrialEnd, check};
use folder::{Place, TrialFolder};
use run::{CopyEnd, CopySteps, timed};
use tree::TreePlan;

/// The largest content of a tree.
const MOST_BYTES: u64 = 1 << 40;
const MOST_FILES: u64 = 1_000_000;
/// The largest number of flows, as in `landspeed copy`. Each flow has three threads at each end.
const MOST_FLOWS: u32 = 64;

static BYTES: Factor = Factor {
    name: "bytes",
    about: "content of the whole tree, shared out equally to its files",
    domain: Domain::Bytes(1, MOST_BYTES),
    default: "268435456",
    ..Factor::FLOW
};
static FILES: Factor = Factor {
    name: "files",
    about: "files of the tree, at most 1000 in a folder",
    domain: Domain::Int(1, MOST_FILES),
    default: "1",
    ..Factor::FLOW
};
static FILE_SIZE: Factor = Factor {
    name: "file-size",
    about: "content of each file, in the place of bytes; 0 leaves that to bytes",
    domain: Domain::Bytes(0, MOST_BYTES),
    default: "0",
    ..Factor::FLOW
};
static SOURCE: Factor = Factor {
    name: "source",
    about: "where the tree is made: in /dev/shm, in /var/tmp and out of the page cache, or nowhere, as it is sent",
    domain: Domain::OneOf(folder::NAMES),
    default: "tmpfs",
    ..Factor::FLOW
};
static TARGET: Factor = Factor {
    name: "target",
    about: "where it is copied to: /dev/shm, /var/tmp, or nowhere: each byte is proven and none is kept",
    domain: Domain::OneOf(folder::NAMES),
    default: "tmpfs",
    ..Factor::FLOW
};
static LIMIT_RATE: Factor = Factor {
    name: "limit-rate",
    about: "the most content that the source sends, over all flows, as copy --limit-rate; 0 is unlimited",
    domain: Domain::Rate(0, 1 << 53),
    default: "0",
    ..Factor::FLOW
};
static WALKERS: Factor = Factor {
    name: "walkers",
    about: "threads that walk the source's tree; 0 leaves that to the mover",
    domain: Domain::Int(0, 32),
    default: "0",
    ..Factor::FLOW
};
static LIMIT: Factor = Factor {
    name: "limit",
    about: "give up a trial that takes longer than this, the making of the tree included",
    domain: Domain::Time(SHORTEST, LONGEST),
    default: "60s",
    ..Factor::FLOW
};

/// The plan of a trial, from its parameters.
#[derive(Debug)]
struct CopyPlan {
    tree: TreePlan,
    source: &'static Place,
    target: &'static Place,
    rate: Option<BitRate>,
    walkers: Option<usize>,
}

impl CopyPlan {
    fn of(parameters: &Settings) -> Self {
        let (files, each) = (FILES.number(parameters).max(1), FILE_SIZE.number(parameters));
        let bytes = if each > 0 { each.saturating_mul(files) } else { BYTES.number(parameters) };
        let (rate, walkers) = (LIMIT_RATE.number(parameters), WALKERS.number(parameters));
        CopyPlan {
            tree: TreePlan { files, bytes },
            source: Place::named(SOURCE.of(parameters)),
            target: Place::named(TARGET.of(parameters)),
            rate: (rate > 0).then_some(BitRate(rate as f64)),
            walkers: (walkers > 0).then_some(walkers as usize),
        }
    }

    fn place(&self, role: Role) -> &'static Place {
        match role {
            Role::Client => self.source,
            Role::Server => self.target,
        }
    }
}

/// The files of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct CopiedFiles {
    /// Number of files: at the source, those whose content the target has verified; at the target, those that exist.
    files: u64,
    /// Bytes of their content.
    bytes: Bytes,
}

detail!("copied_files" => CopiedFiles);

static HEADLINES: &[Headline<EndpointOutcome>] = &[
    Headline {
        name: "files",
        about: "copied, verified and on stable storage, in a second of the window",
        of: |end| {
            let (Some(copied), seconds) = (copied(end)?, end.window_ns.as_secs_f64()) else {
                return Ok(None);
            };
            Ok((seconds > 0.0).then(|| FigureValue::PerSecond(copied.files as f64 / seconds)))
        },
    },
    Headline {
        name: "verified",
        about: "files: at the source those whose digests agreed, at the target those that it has counted",
        of: |end| Ok(copied(end)?.map(|copied| copied.files.into())),
    },
];

fn copied(end: &EndpointOutcome) -> Result<Option<&CopiedFiles>, DetailError> {
    end.details.find()
}

#[derive(Debug)]
pub(crate) struct CopyWorkload;

impl WorkloadRunner for CopyWorkload {
    fn name(&self) -> &str {
        "copy"
    }

    fn describe(&self) -> &str {
        "a tree of files, made from a seed, copied as by landspeed copy; goodput until it is on stable storage"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![BYTES, FILES, FILE_SIZE, SOURCE, TARGET, LIMIT_RATE, WALKERS, LIMIT]
    }

    fn roles(&self) -> [WorkloadRole; 2] {
        WorkloadRole::both(["makes the tree and sends it", "receives it"], [1, 1])
    }

    /// A copy is encrypted. The transport chooses the cipher, so that a grid can vary the transport.
    fn flow(&self) -> &'static [(&'static str, &'static str)] {
        &[("transport", "tls")]
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        HEADLINES
    }

    fn details(&self) -> &'static [DetailRow] {
        const { &[DetailRow::of::<CopiedFiles>()] }
    }

    fn ends_with_its_work(&self) -> bool {
        true
    }

    fn writes_files(&self) -> bool {
        true
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::delivers(&spec.flow, Delivery::Stream, |transport| {
            format!("{transport} may lose what it carries: copy needs a stream")
        })?;
        if spec.warm_up_ns > Nanos(0) {
            let why = "a copy counts from its start: leave the warm-up out".to_owned();
            return Err(Error::spec("warm_up_ns", why));
        }
        let flows = crate::session::flows(&spec.flow);
        if flows > MOST_FLOWS {
            return Err(Error::spec("flows", format!("a copy has at most {MOST_FLOWS} flows, not {flows}")));
        }
        let bytes = Bytes(CopyPlan::of(&spec.workload.parameters).tree.bytes);
        if bytes > Bytes(MOST_BYTES) {
            let why = format!("all files have {bytes}; {} is the most", Bytes(MOST_BYTES));
            return Err(Error::spec("file-size", why));
        }
        Ok(())
    }

    /// Returns zero, because a copy counts from its start.
    fn warm_up(&self) -> Nanos {
        Nanos(0)
    }

    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        LIMIT.time(parameters)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        // The mover's messages must not wait for later ones.
        FlowNeeds::alike(crate::session::flows(&spec.flow), single_messages(&spec.flow))
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        let role = end.session.role();
        let TrialEnd { spec, session, watch, cancel } = end;
        let until = Instant::now() + Duration::from(LIMIT.time(&spec.workload.parameters));
        let plan = CopyPlan::of(&spec.workload.parameters);
        let folder = TrialFolder::make(plan.place(role), &plan.tree)?;
        let (flows, for_mover) = flows::shared(session.flows, spec);
        let (mut signals, strangers) = (session.signals, session.strangers);
        let steps = CopySteps::default();
        let copying = CopyEnd { role, spec, plan: &plan, folder: folder.as_ref(), steps: &steps };
        let task: WorkerTask<'_, CopyOutcome> =
            Box::new(|context, outcome| copying.work(context, for_mover, outcome));
        let parts = TrialParts { spec, flows: &flows, strangers, signals: &mut signals, watch, cancel };
        let (mut measured, done) = workers::run(&[], &flows, vec![task], |workers| {
            timed(parts.trial(workers), role, &steps, until)
        })?;
        let (end, done) = (outcome(&mut measured, &flows), done.into_iter().next().unwrap_or_default());
        match role {
            Role::Client => Ok(sent(end, &done)),
            Role::Server => received(end, &plan, found(folder.as_ref(), &done)?),
        }
    }
}

/// Adds the source's counts of the copy.
fn sent(end: EndpointOutcome, copied: &CopyOutcome) -> EndpointOutcome {
    let files = CopiedFiles { files: copied.copied, bytes: copied.copied_bytes };
    EndpointOutcome { sent_bytes: copied.sent_bytes, ..end }.with(files)
}

/// Returns the files at the target: those in its folder, or the mover's counts if nothing is stored.
fn found(folder: Option<&TrialFolder>, done: &CopyOutcome) -> Result<TreePlan, Error> {
    let Some(folder) = folder else {
        return Ok(TreePlan { files: done.copied, bytes: done.copied_bytes.0 });
    };
    let tree = folder.tree();
    tree::count(&tree).map_err(|source| Error::refused("count", tree.display(), source))
}

/// Adds the counts of the target, which must have the whole tree.
fn received(end: EndpointOutcome, plan: &CopyPlan, found: TreePlan) -> Result<EndpointOutcome, Error> {
    if found != plan.tree {
        let (TreePlan { files, bytes }, whole) = (found, plan.tree);
        let why = format!("the target has {files} files with {}", Bytes(bytes));
        return Err(Error::Copy(format!(
            "{why}, and the source {} with {}",
            whole.files,
            Bytes(whole.bytes)
        )));
    }
    let files = CopiedFiles { files: found.files, bytes: Bytes(found.bytes) };
    // Content takes any free flow, and is counted for all flows together.
    Ok(EndpointOutcome { received_bytes: files.bytes, flow_bytes: vec![files.bytes], ..end }.with(files))
}

/// Returns the outcome of a copy of the whole tree. Returns an error with the first failure for any other outcome.
fn whole(outcome: CopyOutcome, plan: &CopyPlan) -> Result<CopyOutcome, Error> {
    if outcome.is_complete() && outcome.copied == plan.tree.files {
        return Ok(outcome);
    }
    let failed = outcome.failures.first().map(|one| (&one.name_hex.0, one.why.as_str()));
    let lost = outcome.lost.first().map(|one| (&one.name_hex.0, one.why.as_str()));
    let first = failed.or(lost).map(|(name, why)| format!(": {}: {why}", name.escape_ascii()));
    let unfinished = Some(&outcome.unfinished).filter(|why| !why.is_empty()).map(|why| format!(": {why}"));
    let (first, unfinished) = (first.unwrap_or_default(), unfinished.unwrap_or_default());
    let (copied, all) = (outcome.copied, plan.tree.files);
    Err(Error::Copy(format!("{copied} of {all} files were copied as they are{first}{unfinished}")))
}

impl From<landspeed_mover::Error> for Error {
    fn from(error: landspeed_mover::Error) -> Self {
        const PHASE: &str = "while files were copied";
        match error {
            landspeed_mover::Error::Cancelled => Error::Cancelled,
            landspeed_mover::Error::Flow(_) | landspeed_mover::Error::Ended => {
                Error::PeerGone { phase: PHASE }
            }
            landspeed_mover::Error::Silent { waited } => Error::silent(PHASE, waited.into()),
            other => Error::Copy(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyFailure, PathBytes, Workload};

    use super::*;

    fn plan(set: &[(&str, &str)]) -> CopyPlan {
        CopyPlan::of(&set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_tree_is_described_by_its_bytes_or_by_the_size_of_its_files() {
        assert_eq!(plan(&[]).tree, TreePlan { files: 1, bytes: 256 << 20 });
        assert_eq!(plan(&[("bytes", "7"), ("files", "3")]).tree, TreePlan { files: 3, bytes: 7 });
        let small =
            plan(&[("files", "20000"), ("file-size", "4096"), ("target", "disk"), ("limit-rate", "8")]);
        assert_eq!(small.tree, TreePlan { files: 20_000, bytes: 20_000 * 4096 });
        assert_eq!((small.place(Role::Client).name, small.place(Role::Server).name), ("tmpfs", "disk"));
        assert_eq!(plan(&[("source", "null")]).place(Role::Client).name, "null");
        assert_eq!(small.rate, Some(BitRate(8.0)));
        assert_eq!((small.walkers, plan(&[("walkers", "2")]).walkers), (None, Some(2)));
    }

    #[test]
    fn an_impossible_copy_is_refused() {
        let refused = |set: &[(&str, &str)], flow: &[(&str, &str)], warm_up_ns| {
            let set = set.iter().fold(Workload::new("copy"), |all, (name, value)| all.with(name, value));
            let flow = flow.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let spec = TrialSpec { workload: set, flow: flow.collect(), warm_up_ns, ..TrialSpec::default() };
            check::values(&CopyWorkload, &spec).expect_err("it is refused").to_string()
        };
        assert!(refused(&[("source", "floppy")], &[], Nanos(0)).contains("tmpfs, disk"));
        assert!(refused(&[("files", "0")], &[], Nanos(0)).starts_with("files does not take '0'"));
        assert!(
            refused(&[("file-size", "1099511627776"), ("files", "2")], &[], Nanos(0)).contains("the most")
        );
        assert!(refused(&[], &[("transport", "udp")], Nanos(0)).contains("copy needs a stream"));
        assert!(refused(&[], &[("flows", "65")], Nanos(0)).contains("at most 64 flows"));
        assert!(refused(&[], &[], Nanos(1)).contains("leave the warm-up out"));
    }

    #[test]
    fn a_file_that_fails_makes_the_trial_fail_with_its_name() {
        let plan = plan(&[("files", "2")]);
        let fine = CopyOutcome { copied: 2, ..CopyOutcome::default() };
        assert!(whole(fine.clone(), &plan).is_ok());
        let failure = CopyFailure { name_hex: PathBytes(b"0000/0\n".to_vec()), why: "it is gone".to_owned() };
        let bad = CopyOutcome { copied: 1, failed: 1, failures: vec![failure], ..fine.clone() };
        let why = whole(bad, &plan).expect_err("a file failed").to_string();
        assert_eq!(why, "1 of 2 files were copied as they are: 0000/0\\n: it is gone");
        let unfinished = CopyOutcome { unfinished: "the disk is gone".to_owned(), ..fine.clone() };
        let why = whole(unfinished, &plan).expect_err("it is not durable").to_string();
        assert_eq!(why, "2 of 2 files were copied as they are: the disk is gone");
        let fewer = CopyOutcome { copied: 1, ..fine };
        assert!(whole(fewer, &plan).is_err());
    }
}
