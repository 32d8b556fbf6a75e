//! An agent that serves a session on the stdio of its process, or on a socket.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use rustix::fs::FileType;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::session::connection::{PeerConnection, ReadHalf, WriteHalf};
use crate::session::serve::{attend, event_loop};
use crate::session::{Error, RequestHandler, ServeOptions};

/// Serves one session on stdin and stdout, and returns when it is over and [`RequestHandler::gone`] has returned.
///
/// From the call on, stdout carries frames only: file descriptor 1 becomes a copy of 2, so that anything printed goes
/// to stderr, and 0 becomes /dev/null. Processes started earlier, such as a guardian, must not have inherited 0 or 1:
/// the controller would never see the agent end.
///
/// # Errors
/// Returns an error unless the controller said goodbye.
pub fn serve_stdio(handler: Arc<dyn RequestHandler>, options: &ServeOptions) -> Result<(), Error> {
    let (stdin, stdout) = take_stdio().map_err(Error::system("take stdin and stdout for frames"))?;
    serve_on(handler, options, || Ok((read_half(stdin)?, write_half(stdout)?)))
}

/// Serves one session on a connected socket whose other end is a [`Session::over_socket`]. Returns when the session is
/// over and [`RequestHandler::gone`] has returned.
///
/// [`Session::over_socket`]: crate::session::Session::over_socket
pub fn serve_socket(
    stream: StdUnixStream,
    handler: Arc<dyn RequestHandler>,
    options: &ServeOptions,
) -> Result<(), Error> {
    serve_on(handler, options, || {
        let (reader, writer) = socket(stream.into())?.into_split();
        Ok((Box::new(reader), Box::new(writer)))
    })
}

/// Serves one session on the two halves of a connection that `open` returns. `open` is called inside the event loop.
fn serve_on(
    handler: Arc<dyn RequestHandler>,
    options: &ServeOptions,
    open: impl FnOnce() -> Result<(ReadHalf, WriteHalf), Error>,
) -> Result<(), Error> {
    let runtime = event_loop()?;
    let served = runtime.block_on(async {
        let (reader, writer) = open()?;
        let opening = PeerConnection::new("the controller", reader, writer).opened(options.lease);
        let opened = tokio::time::timeout(options.handshake.into(), opening).await;
        let slow = || Error::no_session("the controller".to_owned(), options.handshake);
        let (connection, peer) = opened.map_err(|_| slow())??;
        attend(connection, peer, handler, options).await
    });
    runtime.shutdown_background();
    served
}

/// Returns copies of the descriptors 0 and 1 that children do not inherit. Then makes 0 a descriptor of /dev/null, and
/// 1 a copy of 2.
fn take_stdio() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(std::io::stderr().as_fd())?;
    Ok((stdin, stdout))
}

/// The type of a stdio descriptor. sshd gives a command a socket pair; Rust's standard library and sudo give pipes.
enum StdioKind {
    Pipe,
    Socket,
}

fn stdio_kind(fd: &OwnedFd) -> Result<StdioKind, Error> {
    let stat =
        rustix::fs::fstat(fd).map_err(|e| Error::System { what: "look at stdio", source: e.into() })?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Ok(StdioKind::Pipe),
        FileType::Socket => Ok(StdioKind::Socket),
        _ => Err(Error::System {
            what: "serve on stdio",
            source: std::io::Error::other(
                "stdin and stdout are no pipes: --stdio is for landspeed and ssh to use; by hand, use --listen",
            ),
        }),
    }
}

fn read_half(fd: OwnedFd) -> Result<ReadHalf, Error> {
    Ok(match stdio_kind(&fd)? {
        StdioKind::Pipe => Box::new(pipe::Receiver::from_owned_fd(fd).map_err(Error::system("read stdin"))?),
        StdioKind::Socket => Box::new(socket(fd)?),
    })
}

fn write_half(fd: OwnedFd) -> Result<WriteHalf, Error> {
    Ok(match stdio_kind(&fd)? {
        StdioKind::Pipe => Box::new(pipe::Sender::from_owned_fd(fd).map_err(Error::system("write stdout"))?),
        StdioKind::Socket => Box::new(socket(fd)?),
    })
}

pub(crate) fn socket(fd: OwnedFd) -> Result<UnixStream, Error> {
    let socket = StdUnixStream::from(fd);
    socket
        .set_nonblocking(true)
        .and_then(|()| UnixStream::from_std(socket))
        .map_err(Error::system("use the socket"))
}
