//! Assigns kernel stacks to cost classes.

use landspeed_record::CostClass;

use super::kallsyms::KernelFunction;
use super::rules::{SymbolRule, SymbolRules};

/// The result of classifying a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleClassification<'a> {
    /// The processor was busy, in this class.
    Class {
        class: CostClass,
        /// True if the sample was due while interrupts were off, and was taken in the function that turned interrupts
        /// on again. It is then attributed to the caller of this function.
        moved: bool,
    },
    /// The processor was idle.
    Idle,
    /// No rule matches the innermost function that is not a helper. The value is the function's symbol.
    Unknown(&'a str),
}

/// Classifies the kernel part of a stack. `kernel` begins with the innermost function. An element is `None` if its
/// address is outside all functions.
///
/// The innermost function that is not a helper decides. Helpers are, for example, memset and unlocks that turn
/// interrupts on. If no rule matches this function, its symbol is reported as unknown; its class is not guessed from
/// its callers.
pub(super) fn judge<'a>(
    rules: &SymbolRules,
    kernel: &[Option<KernelFunction<'a>>],
) -> SampleClassification<'a> {
    let mut moved = false;
    let mut fallback = None;
    let innermost = kernel.first().copied().flatten();
    let mut helper: Option<KernelFunction<'_>> = None;
    for function in kernel {
        let Some(function) = function else { return SampleClassification::Unknown(NOWHERE) };
        let both = helper.replace(*function).and_then(|helper| rules.of_pair(helper, *function));
        match both.or_else(|| rules.of(*function)) {
            None => return SampleClassification::Unknown(function.name),
            Some(SymbolRule::Idle) => return SampleClassification::Idle,
            Some(SymbolRule::Class(class)) => return SampleClassification::Class { class, moved },
            Some(SymbolRule::Caller { otherwise, interrupts }) => {
                moved |= interrupts;
                fallback = fallback.or(otherwise);
            }
        }
    }
    match (fallback, innermost) {
        (Some(class), _) => SampleClassification::Class { class, moved: false },
        (None, function) => SampleClassification::Unknown(function.map_or(NOWHERE, |function| function.name)),
    }
}

/// The name that is used for an address outside all functions.
pub(super) const NOWHERE: &str = "[unknown]";

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;

    /// Classifies a stack that is written as "innermost < its caller < ...", where "?" is an address outside all
    /// functions.
    fn judged(stack: &'static str) -> SampleClassification<'static> {
        let frames: Vec<_> = stack
            .split(" < ")
            .map(|name| (name != "?").then_some(KernelFunction { name, module: "" }))
            .collect();
        judge(&RULES, &frames)
    }

    /// Stacks and their expected classes. The frames are from Linux 6.18 unless noted. Copies are classified by their
    /// purpose.
    const STACKS: &str = "
        # Innermost frames as seen on Linux 6.18 unless said otherwise, and what they are. Copies are by what they are called
        # for.
        copy: rep_movs_alternative < _copy_from_iter < tcp_sendmsg_locked < tcp_sendmsg
        copy: rep_movs_alternative < _copy_to_iter < __skb_datagram_iter < skb_copy_datagram_iter
        # Linux 5.4 and 5.15
        copy: copy_user_enhanced_fast_string < copyin < _copy_from_iter_full < tcp_sendmsg_locked
        copy: copy_user_generic_unrolled < copyout < _copy_to_iter < skb_copy_datagram_iter
        # arm64
        copy: __arch_copy_from_user < _copy_from_iter < tcp_sendmsg_locked
        copy: memcpy < skb_copy_bits < __pskb_pull_tail
        copy: rep_movs_alternative
        system-call: rep_movs_alternative < _copy_from_user < copy_msghdr_from_user < ___sys_sendmsg
        system-call: entry_SYSCALL_64
        system-call: sock_sendmsg < __sys_sendto
        memory: memset < __alloc_skb < tcp_stream_alloc_skb < tcp_sendmsg_locked
        memory: memcpy < __copy_skb_header < __skb_clone < skb_clone < __tcp_transmit_skb
        memory: kmem_cache_free < skb_release_data
        memory: get_page_from_freelist < __alloc_pages_noprof
        memory: __alloc_pages_nodemask < skb_page_frag_refill
        checksum: csum_partial < skb_checksum < skb_checksum_help < validate_xmit_skb
        checksum: do_csum < csum_partial < __skb_checksum_complete
        checksum: csum_partial_copy_generic < csum_and_copy_from_iter_full < ip_generic_getfrag
        tcp: tcp_ack < tcp_rcv_established < tcp_v4_do_rcv
        tcp: cubictcp_cong_avoid < tcp_ack
        tcp: __inet_lookup_established < tcp_v4_rcv
        tcp: bpf_prog_6deef7357e7b4530_cong_avoid < bpf__tcp_congestion_ops_cong_avoid < tcp_ack
        # Through the thunks of mitigations.
        tcp: srso_alias_safe_ret < srso_alias_return_thunk < tcp_ack
        udp: udp_queue_rcv_one_skb < udp_unicast_rcv_skb
        udp: __udp4_lib_rcv < ip_protocol_deliver_rcu
        ip: ip_rcv < __netif_receive_skb_one_core
        ip: fib_table_lookup < ip_route_output_key_hash_rcu
        ip: ip_fragment < __ip_finish_output
        driver: veth_xmit < dev_hard_start_xmit
        driver: skb_segment < tcp_gso_segment < inet_gso_segment
        driver: tcp_gro_receive < tcp4_gro_receive < inet_gro_receive < dev_gro_receive
        driver: fq_codel_dequeue < __qdisc_run
        driver: __local_bh_enable_ip < __dev_queue_xmit < ip_finish_output2
        softirq: net_rx_action < handle_softirqs
        softirq: process_backlog < __napi_poll
        softirq: __do_softirq < do_softirq_own_stack
        lock: native_queued_spin_lock_slowpath < _raw_spin_lock_bh < lock_sock_nested
        lock: _raw_spin_lock < tcp_v4_rcv
        lock: __local_bh_enable_ip < _raw_spin_unlock_bh < tcp_recvmsg
        lock: __local_bh_enable_ip < tcp_sendmsg < __sys_sendto
        scheduling: try_to_wake_up < __wake_up_common
        scheduling: sock_def_readable < tcp_data_ready
        scheduling: ep_poll_callback < __wake_up_common
        page: clear_page_erms < do_anonymous_page
        page: internal_get_user_pages_fast < iov_iter_get_pages2
        hypervisor: pvclock_clocksource_read_nowd < kvm_clock_get_cycles < ktime_get
        observer: bpf_prog_6deef7357e7b4530_hop < bpf_trace_run2 < __bpf_trace_net_dev_template
    ";

    #[test]
    fn recorded_stacks_have_the_right_class() {
        for line in STACKS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, stack) = line.split_once(": ").unwrap();
            let class = CostClass::ALL.into_iter().find(|class| class.name() == name).expect(name);
            assert_eq!(judged(stack), SampleClassification::Class { class, moved: false }, "{stack}");
        }
    }

    #[test]
    fn a_sample_that_interrupts_off_held_back_goes_to_the_caller() {
        for (class, stack) in [
            (
                CostClass::Scheduling,
                "_raw_spin_unlock_irqrestore < __wake_up_common_lock < sock_def_readable",
            ),
            (CostClass::Scheduling, "_raw_spin_unlock_irqrestore < try_to_wake_up < wake_up_q"),
            // If a function ends with a tail call of the unlock, it is not on the stack. Here these are hrtimer_start
            // and hrtimer_run_softirq.
            (CostClass::Scheduling, "_raw_spin_unlock_irqrestore < tcp_write_xmit < tcp_sendmsg_locked"),
            (CostClass::Scheduling, "_raw_spin_unlock_irqrestore < handle_softirqs < __irq_exit_rcu"),
            (CostClass::Memory, "pv_native_irq_enable < ___slab_alloc < kmem_cache_alloc"),
        ] {
            assert_eq!(judged(stack), SampleClassification::Class { class, moved: true }, "{stack}");
        }
        let alone = SampleClassification::Class { class: CostClass::Lock, moved: false };
        assert_eq!(judged("_raw_spin_unlock_irqrestore"), alone, "no class to give it to");
    }

    #[test]
    fn a_processor_at_rest_is_idle_and_its_interrupts_are_not() {
        assert_eq!(
            judged("pv_native_safe_halt < default_idle < default_idle_call < do_idle"),
            SampleClassification::Idle
        );
        assert_eq!(
            judged("cpuidle_enter_state < cpuidle_enter < do_idle < cpu_startup_entry"),
            SampleClassification::Idle
        );
        let softirq = judged("net_rx_action < handle_softirqs < irq_exit_rcu < default_idle < do_idle");
        assert_eq!(softirq, SampleClassification::Class { class: CostClass::Softirq, moved: false });
    }

    #[test]
    fn unknown_functions_are_shown_not_guessed() {
        assert_eq!(
            judged("no_such_function < tcp_sendmsg"),
            SampleClassification::Unknown("no_such_function")
        );
        assert_eq!(
            judged("memset < no_such_function < tcp_sendmsg"),
            SampleClassification::Unknown("no_such_function")
        );
        assert_eq!(judged("memset"), SampleClassification::Unknown("memset"), "a helper without a caller");
        assert_eq!(judged("? < tcp_sendmsg"), SampleClassification::Unknown(NOWHERE));
        assert_eq!(judge(&RULES, &[]), SampleClassification::Unknown(NOWHERE));
    }
}
