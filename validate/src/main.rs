//! Studies that check what landspeed promises: `cargo run --release -p validate -- --help`.
//!
//! Each study prints the tables of a page in docs/results, and fails if a promise is broken. Some studies run the
//! product's own decisions on simulated trials. The others measure in labs, as root. None is a test, because they
//! take from minutes to hours.

mod agree;
mod applications;
mod capacity;
mod copy;
mod experiments;
mod fairness;
mod false_keeps;
mod faults;
mod forecast;
mod full_path;
mod fuse;
mod gates;
mod grid_coverage;
mod kept;
mod landspeed;
mod netem;
mod occasions;
mod placebos;
mod rejudge;
mod round_trips;
mod scene;
mod series;
mod simulate;
mod stalled;
mod stolen;
mod stop;
mod study_runs;
mod table;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use landspeed_lab::topology::lab;

/// Studies that check what landspeed promises.
#[derive(Debug, Parser)]
#[command(name = "validate")]
struct Arguments {
    #[command(subcommand)]
    study: ValidationStudy,
}

#[derive(Debug, Subcommand)]
enum ValidationStudy {
    /// A study on the kernel's sockets against the same one simulated.
    Agree(agree::Options),
    /// Every application that ships, on its real programs.
    Applications(applications::Options),
    /// Does the workload capacity find the rate of a link that is known?
    Capacity(capacity::Options),
    /// `landspeed copy` beside other programs that copy.
    Copy(copy::Options),
    /// Does a copy keep better settings while it runs, and what does it cost where there are none?
    CopyChoice(copy::choice::Options),
    /// What does it cost that a copy accounts the time of its stages?
    CopyCost(copy::cost::Options),
    /// Copies that end in the middle: is a name ever given to a part, and how much is sent again?
    CopyKills(copy::kills::Options),
    /// How much memory do the ends of a copy take?
    CopyMemory(copy::memory::Options),
    /// Trees with everything that a tree may hold, by `landspeed copy` and other programs: what does not arrive?
    CopyTrees(copy::trees::Options),
    /// Bottlenecks made on purpose: is what `landspeed copy` names first what was made?
    CopyTruth(copy::truth::Options),
    /// The goodput of `landspeed copy` beside that of a stream, over long links that lose.
    CopyWan(copy::wan::Options),
    /// Every experiment that ships, in its short version.
    Experiments(experiments::Options),
    /// How do two flows with different round trips share a path, on sockets and in the simulator?
    Fairness(fairness::Options),
    /// Simulated runs: false keeps, power and guards under each kind of noise.
    FalseKeeps(false_keeps::Options),
    /// Does `explain` name what was done to a path?
    Faults(faults::Options),
    /// Does `explain --capacity` tell a flow that fills its path from one that leaves room?
    FullPath(full_path::Options),
    /// A folder as a file system of its own, slow on demand, or without something that others have.
    Fuse(fuse::Options),
    /// Does the look at the machine before an experiment refuse only what cannot be answered?
    Gates(gates::Options),
    /// Simulated grids: how often intervals hold the truth, and how wide they are.
    GridCoverage(grid_coverage::Options),
    /// landspeed's own link beside the kernel's netem, in a virtual machine.
    Netem(netem::Options),
    /// What `netem` runs in the virtual machine.
    #[command(name = netem::INSIDE, hide = true)]
    NetemInside(netem::StudySize),
    /// Pools occasions of the experiments, and holds later ones against what earlier ones predicted.
    Occasions(occasions::Options),
    /// Real decisions between equal settings, in the lab.
    Placebos(placebos::Options),
    /// What would `explain` say today about paths that it has watched?
    Rejudge(rejudge::Options),
    /// Do the commands that `explain` names win what it expects?
    Remedies(faults::remedies::Options),
    /// Do stability and fairness of a study change with the round trip of its path?
    RoundTrips(round_trips::Options),
    /// Is a stalled window made and unmade at will?
    Stalled(stalled::Options),
    /// Which paths of 2004 give what cottrell-2005 has of Reno, and what do they predict of all else?
    Scene(scene::Options),
    /// Simulated series of occasions: how often intervals hold the truth, and numbers are falsely reproduced.
    Series(series::Options),
    /// What `vm` runs over TCP and over other paths between its guests.
    #[command(name = "sockets-alike", hide = true)]
    SocketsAlike(vm::ProgramOptions),
    /// How far `tune` comes beside a neighbour that takes a part of each core, against how far it comes alone.
    Stolen(stolen::Options),
    /// landspeed on Debian's kernels and other drivers, in virtual machines.
    Vm(vm::Options),
    /// What `copy-trees` runs where openat2(2) is refused.
    #[command(name = copy::trees::denied::DENIED, hide = true)]
    WithoutOpenat2(copy::trees::denied::Options),
}

fn main() -> ExitCode {
    let study = Arguments::parse().study;
    // A keeper removes the labs of a study that is killed. A study that needs landspeed reports itself if it is missing.
    if let Ok(landspeed) = landspeed::landspeed() {
        lab::keep_with(vec![landspeed.into(), "keeper".into()]);
    }
    let result = match study {
        ValidationStudy::Agree(options) => agree::run(&options),
        ValidationStudy::Applications(options) => applications::run(&options),
        ValidationStudy::Capacity(options) => capacity::run(&options),
        ValidationStudy::Copy(options) => copy::run(&options),
        ValidationStudy::CopyChoice(options) => copy::choice::run(&options),
        ValidationStudy::CopyCost(options) => copy::cost::run(&options),
        ValidationStudy::CopyKills(options) => copy::kills::run(&options),
        ValidationStudy::CopyMemory(options) => copy::memory::run(&options),
        ValidationStudy::CopyTrees(options) => copy::trees::run(&options),
        ValidationStudy::CopyTruth(options) => copy::truth::run(&options),
        ValidationStudy::CopyWan(options) => copy::wan::run(&options),
        ValidationStudy::Experiments(options) => experiments::run(&options),
        ValidationStudy::Fairness(options) => fairness::run(&options),
        ValidationStudy::FalseKeeps(options) => false_keeps::run(&options),
        ValidationStudy::Faults(options) => faults::run(&options),
        ValidationStudy::FullPath(options) => full_path::run(&options),
        ValidationStudy::Fuse(options) => fuse::run(&options),
        ValidationStudy::Gates(options) => gates::run(&options),
        ValidationStudy::GridCoverage(options) => grid_coverage::run(&options),
        ValidationStudy::Netem(options) => netem::run(&options),
        ValidationStudy::NetemInside(size) => netem::run_inside(&size),
        ValidationStudy::Occasions(options) => occasions::run(&options),
        ValidationStudy::Placebos(options) => placebos::run(&options),
        ValidationStudy::Rejudge(options) => rejudge::run(&options),
        ValidationStudy::Remedies(options) => faults::remedies::run(&options),
        ValidationStudy::RoundTrips(options) => round_trips::run(&options),
        ValidationStudy::Stalled(options) => stalled::run(&options),
        ValidationStudy::Scene(options) => scene::run(&options),
        ValidationStudy::Series(options) => series::run(&options),
        ValidationStudy::SocketsAlike(options) => vm::run_program(&options),
        ValidationStudy::Stolen(options) => stolen::run(&options),
        ValidationStudy::Vm(options) => vm::run(&options),
        ValidationStudy::WithoutOpenat2(options) => copy::trees::denied::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("validate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_the_makefile_says_is_understood_and_the_rest_refused() {
        let parse = |line: &str| Arguments::try_parse_from(line.split(' '));
        for line in [
            "validate placebos --decisions 10",
            "validate false-keeps --runs 200 --only drift",
            "validate capacity --runs 5",
            "validate copy --turns 3 --mib 512 --folder /tmp",
            "validate copy --files 20000",
            "validate copy --rivals /opt/rivals --only rsync --into copies.jsonl",
            "validate copy --place disk --drop-caches --turns 2 --mib 64",
            "validate copy --files 20000 --rtt 40ms --rate 1Gbps",
            "validate copy --place image --files 100",
            "validate copy --pool monday.jsonl tuesday.jsonl",
            "validate copy-kills --kills 8 --tuned 4 --cuts 2 --long-cuts 1 --seed 3",
            "validate copy-memory --files 20000 --mib 64 --folder /tmp",
            "validate copy-trees --folders 20 --links 100 --seed 3 --disk /var/tmp --memory /dev/shm",
            "validate copy-memory --minutes 5 --only minutes --state target/memory.jsonl",
            "validate copy-trees --only relayed",
            "validate copy-wan --turns 3 --mib 256 --files 200 --seconds 4 --only 1e-5",
            "validate copy-choice --seconds 120 --only loss --state target/choice.jsonl --minutes 60 --folder /dev/shm",
            "validate copy-choice --only simulated --simulated 200",
            "validate copy-cost --pairs 10 --mib 512 --folder /dev/shm",
            "validate copy-truth --runs 5 --only disk --seed 3 --folder /dev/shm",
            "validate experiments --only cottrell --full",
            "validate grid-coverage --grids 400 --only loud",
            "validate faults --only loss --seed 3",
            "validate faults --short --pairs 8 --clean 1",
            "validate full-path --runs 8 --seed 3",
            "validate gates --gates 20 --only disturbed --state target/gates.jsonl --minutes 80",
            "validate gates --into gates.jsonl",
            "validate fuse --over /dev/shm --at /mnt --write-rate 40000000 --no-xattrs --no-holes",
            "validate without-openat2 landspeed copy --json from to",
            "validate vm --short --again --kernels 5.10,6.1 --drivers igb --minutes 8",
            "validate netem --turns 5 --seconds 5 --seed 3 --icount shift=2,sleep=off",
            "validate netem --from target/netem/runs.jsonl",
            "validate sockets-alike client 198.18.0.2",
            "validate sockets-alike server 198.18.0.2 --forking",
            "validate netem-inside --turns 5 --seconds 5 --seed 3",
            "validate agree kernel.jsonl simulator.jsonl",
            "validate stalled --runs 3 --only buffer",
            "validate stolen --pairs 2",
            "validate rejudge one.json two.json",
            "validate scene --settings 300 --seeds 5 --only reno --minutes 14",
            "validate remedies --runs 3 --only window --seed 7",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
        for line in [
            "validate",
            "validate rejudge",
            "validate placebos --decisions",
            "validate agree kernel.jsonl",
            "validate copy --rate 1G",
            "validate vm --minutes 0",
            "validate copy --turns 0",
            "validate copy-wan --files 0",
            "validate copy --pool one.jsonl --into two.jsonl",
            "validate copy-choice --seconds 10",
            "validate copy-truth --runs 0",
            "validate copy-memory --minutes 0",
            "validate fuse --over /dev/shm --at /mnt --read-rate 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
