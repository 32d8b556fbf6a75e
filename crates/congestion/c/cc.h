// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The parts of a connection that a congestion control may use, and the macros in which it is written. An algorithm
 * has one source, which includes this header and is compiled twice: for BPF, where a socket is the running kernel's
 * own (kernel.h), and for this machine, where it is a plain structure (native.h) that a test or a simulator fills.
 *
 * Both headers give the fields the kernel's names, and both define
 *
 *   LS_CALLBACK(type, name, arguments)   the head of a callback
 *   LS_CONTROL(name) = { ... }           the table of callbacks, after include/net/tcp.h's tcp_congestion_ops
 *   LS_OP(name)                          a callback in that table
 *   ls_private(sk)                       the algorithm's own LS_PRIVATE bytes, zero before init
 *   LS_STATE(structure)                  an assertion that the structure fits into them
 *   ls_ca_state(sk)                      TCP_CA_Open and so on
 *   ls_min_rtt(sk)                       the connection's smallest RTT, us; ~0 before the first
 *   ls_is_cwnd_limited(sk)               true if the window was in full use: only then may it grow
 *   ls_tstamp_ok(sk)                     true if both ends send TCP timestamps
 *   ls_tsval(sk), ls_tsecr(sk)           the peer's timestamp on the last acknowledgement, and ours that it echoes
 *   tcp_slow_start, tcp_cong_avoid_ai    the kernel's own arithmetic of a window
 *
 * No algorithm divides except by ls_div, shifts by an unmasked variable, or keeps a pointer. So a call returns,
 * whatever the private bytes hold.
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

/* include/net/tcp.h: the slow-start threshold while none is known. */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* include/uapi/linux/tcp.h: enum tcp_ca_state. */
enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

/* include/net/tcp.h: enum tcp_ca_event. */
enum { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };

/* include/net/tcp.h: TCP_CONG_NON_RESTRICTED. Any program may choose the control, as it may choose Reno. */
#define LS_FOR_ANYBODY 1

/* The smallest window after a loss: RFC 5681, equation 4. */
#define LS_MIN_SSTHRESH 2U

/* No window grows above this, so that all products below fit 64 bits. The kernel's own limit is 2^32 - 1. */
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

/* Division in which a zero divisor gives zero, as on the BPF machine, so that both builds agree. */
static __always_inline __u64 ls_div(__u64 a, __u64 b)
{
	return b ? a / b : 0;
}

/* Comparison of sequence numbers: include/net/tcp.h. */
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

/* The window after the kernel undoes a reduction without a loss: tcp_reno_undo_cwnd of net/ipv4/tcp_cong.c. */
static __always_inline __u32 ls_undo(struct sock *sk)
{
	return ls_max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

#endif
