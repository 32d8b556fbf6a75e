//! landspeed's STREAM kernels against a plain C program, interleaved: `make bench-stream`.
//!
//! Compiles `bench/stream.c` with the host's C compiler (-O3). For each pair both programs run as
//! processes of their own and take turns, repetition by repetition, the order swapped each time, so that
//! both see the same moments of a shared machine. The best of ten repetitions after the first is a
//! program's rate; printed is each kernel's median ratio Rust / C over the pairs with an interval that
//! covers the median with 95 % (order statistics). The exit code says whether every median is within 5 %
//! of 1. Once on one core, once on all.
//!
//!     stream_pairs [PAIRS]        20 without

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use landspeed_capacity::memory::{REPETITIONS, Size, stream_while};
use landspeed_capacity::{Cores, Files};
use landspeed_stats::median;
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
        let [c, rust] = arms.pair(pair)?;
        for kernel in 0..4 {
            ratios[kernel].push(rust[kernel] / c[kernel]);
            rates[kernel].push(c[kernel]);
        }
    }
    // All four are shown, whatever the first one says.
    let within = (0..4).filter(|&kernel| show(kernel, &mut ratios[kernel], &rates[kernel])).count();
    Ok(within == KERNELS.len())
}

fn show(kernel: usize, ratios: &mut [f64], rates: &[f64]) -> bool {
    ratios.sort_by(f64::total_cmp);
    let Some((middle, rate)) = median(&*ratios).zip(median(rates)) else { return false };
    let (low, high) = interval(ratios);
    let gigabytes = rate / 1e9;
    println!("{:<6} C {gigabytes:6.2} GB/s   Rust / C {middle:.3} ({low:.3} to {high:.3})", KERNELS[kernel]);
    (middle - 1.0).abs() <= TOLERANCE
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
    fn pair(&self, pair: usize) -> Result<[Rates; 2], Failure> {
        let mut arms = [Arm::start(&mut self.c())?, Arm::start(&mut self.rust()?)?];
        for repetition in 0..REPETITIONS as usize {
            let first = (pair + repetition) % 2;
            arms[first].repeat()?;
            arms[1 - first].repeat()?;
        }
        let [c, rust] = arms;
        Ok([c.end()?, rust.end()?])
    }

    fn c(&self) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.core_list()]).arg(&self.c);
        // One thread a core that stays there, as landspeed's, and sleeps while it is not its turn.
        command.env("OMP_NUM_THREADS", self.cores.len().to_string());
        command.env("OMP_PROC_BIND", "true").env("OMP_WAIT_POLICY", "passive");
        command
    }

    fn rust(&self) -> Result<Command, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--rust", &self.array.0.to_string(), &self.core_list()]);
        Ok(command)
    }

    fn core_list(&self) -> String {
        self.cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

/// One program of a pair: a line asks for a repetition, a line answers.
struct Arm {
    child: Child,
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Arm {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?;
        let asks = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from the program")?);
        Ok(Arm { child, asks, answers })
    }

    fn repeat(&mut self) -> Result<(), Failure> {
        self.asks.as_mut().ok_or("no pipe to the program")?.write_all(b"\n")?;
        self.line().map(drop)
    }

    fn end(mut self) -> Result<Rates, Failure> {
        self.asks = None;
        let mut rates = [0.0; 4];
        for (rate, kernel) in rates.iter_mut().zip(KERNELS) {
            *rate = self.line()?.strip_prefix(kernel).ok_or("unexpected output")?.trim().parse()?;
        }
        if self.child.wait()?.success() { Ok(rates) } else { Err("a program failed".into()) }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("a program ended before its time".into());
        }
        Ok(line)
    }
}

fn rust_child(array: u64, cores: &str) -> Result<(), Failure> {
    let cores = cores.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let rates = stream_while(&cores, Bytes(array), &mut |before| {
        if before > 0 {
            println!("done");
        }
        std::io::stdin().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0)
    })?;
    for (name, rate) in KERNELS.iter().zip(rates) {
        println!("{name} {}", rate.best_bps.0 / 8.0);
    }
    Ok(())
}
