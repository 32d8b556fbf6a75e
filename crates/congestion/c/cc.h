// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * What a congestion control may see of a connection, and the words in which it is written. One source of an
 * algorithm includes this header and is compiled twice: for BPF, where a socket is the running kernel's own
 * (kernel.h), and for this machine, where it is a plain structure (native.h) that a test or a simulator fills.
 *
 * Both give the fields the kernel's names, and both give
 *
 *   LS_CALLBACK(type, name, arguments)   the head of a callback
 *   LS_CONTROL(name) = { ... }           the table of callbacks, after include/net/tcp.h's tcp_congestion_ops
 *   LS_OP(name)                          a callback in that table
 *   ls_private(sk)                       the algorithm's own LS_PRIVATE bytes, zero before init
 *   LS_STATE(structure)                  which must hold this structure
 *   ls_ca_state(sk)                      TCP_CA_Open and so on
 *   ls_min_rtt(sk)                       the connection's least round trip, us; ~0 before the first
 *   ls_is_cwnd_limited(sk)               whether the window was in full use: only then may it grow
 *   ls_tstamp_ok(sk)                     whether both ends send TCP timestamps
 *   ls_tsval(sk), ls_tsecr(sk)           the peer's timestamp on the last acknowledgement, and ours that it echoes
 *   tcp_slow_start, tcp_cong_avoid_ai    the kernel's own arithmetic of a window
 *
 * No algorithm divides but by ls_div, shifts by a variable unmasked, or keeps a pointer: whatever lies in its
 * private bytes, a call returns.
 */
#ifndef LANDSPEED_CC_H
#define LANDSPEED_CC_H

#ifdef __bpf__
#include "kernel.h"
#else
#include "native.h"
#endif

/* include/net/inet_connection_sock.h: ICSK_CA_PRIV_SIZE, the same since Linux 5.6. */
#define LS_PRIVATE 104
#define LS_STATE(type) _Static_assert(sizeof(struct type) <= LS_PRIVATE, "icsk_ca_priv has no room for it")

/* include/net/tcp.h: no slow-start threshold is known yet. */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* include/uapi/linux/tcp.h: enum tcp_ca_state. */
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

/* include/net/tcp.h: enum tcp_ca_event. */
enum { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };

/* include/net/tcp.h: TCP_CONG_NON_RESTRICTED. Any program may choose it, as it may Reno. */
#define LS_FOR_ANYBODY 1

/* The least window after a loss: RFC 5681, equation 4. */
#define LS_MIN_SSTHRESH 2U

/* Above this no window grows: it keeps all products below in 64 bits. The kernel's own limit is 2^32 - 1. */
#define LS_MAX_CWND (1U << 24)

#define LS_USEC_PER_SEC 1000000ULL

static __always_inline __u32 ls_min(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 ls_max(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline __u64 ls_min64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Nothing by nothing is nothing: what the BPF machine does, so that both builds agree. */
static __always_inline __u64 ls_div(__u64 a, __u64 b)
{
	return b ? a / b : 0;
}

/* Sequence numbers: include/net/tcp.h. */
static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline bool after(__u32 a, __u32 b)
{
	return before(b, a);
}

static __always_inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* The window as the kernel undoes a reduction that was no loss: tcp_reno_undo_cwnd of net/ipv4/tcp_cong.c. */
static __always_inline __u32 ls_undo(struct sock *sk)
{
	return ls_max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

#endif
