//! The images that guests boot from, and the QEMU that runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::spec::DRIVERS;

/// The environment variable that names the folder of the images.
pub const FOLDER_VARIABLE: &str = "LANDSPEED_VM";
const INSTALLED: &str = "/var/lib/landspeed/vm";
const QEMU: &str = "qemu-system-x86_64";

/// Returns the folder of the images: the one that [`FOLDER_VARIABLE`] names, else /var/lib/landspeed/vm, else the folder
/// vm beside this program's build, if it has images.
pub fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os(FOLDER_VARIABLE).filter(|named| !named.is_empty()) {
        return std::path::absolute(&named).unwrap_or_else(|_| named.into());
    }
    let program = std::env::current_exe().unwrap_or_default();
    found([Some(INSTALLED.into()), beside(&program)].into_iter().flatten())
}

/// Returns the first folder with images, or /var/lib/landspeed/vm if there is none.
fn found(mut folders: impl Iterator<Item = PathBuf>) -> PathBuf {
    folders.find(|folder| is_prepared(folder)).unwrap_or_else(|| INSTALLED.into())
}

/// Returns the folder vm in the folder target that a program was built in; `None` for a program elsewhere.
fn beside(program: &Path) -> Option<PathBuf> {
    Some(program.ancestors().find(|folder| folder.ends_with("target"))?.join("vm"))
}

/// Returns true if guests' root file system was made, which is the last step of their preparation.
fn is_prepared(folder: &Path) -> bool {
    folder.join("root.sqfs").is_file()
}

/// Checks that guests can be booted here. Otherwise returns the reason and the remedy as an error.
pub(super) fn can_run() -> Result<(), String> {
    can_boot(&folder())
}

fn can_boot(folder: &Path) -> Result<(), String> {
    if is_prepared(folder) {
        return qemu(DRIVERS[0], folder).map(drop);
    }
    Err(format!(
        "{} has no images of virtual machines: run `make vm-images` in a clone of landspeed's repository; {FOLDER_VARIABLE} \
         names their folder",
        folder.display()
    ))
}

/// Returns the folder of a kernel.
///
/// # Errors
/// Returns the reason and the remedy if the kernel was not prepared.
pub fn kernel(name: &str, folder: &Path) -> Result<PathBuf, String> {
    let kernel = folder.join(name);
    if kernel.join("initrd").is_file() {
        return Ok(kernel);
    }
    Err(format!(
        "{} has no kernel {name}: run `make vm-images KERNELS={name}` in a clone of landspeed's repository",
        folder.display()
    ))
}

/// Returns a QEMU with a device for a driver: this machine's, or else the newer one that is beside the images.
///
/// # Errors
/// Returns the reason and the remedy if no QEMU has the device.
pub(super) fn qemu(driver: &str, folder: &Path) -> Result<PathBuf, String> {
    let programs = [PathBuf::from(QEMU), folder.join("qemu").join(QEMU)];
    programs.into_iter().find(|program| emulates(program, driver)).ok_or_else(|| {
        format!("no {QEMU} here has a device {driver}: install qemu-system-x86, or run `make vm-images KERNELS=qemu`")
    })
}

/// Returns true if the QEMU of this machine has a device for a driver: igb came with QEMU 8.
pub fn has_device(driver: &str) -> bool {
    emulates(Path::new(QEMU), driver)
}

fn emulates(qemu: &Path, driver: &str) -> bool {
    let devices = Command::new(qemu).args(["-device", "help"]).output();
    let name = format!("name \"{driver}");
    devices.is_ok_and(|devices| String::from_utf8_lossy(&devices.stdout).contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_beside_the_build_of_any_profile() {
        for program in
            ["target/release/landspeed", "target/debug/deps/lab-1f", "target/x86_64/dist/landspeed"]
        {
            assert_eq!(beside(&Path::new("/src").join(program)), Some("/src/target/vm".into()));
        }
        assert_eq!(beside(Path::new("/usr/bin/landspeed")), None);
    }

    #[test]
    fn the_first_prepared_folder_is_used() {
        let [empty, full] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        std::fs::write(full.path().join("root.sqfs"), "").unwrap();
        let folders = [empty.path().to_owned(), full.path().to_owned()];
        assert_eq!(found(folders.into_iter()), full.path());
        assert_eq!(found(std::iter::empty()), Path::new(INSTALLED));
    }

    #[test]
    fn missing_images_are_refused_with_the_command_that_prepares_them() {
        let folder = tempfile::tempdir().unwrap();
        let all = can_boot(folder.path()).unwrap_err();
        assert!(all.contains("`make vm-images`") && all.contains(FOLDER_VARIABLE), "{all}");
        let one = kernel("6.12", folder.path()).unwrap_err();
        assert!(one.contains("make vm-images KERNELS=6.12"), "{one}");
        let device = qemu("no-such-device", folder.path()).unwrap_err();
        assert!(device.contains("no-such-device") && device.contains("KERNELS=qemu"), "{device}");
    }
}
