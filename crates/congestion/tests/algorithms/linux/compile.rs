//! Controls from other sources than the library's, compiled and linked while the test runs.

use std::ffi::CString;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use landspeed_congestion::{NativeControl, native};

use super::planted::PlantedErrors;

/// Folder of kernel.h and table.h.
const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/algorithms/linux");
const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compiles `source` with `arguments`. Returns our control `name` with the callbacks of the table `symbol` in the
/// compiled object.
fn table(name: &str, source: &Path, arguments: &[String], symbol: &str) -> NativeControl {
    let object = source.with_extension("so");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-fwrapv", "-fPIC", "-shared", "-w"]).args(arguments);
    let status = cc.arg(source).arg("-o").arg(&object).status().expect("a C compiler");
    assert!(status.success(), "{}: {status}", source.display());
    let path = CString::new(object.as_os_str().as_bytes()).expect("a path");
    let symbol = CString::new(symbol).expect("a name");
    // SAFETY: the linked object has no constructors, and both strings live during the call.
    let table = unsafe {
        libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL), symbol.as_ptr())
    };
    assert!(!table.is_null(), "{}: no {symbol:?}", object.display());
    // SAFETY: the object is never unlinked. table.h and c/native.h define this table, and its callbacks keep the
    // promise.
    unsafe { native(name).expect("a row").with_table(table) }
}

/// Returns the part of the text from the line that begins with `first` to the line that begins with `last`, or to the
/// end.
fn part<'a>(text: &'a str, first: &str, last: Option<&str>) -> &'a str {
    let from = text.find(first).unwrap_or_else(|| panic!("no {first:?} in Linux's source"));
    let length = last.and_then(|last| text[from..].find(last).map(|at| at + last.len()));
    &text[from..length.map_or(text.len(), |length| from + length)]
}

/// Returns Linux's control as a source in one file, without its #include lines.
fn linux_source(linux: &Path, file: &str) -> String {
    let of = |path: &str| read(&linux.join(path));
    let mut text = "#include \"kernel.h\"\n".to_owned();
    let (tcp, cong) = (of("include/net/tcp.h"), of("net/ipv4/tcp_cong.c"));
    let parts = [
        &of("include/linux/win_minmax.h"),
        part(&tcp, "static inline bool tcp_is_cwnd_limited", Some("\n}\n")),
        &of("lib/win_minmax.c"),
        part(&cong, "__bpf_kfunc u32 tcp_slow_start", None),
        &if file == "tcp_cong.c" { String::new() } else { of(&format!("net/ipv4/{file}")) },
    ];
    for line in parts.iter().flat_map(|part| part.lines()).filter(|line| !line.starts_with("#include")) {
        let _ = writeln!(text, "{line}");
    }
    text + "#include \"table.h\"\n"
}

/// Compiles Linux's source `file`, with the parameters of its module set as in `settings`, to replace our control
/// `name`.
pub(super) fn linux(linux: &Path, folder: &Path, name: &str, file: &str, settings: &str) -> NativeControl {
    let source = folder.join(format!("linux_{name}.c"));
    fs::write(&source, linux_source(linux, file)).expect("a temporary folder");
    let mut arguments = vec!["-I".to_owned(), HERE.to_owned(), format!("-DLS_SETTINGS={settings}")];
    match file {
        "tcp_cong.c" => arguments.push("-DLS_IS_RENO".to_owned()),
        "tcp_bbr.c" => arguments.push("-DLS_WHOLE_PRIVATE".to_owned()),
        _ => {}
    }
    table(name, &source, &arguments, "ls_linux")
}

/// Compiles `file`, a source with a paper's formulas beside this one, to replace our control `name`.
pub(super) fn paper(folder: &Path, name: &str, file: &str) -> NativeControl {
    let source = folder.join(file);
    fs::copy(Path::new(HERE).join(file), &source).expect("a temporary folder");
    let arguments = ["-I".to_owned(), HERE.to_owned(), "-I".to_owned(), format!("{CRATE}/c")];
    table(name, &source, &arguments, "ls_paper")
}

impl PlantedErrors {
    /// Returns the source with planted error number `number`.
    pub(super) fn source(&self, number: usize) -> String {
        let text = read(&Path::new(CRATE).join("src/algorithms").join(self.file));
        let [is, becomes] = self.errors[number];
        assert_eq!(text.matches(is).count(), 1, "{is:?} in {}", self.file);
        text.replace(is, becomes)
    }

    /// Compiles our control `name` with planted error number `number`.
    pub(super) fn control(&self, folder: &Path, name: &str, number: usize) -> NativeControl {
        let root = folder.join(format!("{name}_{number}"));
        fs::create_dir(&root).expect("a temporary folder");
        let trees = ["c", "src/algorithms"].map(|tree| Path::new(CRATE).join(tree));
        let status = Command::new("cp").arg("-r").args(trees).arg(&root).status().expect("cp");
        assert!(status.success(), "{}: {status}", root.display());
        fs::write(root.join("algorithms").join(self.file), self.source(number)).expect("a temporary folder");
        let arguments = ["c", "algorithms"].map(|tree| format!("-I{}", root.join(tree).display()));
        table(name, &root.join(format!("algorithms/{name}/{name}.c")), &arguments, &format!("ls_{name}"))
    }
}
