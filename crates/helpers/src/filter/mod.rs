//! Filters and streams as in DataCutter (Beynon et al., Parallel Computing 27, 2001; balaji-2006 section 6.2.1), and
//! the two applications of that section.
//!
//! A **filter** takes buffers from a stream and sends buffers to the next stream. A **group** is a chain of filters.
//! A filter may have several **copies**, and a [`Placement`] assigns the copies to hosts. Copies on one host are
//! threads of one process. Between hosts, a stream has one TCP socket for each pair of copies. A **unit of work** is
//! one request that flows through the chain, such as a picture from one direction. Units follow each other as in a
//! pipeline, with an **end-of-work marker** after each.
//!
//! Every host calls [`run`] with the same [`QueryOptions`], except for its own number. The first host starts the
//! units and runs the last filter. Start reading at [`FilterApplication`], then `host.rs`.

mod application;
mod error;
mod frame;
mod host;
mod iso;
mod join;
mod picture;
mod placement;
mod plan;
mod query;
mod run;
mod stream;
mod vm;
mod wires;
mod words;

pub use application::{Filter, FilterApplication, FilterCopy, FilterStage};
pub use error::{Error, PeerHost};
pub use host::{QueryOutcome, run_job};
pub use iso::IsoSurface;
pub use landspeed_record::units::Bytes;
pub use picture::png;
pub use placement::{Distribution, FilterPlacement, MOST_COPIES, MOST_CREDITS, Placement};
pub use plan::{FilterJob, MOST_HOSTS};
pub use run::{ISO_PLACEMENT, QueryKind, QueryOptions, SlideUpdate, VM_PLACEMENT, run};
pub use stream::{FilterInput, FilterOutput};
pub use vm::VirtualMicroscope;
