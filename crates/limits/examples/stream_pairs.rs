//! landspeed's STREAM kernels against a plain C program, interleaved: `make bench-stream`.
//!
//! Compiles `bench/stream.c` with the host's C compiler (-O3), then runs C and Rust in turn, each as a
//! process of its own, the order swapped from pair to pair, and prints for each kernel the median ratio
//! Rust / C of the best rates with an interval that covers the median with 95 % (order statistics). The
//! exit code says whether every median is within 5 % of 1. Once on one core, once on all.
//!
//!     stream_pairs [PAIRS]        20 without

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use landspeed_limits::memory::{REPETITIONS, Size, stream_of};
use landspeed_limits::{Budget, Cores, Files};
use landspeed_units::Bytes;

type Failure = Box<dyn std::error::Error>;
type Rates = [f64; 4];

const KERNELS: [&str; 4] = ["copy", "scale", "add", "triad"];
const TOLERANCE: f64 = 0.05;

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, array, cores] = &arguments[..]
        && child == "--rust"
    {
        return rust_child(array.parse()?, cores).map(|()| ExitCode::SUCCESS);
    }
    let pairs = arguments.first().map_or(Ok(20), |pairs| pairs.parse())?;
    let files = Files::default();
    let cores = Cores::allowed(&files, None)?;
    let folder = std::env::temp_dir().join(format!("landspeed-stream-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let one = [cores.one];
    let sets = std::iter::once(&one[..]).chain((cores.all.len() > 1).then_some(&cores.all[..]));
    let within = sets.map(|cores| compare(cores, &files, &folder, pairs)).collect::<Result<Vec<_>, _>>();
    fs::remove_dir_all(&folder)?;
    Ok(if within?.into_iter().all(|within| within) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is compared: the same arrays on the same cores.
struct Arms<'a> {
    c: PathBuf,
    array: Bytes,
    cores: &'a [u32],
}

fn compare(cores: &[u32], files: &Files, folder: &Path, pairs: usize) -> Result<bool, Failure> {
    let size = Size::of_host(files, cores);
    let arms = Arms { c: compile(folder, size.array, cores.len() > 1)?, array: size.array, cores };
    println!("{} core(s), arrays of {}, {pairs} pairs", cores.len(), size.array);
    size.note.iter().for_each(|note| println!("note: {note}"));
    let mut ratios: [Vec<f64>; 4] = Default::default();
    let mut rates: [Vec<f64>; 4] = Default::default();
    for pair in 0..pairs {
        let (c, rust) = if pair % 2 == 0 {
            let c = arms.run_c()?;
            (c, arms.run_rust()?)
        } else {
            let rust = arms.run_rust()?;
            (arms.run_c()?, rust)
        };
        for kernel in 0..4 {
            ratios[kernel].push(rust[kernel] / c[kernel]);
            rates[kernel].push(c[kernel]);
        }
    }
    // All four are shown, whatever the first one says.
    let within = (0..4).filter(|&kernel| show(kernel, &mut ratios[kernel], &mut rates[kernel])).count();
    Ok(within == KERNELS.len())
}

fn show(kernel: usize, ratios: &mut [f64], rates: &mut [f64]) -> bool {
    ratios.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    let middle = median(ratios);
    let (low, high) = interval(ratios);
    let gigabytes = median(rates) / 1e9;
    println!("{:<6} C {gigabytes:6.2} GB/s   Rust / C {middle:.3} ({low:.3} to {high:.3})", KERNELS[kernel]);
    (middle - 1.0).abs() <= TOLERANCE
}

fn median(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// The narrowest symmetric pair of order statistics that covers the median with at least 95 %: the number
/// of samples below it is binomial with p = 1/2.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    let (mut below, mut tail, mut term) = (0, 0.0, 0.5f64.powi(n as i32));
    while tail + term <= 0.025 {
        tail += term;
        term *= (n - below) as f64 / (below + 1) as f64;
        below += 1;
    }
    // With 5 or fewer samples no pair covers so much: all of them.
    let rank = below.saturating_sub(1);
    (sorted[rank], sorted[n - 1 - rank])
}

fn compile(folder: &Path, array: Bytes, threads: bool) -> Result<PathBuf, Failure> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/stream.c");
    let output = folder.join(if threads { "stream-all" } else { "stream-one" });
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    // Arrays beyond 2 GB need the medium code model on x86-64.
    if cfg!(target_arch = "x86_64") && array > Bytes(600_000_000) {
        command.arg("-mcmodel=medium");
    }
    command.args(["-O3", "-o"]).arg(&output).arg(format!("-DELEMENTS={}", array.0 / 8));
    command.args(threads.then_some("-fopenmp")).arg(&source).arg("-lm");
    let done = command.status().map_err(|error| format!("cannot run the C compiler {compiler}: {error}"))?;
    if done.success() { Ok(output) } else { Err(format!("{compiler} refused {}", source.display()).into()) }
}

impl Arms<'_> {
    fn run_c(&self) -> Result<Rates, Failure> {
        let list = self.core_list();
        let mut command = Command::new("taskset");
        command.args(["-c", &list]).arg(&self.c).arg(REPETITIONS.to_string());
        // One thread a core that stays there, as landspeed's.
        command.env("OMP_NUM_THREADS", self.cores.len().to_string()).env("OMP_PROC_BIND", "true");
        rates(&mut command)
    }

    fn run_rust(&self) -> Result<Rates, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        rates(command.args(["--rust", &self.array.0.to_string(), &self.core_list()]))
    }

    fn core_list(&self) -> String {
        self.cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

/// Lines of "kernel bytes-per-second".
fn rates(command: &mut Command) -> Result<Rates, Failure> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = String::from_utf8(output.stdout)?;
    let mut rates = [0.0; 4];
    for (line, (rate, kernel)) in text.lines().zip(rates.iter_mut().zip(KERNELS)) {
        *rate = line.strip_prefix(kernel).ok_or("unexpected output")?.trim().parse()?;
    }
    if output.status.success() && rates.iter().all(|&rate| rate > 0.0) {
        return Ok(rates);
    }
    Err(format!("{command:?} failed: {text}{}", String::from_utf8_lossy(&output.stderr)).into())
}

fn rust_child(array: u64, cores: &str) -> Result<(), Failure> {
    let cores = cores.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let budget = Budget::new(Duration::from_secs(600), &|| false);
    let stream = stream_of(&cores, Bytes(array), REPETITIONS, &budget)?;
    for (name, rate) in KERNELS.iter().zip(stream.rates) {
        println!("{name} {}", rate.best_bps.0 / 8.0);
    }
    Ok(())
}
