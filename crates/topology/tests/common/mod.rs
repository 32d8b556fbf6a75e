//! What the lab tests share.

/// Whether these tests can run here; prints why not.
pub(crate) fn can_run() -> bool {
    match landspeed_topology::find(&[]).expect("a lab is the default").can_run() {
        Ok(()) => true,
        Err(why) => {
            println!("SKIP: {why}");
            false
        }
    }
}
