//! Functions that the lab tests share.

/// Returns true if a lab of this kind can run here; otherwise prints the reason.
pub(crate) fn can_run(kind: &str) -> bool {
    match landspeed_lab::topology::find(&[kind.to_owned()]).expect("a lab of this kind").can_run() {
        Ok(()) => true,
        Err(why) => {
            println!("SKIP: {why}");
            false
        }
    }
}
