//! Lists the points at which packets are traced. For each point it has the BPF programs, the events to which they are
//! attached, and what the trace lacks without the point.

use libbpf_rs::btf::{Btf, types};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelEvent {
    /// A tracepoint by its name. If a number is given, the tracepoint must have exactly this number of parameters.
    Tracepoint(&'static str, Option<usize>),
    /// The entry of a kernel function (fentry). It costs no more than a tracepoint, but some hosts refuse it, and any
    /// kernel release may rename the function. So it is used only if the kernel has no tracepoint at the point.
    Function(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BpfProgram {
    pub(super) name: &'static str,
    pub(super) event: KernelEvent,
}

/// The condition under which a point is traced. Otherwise, tracing the point would cost time and show nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointCondition {
    Always,
    /// The packets may include UDP datagrams.
    Datagrams,
    /// The device passes a packet on immediately, as virtual devices do.
    Immediate,
    /// The device frees a packet only after it was sent, as physical devices do.
    Freed,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PathPoint {
    /// The programs that can trace the point, best first. The first program whose event the kernel has is used.
    pub(super) programs: &'static [BpfProgram],
    pub(super) when: PointCondition,
    /// What the trace lacks if the kernel has no event for any of the programs.
    pub(super) without: &'static str,
}

const fn tracepoint(name: &'static str, tracepoint: &'static str) -> BpfProgram {
    BpfProgram { name, event: KernelEvent::Tracepoint(tracepoint, None) }
}

const fn with_parameters(name: &'static str, tracepoint: &'static str, parameters: usize) -> BpfProgram {
    BpfProgram { name, event: KernelEvent::Tracepoint(tracepoint, Some(parameters)) }
}

const fn function(name: &'static str, function: &'static str) -> BpfProgram {
    BpfProgram { name, event: KernelEvent::Function(function) }
}

const fn always(programs: &'static [BpfProgram], without: &'static str) -> PathPoint {
    PathPoint { programs, when: PointCondition::Always, without }
}

/// All points, in the order in which a packet passes them. A number in a comment above a point is the first Linux
/// release with its tracepoint.
pub(super) static POINTS: &[PathPoint] = &[
    // 6.15
    always(
        &[tracepoint("path_sent", "tcp_sendmsg_locked"), function("path_sent_call", "tcp_sendmsg_locked")],
        "the way from the send call to the queueing discipline",
    ),
    always(&[tracepoint("path_queued", "net_dev_queue")], "the way down to the driver"),
    always(&[tracepoint("path_driver", "net_dev_start_xmit")], "packets sent, and time in queues and driver"),
    PathPoint {
        programs: &[tracepoint("path_handed", "net_dev_xmit")],
        when: PointCondition::Immediate,
        without: "time in the driver",
    },
    always(&[tracepoint("path_again", "tcp_retransmit_skb")], "retransmissions"),
    always(&[tracepoint("path_in_backlog", "netif_rx")], "packets that arrive by netif_rx"),
    always(&[tracepoint("path_in", "netif_receive_skb_entry")], "packets that arrive without GRO"),
    always(&[tracepoint("path_in_list", "netif_receive_skb_list_entry")], "packets that arrive in lists"),
    always(&[tracepoint("path_in_gro", "napi_gro_receive_entry")], "packets that arrive through GRO"),
    // 5.0
    always(&[tracepoint("path_gro_done", "napi_gro_receive_exit")], "packets merged by GRO"),
    PathPoint {
        programs: &[tracepoint("path_up", "netif_receive_skb")],
        when: PointCondition::Datagrams,
        without: "when a datagram reaches its socket",
    },
    always(
        &[tracepoint("path_transport", "tcp_probe")],
        "when a segment reaches TCP, its order, and the socket's backlog",
    ),
    // 6.3
    always(
        &[tracepoint("path_socket", "sk_data_ready"), function("path_socket_call", "sock_def_readable")],
        "when a packet reaches its socket",
    ),
    always(&[tracepoint("path_read", "tcp_rcv_space_adjust")], "when the application reads"),
    // 6.3
    PathPoint {
        programs: &[
            tracepoint("path_taken", "sock_recv_length"),
            tracepoint("path_taken_old", "consume_skb"),
        ],
        when: PointCondition::Datagrams,
        without: "when a datagram is read",
    },
    PathPoint {
        programs: &[tracepoint("path_freed", "consume_skb")],
        when: PointCondition::Freed,
        without: "when the device has sent a packet",
    },
    // 5.17; since 6.11 with the receiving socket as one more parameter. The numbers include the first parameter of each
    // probe, which belongs to the tracer and not to the event.
    always(
        &[
            with_parameters("path_dropped", "kfree_skb", 5),
            with_parameters("path_dropped_old", "kfree_skb", 4),
        ],
        "drops and their reasons",
    ),
];

impl KernelEvent {
    fn is_in(self, btf: &Btf<'_>) -> bool {
        match self {
            KernelEvent::Tracepoint(name, None) => parameters(btf, name).is_some(),
            KernelEvent::Tracepoint(name, wanted) => parameters(btf, name) == wanted,
            KernelEvent::Function(name) => btf.type_by_name::<types::Func<'_>>(name).is_some(),
        }
    }
}

/// Returns the number of parameters of a tracepoint's probe; `None` if the kernel does not have the tracepoint. The
/// probe's type in BTF has the name btf_trace_NAME.
fn parameters(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let typedef = btf.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{tracepoint}"))?;
    let pointer = types::Ptr::try_from(typedef.next_type()?).ok()?;
    Some(types::FuncProto::try_from(pointer.next_type()?).ok()?.len())
}

/// Returns the first program of `point` whose event is in `btf`, the kernel's type information; `None` if no program's
/// event is.
pub(super) fn choose(point: &PathPoint, btf: &Btf<'_>) -> Option<&'static BpfProgram> {
    point.programs.iter().find(|program| program.event.is_in(btf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_that_a_kernel_has_is_chosen() {
        let Ok(btf) = Btf::from_vmlinux() else {
            println!("SKIP: this kernel has no BTF");
            return;
        };
        static SECOND: PathPoint = always(
            &[
                tracepoint("first", "no_such"),
                with_parameters("second", "tcp_probe", 99),
                function("third", "tcp_ack"),
            ],
            "nothing",
        );
        static NONE: PathPoint = always(&[function("first", "no_such_function")], "all");
        assert_eq!(choose(&SECOND, &btf).map(|program| program.name), Some("third"));
        assert!(choose(&NONE, &btf).is_none());
        assert_eq!(parameters(&btf, "tcp_probe"), Some(3), "the tracer's own, the socket, the packet");
    }
}
