//! Tests of each algorithm against its source, on a clock that the test drives. They run the very C code that the
//! kernel runs.

mod bbr;
mod bic;
mod cubic;
mod delay;
mod drive;
mod fuzz;
mod highspeed;
mod htcp;
mod linux;
mod ltcp;
mod path;
mod response;
mod simple;
