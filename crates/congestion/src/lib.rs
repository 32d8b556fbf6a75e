//! The TCP congestion controls of the PFLDnet study, and later ones.
//!
//! Each control has one C source (`src/algorithms/NAME/NAME.c`), written from its paper or RFC. The source is
//! compiled twice: for BPF, so that it loads into a stock kernel, and for this machine, so that tests and the
//! simulator run the very code that the kernel runs. The C sources are MIT or GPL-2.0, because the kernel accepts no
//! other licence.

mod algorithms;
mod control;
mod error;
mod load;
mod native;
mod ops;
pub mod reference;
mod sock;

pub use algorithms::CONTROLS;
pub use control::{Control, ControlParameter};
pub use error::Error;
pub use load::{
    LinuxControl, LoadState, LoadedControl, NEEDS, available, can_load, linuxs_own, load, look_up, state,
    unload,
};
pub use native::{ControlRefusal, NativeControl, native};
pub use sock::{AckSample, CaState, CwndEvent, INFINITE_SSTHRESH, RateSample, Sock, SockInternals};
