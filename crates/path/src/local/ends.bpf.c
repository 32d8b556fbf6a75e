// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Finds the TCP socket with the given addresses in a network namespace, and how far it has sent and received. User
 * space runs it there by BPF_PROG_TEST_RUN: it handles no packets of the network.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define preserved __attribute__((preserve_access_index))

/* include/uapi/linux/bpf.h */
struct __sk_buff;
struct bpf_sock;
struct bpf_sock_tuple {
	union {
		struct {
			__be32 saddr, daddr;
			__be16 sport, dport;
		} ipv4;
		struct {
			__be32 saddr[4], daddr[4];
			__be16 sport, dport;
		} ipv6;
	};
};
enum { BPF_F_CURRENT_NETNS = -1 };

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	atomic64_t skc_cookie;
} preserved;

struct sock {
	struct sock_common __sk_common;
} preserved;

struct tcp_sock {
	__u32 snd_nxt;
	__u32 rcv_nxt;
} preserved;

/* What user space passes after a frame's header; the answer replaces it. */
struct question {
	__u32 length;
	struct bpf_sock_tuple tuple;
};

struct answer {
	__u64 cookie;
	__u32 sent;
	__u32 received;
};

enum { FRAME = 14 };

SEC("tc")
int ends(struct __sk_buff *skb)
{
	struct question asked = {};
	if (bpf_skb_load_bytes(skb, FRAME, &asked, sizeof(asked)))
		return 1;
	struct bpf_sock *found =
		asked.length == sizeof(asked.tuple.ipv4)
			? bpf_skc_lookup_tcp(skb, &asked.tuple, sizeof(asked.tuple.ipv4), BPF_F_CURRENT_NETNS, 0)
			: bpf_skc_lookup_tcp(skb, &asked.tuple, sizeof(asked.tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!found)
		return 1;
	struct answer answer = {};
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(found);
	if (tcp) {
		answer.cookie = ((struct sock *)tcp)->__sk_common.skc_cookie.counter;
		answer.sent = tcp->snd_nxt;
		answer.received = tcp->rcv_nxt;
	}
	bpf_sk_release(found);
	return !tcp || bpf_skb_store_bytes(skb, FRAME, &answer, sizeof(answer), 0);
}
