//! Asks for a small release build, because landspeed sends itself to hosts: functions whose code is the same become one, as many of
//! a generic function are.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    // There, rustc brings a linker that takes the option, unless the user has chosen another one.
    let takes_option = is("TARGET", "x86_64-unknown-linux-gnu") && env::var_os("RUSTC_LINKER").is_none();
    if is("PROFILE", "release") && takes_option {
        println!("cargo:rustc-link-arg-bin=landspeed=-Wl,--icf=all");
    }
}
