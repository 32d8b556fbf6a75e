//! UDP flows over loopback: made, proven, refused, and meddled with.

mod common;
mod flows;
mod relay;
mod strangers;
