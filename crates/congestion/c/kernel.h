// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The running kernel's connection. The offsets here do not matter: preserve_access_index makes each access a CO-RE
 * relocation, resolved against the kernel's own BTF when the program is loaded. Of these fields the kernel
 * lets a congestion control write snd_cwnd, snd_cwnd_cnt, snd_ssthresh and icsk_ca_priv (net/ipv4/bpf_tcp_ca.c).
 */
#ifndef LANDSPEED_KERNEL_H
#define LANDSPEED_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false, true };

/* include/uapi/linux/bpf.h: bpf_helper_defs.h refers to it. */
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_options_received {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 tstamp_ok : 1;
};

/* include/linux/win_minmax.h */
struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct tcp_options_received rx_opt;
	struct minmax rtt_min;
	__u64 tcp_mstamp;
	__u32 snd_cwnd;
	__u32 snd_cwnd_cnt;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 packets_out;
	__u32 max_packets_out;
	__u32 delivered;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 mss_cache;
	__u32 srtt_us;
	__u32 mdev_us;
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct rate_sample;

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 flags;
	char name[16];
};

#pragma clang attribute pop

/* net/ipv4/tcp_cong.c, callable from BPF since Linux 5.13. */
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

#define LS_CALLBACK(type, name, ...) SEC("struct_ops") type BPF_PROG(name, ##__VA_ARGS__)
/* .link: the control lives exactly as long as its link is held (Linux 6.4). */
#define LS_CONTROL(id) SEC(".struct_ops.link") struct tcp_congestion_ops id
#define LS_OP(name) ((void *)name)

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline void *ls_private(const struct sock *sk)
{
	return (void *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline __u8 ls_ca_state(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = (const struct inet_connection_sock *)sk;
	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

/* include/net/tcp.h, tcp_min_rtt: the minimum over five minutes (tcp_min_rtt_wlen). */
static __always_inline __u32 ls_min_rtt(const struct sock *sk)
{
	return tcp_sk(sk)->rtt_min.s[0].v;
}

static __always_inline bool ls_tstamp_ok(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	return BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok);
}

static __always_inline __u32 ls_tsval(const struct sock *sk)
{
	return tcp_sk(sk)->rx_opt.rcv_tsval;
}

static __always_inline __u32 ls_tsecr(const struct sock *sk)
{
	return tcp_sk(sk)->rx_opt.rcv_tsecr;
}

/* include/net/tcp.h, tcp_is_cwnd_limited: without the flag, slow start goes up to twice the packets in flight. */
static __always_inline bool ls_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * (__u64)tp->max_packets_out;
}

#endif
